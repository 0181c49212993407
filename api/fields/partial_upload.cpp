#include "api/fields/partial_upload.h"

#include <algorithm>
#include <charconv>

#include "api/http/characters.h"

namespace meshd::api {
namespace {

constexpr size_t kMostDigits = 15;  // RFC 9651 section 3.3.1

// An item without its parameters.
std::string_view bare_item(std::string_view value) { return trim(value.substr(0, value.find(';'))); }

}  // namespace

std::optional<bool> upload_complete_of(const Headers& headers) {
  const std::string value = headers.joined("Upload-Complete");
  const std::string_view item = bare_item(value);
  if (item != "?0" && item != "?1") return std::nullopt;
  return item == "?1";
}

std::optional<int64_t> upload_integer(const Headers& headers, std::string_view name) {
  const std::string value = headers.joined(name);
  const std::string_view item = bare_item(value);
  int64_t out = 0;
  if (item.empty() || item.size() > kMostDigits || !std::all_of(item.begin(), item.end(), is_digit))
    return std::nullopt;
  std::from_chars(item.data(), item.data() + item.size(), out);
  return out;
}

bool takes_upload_interim(const Request& request) {
  return request.minor_version >= 1 &&
         bare_item(request.headers.joined("Upload-Draft-Interop-Version")) == kUploadInterop;
}

bool is_part_of_upload(const Request& request) {
  const auto complete = upload_complete_of(request.headers);
  if (!complete) return false;
  return !*complete || request.method == "PATCH" || takes_upload_interim(request);
}

}  // namespace meshd::api
