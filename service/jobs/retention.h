// Retention of finished jobs and idempotency keys.
#pragma once

#include <chrono>
#include <cstdint>

#include "service/core/clock.h"
#include "storage/catalog.h"

namespace meshd::jobs {

/// How long an Idempotency-Key returns its first response, counted from its first request. Keys of jobs that are not
/// over stay until they are.
inline constexpr std::chrono::hours kKeyLife{24};

/// Removes idempotency records older than that; returns how many. Throws what Catalog::write throws. Any thread.
int64_t expire_idempotency_keys(storage::Catalog& catalog, core::WallTime now);

}  // namespace meshd::jobs
