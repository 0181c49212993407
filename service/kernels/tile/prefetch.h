// Prefetching of memory in parts, between parts of other work. Private to this folder.
#pragma once

#include "service/kernels/cpu.h"
#include "service/kernels/tile/tile_program.h"

namespace meshd::kernels {

/// Parts [part, part + count) of the `parts` parts of the range's lines. Inlined by force: GCC takes a function that
/// only prefetches for one without effects, and leaves calls of it out.
[[gnu::always_inline]] inline void prefetch_parts(const MemoryRange& range, int64_t part, int64_t count,
                                                  int64_t parts) {
  const int64_t lines = (range.bytes + kLineBytes - 1) / kLineBytes;
  for (int64_t line = lines * part / parts; line < lines * (part + count) / parts; ++line)
    __builtin_prefetch(range.begin + line * kLineBytes);
}

}  // namespace meshd::kernels
