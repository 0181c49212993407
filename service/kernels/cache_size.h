// Sizes of the caches of this machine, read from the system once: kernels choose blocks and non-temporal stores by
// them.
#pragma once

#include <cstdint>

namespace meshd::kernels {

/// Bytes of output from which on stores should bypass the cache: one and a half times the last cache before memory,
/// which counts as 32 MiB at most, because a virtual machine reports the cache of its host. Any thread.
int64_t streaming_bytes();

/// Bytes of one core's second level cache (512 KiB when the system does not report it). Any thread.
int64_t second_level_bytes();

}  // namespace meshd::kernels
