// Base64 (RFC 4648 section 4): encoded by OpenSSL, decoded by a table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace meshd::api {

/// Appends the text, which is copied once.
void append_base64(std::string& out, std::span<const std::byte> bytes);
std::string base64_encode(std::span<const std::byte> bytes);
/// Decoded bytes of a text, by its length and padding; nothing where it cannot be base64.
std::optional<int64_t> base64_size(std::string_view text);
/// Decodes into `out`, which has base64_size bytes. False when the text is no base64.
bool base64_decode(std::string_view text, std::span<std::byte> out);

}  // namespace meshd::api
