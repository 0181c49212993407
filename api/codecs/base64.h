// Base64 (RFC 4648 section 4), by OpenSSL's block coder.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace meshd::api {

std::string base64_encode(std::span<const std::byte> bytes);
/// Nothing when the text is no base64 with its padding.
std::optional<std::vector<std::byte>> base64_decode(std::string_view text);

}  // namespace meshd::api
