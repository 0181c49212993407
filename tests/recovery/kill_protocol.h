// What kill_child and kill_test agree on: the lines on the pipe, and what the data of an array is.
//
// Lines, one write each (shorter than PIPE_BUF, so they never mix). "i" says what is about to be tried, "a" what was
// acknowledged:
//   a c ARRAY               array made
//   i d ARRAY, a d ARRAY    array deleted
//   i x ARRAY OUTPUT, a x   ARRAY donated and OUTPUT made, in one transaction
//   a e FIRST COUNT TAG     effects FIRST.. with values TAG#0, TAG#1, ...
//   a j JOB NUMBER          job accepted
//   a k KEY BODY            idempotent answer kept
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <string_view>

namespace meshd::testing {

inline constexpr std::string_view kKillSession = "ses_kill";
inline constexpr std::string_view kKillRoute = "POST /v1/run";

/// FNV-1a: the same in both processes.
inline uint64_t name_hash(std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return hash;
}

inline int64_t shard_count_of(std::string_view array) { return 1 + static_cast<int64_t>(name_hash(array) % 3); }

/// The bytes of one shard follow from its name: nobody has to remember them.
inline std::string shard_payload(const std::string& array, int64_t shard) {
  std::mt19937_64 random(name_hash(array + "/" + std::to_string(shard)));
  const uint64_t length = random() % 8 == 0 ? random() % 700'000 : random() % 9'000;
  std::string bytes(static_cast<size_t>(length), '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

}  // namespace meshd::testing
