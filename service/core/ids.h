// Ids: UUIDv7 with a prefix for created objects (arr_, ses_, job_), digests for interned ones (mesh_, prog_).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "service/core/clock.h"

namespace meshd::core {

/// `prefix` + "_" + a UUIDv7 (RFC 9562) in lower-case hex with dashes. Ids made later by one process sort later. Any
/// thread.
std::string new_id(std::string_view prefix, const Clock& clock);

/// Lower-case hex SHA-256 of `bytes`, 64 characters.
std::string sha256_hex(std::string_view bytes);

/// `prefix` + "_" + the first 32 hex digits (128 bits) of the SHA-256 of `content`.
std::string digest_id(std::string_view prefix, std::string_view content);

/// Several ids as one text, with spaces between, and back.
std::string join_ids(const std::vector<std::string>& ids);
std::vector<std::string> split_ids(const std::string& text);

/// `count` random bytes from the system, as lower-case hex.
std::string random_hex(int count);

/// True when `id` is `prefix`_ followed by what new_id or digest_id may have made: safe to put into a path or a log.
bool looks_like_id(std::string_view id, std::string_view prefix);

}  // namespace meshd::core
