// A fuzz target is a few formats in one binary; the environment's FUZZ_FORMAT says which one a process reads, so that
// each has its own corpus and its own time. tests/fuzz/target.cpp hands libFuzzer's inputs to it.
#pragma once

#include <span>
#include <string_view>

namespace meshd::fuzz {

struct Format {
  std::string_view name;
  /// Takes any bytes; throws core::Error to refuse them, and ends the process where a promise is broken.
  void (*read)(std::string_view bytes);
};

/// The formats of this binary, which has defined them in its own source.
std::span<const Format> formats();

}  // namespace meshd::fuzz
