// Retention of finished jobs and idempotency keys: what is over for long leaves the database, a little at a time.
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

/// Which finished jobs are kept. A job that an Idempotency-Key still returns is kept in any case.
struct JobRetention {
  int64_t count = 0;            ///< the newest of each principal; 0: any number
  std::chrono::seconds time{};  ///< since their end; 0: for ever
};

/// Deletes the others; returns how many. A transaction deletes at most a thousand jobs, and no more than 1 MiB of
/// answers unless one answer has more, so that nobody waits for it long. Throws what Catalog::write throws. Any thread.
///
/// Example: count 2 and time 1 h, and jobs of one principal that ended 5, 20, 30 and 90 minutes ago: the last two go.
int64_t expire_jobs(storage::Catalog& catalog, const JobRetention& kept, core::WallTime now);

}  // namespace meshd::jobs
