// Sizes of the caches of this machine, read from the system once: kernels choose blocks and non-temporal stores by
// them.
#pragma once

#include <cstdint>

namespace meshd::kernels {

/// Bytes of the last cache before memory; 32 MiB where the system does not say. Any thread.
int64_t last_cache_bytes();

}  // namespace meshd::kernels
