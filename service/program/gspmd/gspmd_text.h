// Parses both spellings of a GSPMD sharding, without validating it: the text in braces, and the wire form of XLA's
// OpSharding, which JAX printed before 2023. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace meshd::program {

/// The parse of one sharding. `kinds` has the words replicated, maximal, manual, unknown, unreduced in the order in
/// which they came; lists are empty where they were not written.
struct GspmdWords {
  std::vector<std::string> kinds;
  std::vector<int64_t> device;      ///< device=N
  std::vector<int64_t> tile;        ///< devices=[...]
  std::vector<int64_t> devices;     ///< behind it: a list, or
  std::vector<int64_t> reshape;     ///< <=[...]
  std::vector<int64_t> transpose;   ///< T(...)
  std::vector<std::string> groups;  ///< last_tile_dims, last_tile_dim_replicate
  std::vector<int64_t> alike;       ///< shard_as N, shard_like N
};

/// Reads "{...}" or "{{...}, {...}}". Throws Error invalid_spec with what was expected at which character;
/// unsupported_attribute for the form that names a mesh.
std::vector<GspmdWords> read_gspmd_text(std::string_view text);

/// Reads OpSharding's wire form. Throws Error invalid_spec with the malformed byte, unsupported_attribute for shardings
/// that name a mesh.
std::vector<GspmdWords> read_gspmd_bytes(std::string_view bytes);

/// The text, truncated, for messages.
std::string quoted_gspmd(std::string_view text);
/// "[2,4]", truncated, for messages.
std::string in_brackets(const std::vector<int64_t>& numbers);

}  // namespace meshd::program
