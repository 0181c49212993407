#include "api/fields/digests.h"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>

#include "api/http/characters.h"
#include "service/core/error.h"

namespace meshd::api {
namespace {

constexpr std::string_view kName = "sha-256";
constexpr std::string_view kWantRepr = "Want-Repr-Digest", kWantContent = "Want-Content-Digest";
constexpr size_t kBase64 = 44;

bool is_base64(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || is_digit(c) || c == '+' || c == '/';
}

// The value of sha-256 in a dictionary of structured fields (RFC 9651); nothing when it is not there.
std::optional<std::string_view> member(std::string_view dictionary) {
  std::optional<std::string_view> out;
  for (std::string_view element; next_list_element(dictionary, element);) {
    const size_t equals = element.find('=');
    if (element.substr(0, equals) != kName) continue;
    out = equals == std::string_view::npos ? std::string_view() : element.substr(equals + 1);
  }
  return out;
}

}  // namespace

std::unique_ptr<BodyDigest> BodyDigest::announced(const Headers& headers, Body body) {
  std::unique_ptr<BodyDigest> out;
  for (const char* field : {"Content-Digest", "Repr-Digest"}) {
    if (!headers.has(field) || (body == Body::kPart && field == std::string_view("Repr-Digest"))) continue;
    const std::string text = headers.joined(field);
    const auto value = member(text);
    if (!value) continue;
    const bool is_digest = value->size() == kBase64 + 2 && value->front() == ':' && value->back() == ':' &&
                           (*value)[kBase64] == '=' && std::all_of(value->begin() + 1, value->end() - 2, is_base64);
    if (!is_digest) {
      throw core::Error("malformed_request",
                        fmt::format("{}: expected sha-256=:...: with 32 bytes in base64, got '{}'", field, *value));
    }
    if (out == nullptr) out = std::make_unique<BodyDigest>();
    out->expected_.emplace_back(field, value->substr(1, kBase64));
  }
  return out;
}

void BodyDigest::check() {
  const std::string seen = seen_.base64();
  for (const auto& [field, digest] : expected_) {
    if (digest != seen) {
      throw core::Error(
          "digest_mismatch",
          fmt::format("{} says sha-256=:{}:, the body that came has sha-256=:{}:; send it again", field, digest, seen));
    }
  }
}

bool wants_digest(const Headers& headers, std::string_view field) {
  if (!headers.has(field)) return false;
  const std::string text = headers.joined(field);
  const auto weight = member(text);
  return weight && !weight->empty() && *weight != "0";
}

std::string digest_field(core::Sha256& seen) { return std::string(kName) + "=:" + seen.base64() + ":"; }

void apply_digests(const Request& request, Response& response) {
  const bool whole =
      wants_digest(request.headers, kWantRepr) && response.status != 206 && !response.headers.has("Repr-Digest");
  const bool content = wants_digest(request.headers, kWantContent) && request.method != "HEAD";
  if (!whole && !content) return;
  core::Sha256 digest;
  if (const auto* text = std::get_if<std::string>(&response.body)) {
    digest.update(std::as_bytes(std::span(*text)));
  } else if (const auto* pieces = std::get_if<MemoryPieces>(&response.body)) {
    for (const std::span<const std::byte> piece : pieces->pieces) digest.update(piece);
  } else {
    return;  // made while it is sent
  }
  const std::string field = digest_field(digest);
  if (whole) response.headers.set("Repr-Digest", field);
  if (content) response.headers.set("Content-Digest", field);
}

std::string wanted_digest(const Headers& headers, const std::vector<std::span<const std::byte>>& pieces) {
  if (!wants_digest(headers, kWantRepr) && !wants_digest(headers, kWantContent)) return {};
  core::Sha256 digest;
  for (const std::span<const std::byte> piece : pieces) digest.update(piece);
  return digest_field(digest);
}

}  // namespace meshd::api
