// Non-temporal stores, for outputs larger than the cache: they save the read of every line before it is written.
#pragma once

#include <cstddef>
#include <cstdint>

namespace meshd::kernels {

/// memcpy with non-temporal stores for full cache lines of the target. Call stream_fence before other threads read it.
void stream_copy(std::byte* to, const std::byte* from, int64_t bytes);

/// Orders stores that go around the cache, of stream_copy and of movement_loops, before what follows.
void stream_fence();

}  // namespace meshd::kernels
