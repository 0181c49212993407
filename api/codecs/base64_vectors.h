// Base64 in vectors: 32 characters at a time, on processors that have the instructions.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace meshd::api {

/// Decodes whole vectors of `text`, from its beginning on; every 32 characters are 24 bytes of `out`. Returns how many
/// characters are decoded: it stops at the first vector that has a character that is none of base64 (RFC 4648 section
/// 4; padding is none), and before the last 32 bytes of `out`. What follows the decoded bytes in `out` may be
/// overwritten. 0 where the processor lacks the instructions. Any thread.
size_t decode_base64_vectors(std::string_view text, std::span<std::byte> out);

/// The reverse: every 24 bytes are 32 characters at `text`, which has room for all of `bytes`. Returns how many bytes
/// are encoded, a multiple of 24; the last 31 may be left. Any thread.
size_t encode_base64_vectors(std::span<const std::byte> bytes, char* text);

}  // namespace meshd::api
