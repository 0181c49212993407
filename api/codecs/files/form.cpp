#include "api/codecs/files/form.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "service/core/ascii.h"
#include "service/core/error.h"

namespace meshd::api {
namespace {

constexpr size_t kLongestBoundary = 70;  // RFC 2046 section 5.1.1
constexpr size_t kLongestPartHead = 8 * 1024;
constexpr size_t kMostFormParts = 1024;
constexpr std::string_view kLine = "\r\n";

core::Error malformed(const std::string& what) { return {"malformed_body", "the form " + what}; }

std::string in_lower_case(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), core::to_lower);
  return out;
}

// The value of a parameter behind the first ';': a token, or a quoted string with \ before " and \ itself.
std::optional<std::string> parameter_of(std::string_view field, std::string_view wanted) {
  size_t at = field.find(';');
  while (at < field.size()) {
    const size_t equals = field.find('=', at);
    if (equals == std::string_view::npos) return std::nullopt;
    const std::string name = in_lower_case(core::trim(field.substr(at + 1, equals - at - 1)));
    size_t end = equals + 1;
    std::string value;
    if (end < field.size() && field[end] == '"') {
      for (++end; end < field.size() && field[end] != '"'; ++end) {
        if (field[end] == '\\' && end + 1 < field.size() && (field[end + 1] == '"' || field[end + 1] == '\\')) ++end;
        value += field[end];
      }
      end = field.find(';', end);
    } else {
      end = field.find(';', end);
      value = core::trim(field.substr(equals + 1, end == std::string_view::npos ? end : end - equals - 1));
    }
    if (name == wanted) return value;
    at = end;
  }
  return std::nullopt;
}

void read_head(std::string_view head, FormPart& part) {
  while (!head.empty()) {
    const std::string_view line = head.substr(0, head.find(kLine));
    head.remove_prefix(std::min(head.size(), line.size() + kLine.size()));
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) throw malformed("has a part with a head that is none");
    const std::string field = in_lower_case(line.substr(0, colon));
    const std::string_view value = core::trim(line.substr(colon + 1));
    if (field == "content-disposition") {
      part.name = parameter_of(value, "name").value_or("");
      part.filename = parameter_of(value, "filename").value_or("");
    } else if (field == "content-type") {
      part.media_type = in_lower_case(core::trim(value.substr(0, value.find(';'))));
    }
  }
}

}  // namespace

std::vector<FormPart> read_form(std::string_view content_type, std::string_view body) {
  const auto boundary = parameter_of(content_type, "boundary");
  if (!boundary || boundary->empty() || boundary->size() > kLongestBoundary)
    throw core::Error("malformed_body", "multipart/form-data without a boundary of 1 to 70 characters");
  const std::string first = "--" + *boundary, mark = "\r\n" + first;
  const core::Error unfinished = malformed("does not end with its boundary");
  size_t at = first.size();
  if (!body.starts_with(first)) {
    const size_t behind_preamble = body.find(mark);
    if (behind_preamble == std::string_view::npos) throw unfinished;
    at = behind_preamble + mark.size();
  }
  std::vector<FormPart> parts;
  while (!body.substr(at).starts_with("--")) {
    while (at < body.size() && (body[at] == ' ' || body[at] == '\t')) ++at;
    if (!body.substr(at).starts_with(kLine)) throw unfinished;
    const size_t head = at + kLine.size();
    const size_t head_end = body.substr(0, std::min(body.size(), head + kLongestPartHead)).find("\r\n\r\n", at);
    if (head_end == std::string_view::npos) throw malformed("has a part whose head does not end");
    const size_t data = head_end + 2 * kLine.size();
    // A part without data may have its boundary right behind its head.
    const size_t end = body.find(mark, data - kLine.size());
    if (end == std::string_view::npos) throw unfinished;
    FormPart part;
    if (head < head_end) read_head(body.substr(head, head_end - head), part);
    part.data = body.substr(data, end < data ? 0 : end - data);
    if (part.name.empty()) throw malformed("has a part without a name");
    const auto is_same = [&](const FormPart& other) { return other.name == part.name; };
    if (std::any_of(parts.begin(), parts.end(), is_same))
      throw malformed(fmt::format("has two parts named '{}'", part.name));
    if (parts.size() == kMostFormParts) throw malformed(fmt::format("has more than {} parts", kMostFormParts));
    parts.push_back(std::move(part));
    at = end + mark.size();
  }
  if (parts.empty()) throw malformed("has no part");
  return parts;
}

FormPart file_of_form(std::string_view content_type, std::string_view body) {
  for (FormPart& part : read_form(content_type, body)) {
    if (part.name == "file") return std::move(part);
  }
  throw malformed("has no part named file");
}

}  // namespace meshd::api
