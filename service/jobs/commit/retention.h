// Retention of finished jobs and idempotency keys: what is over for long leaves the database, a little at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>

#include "service/core/clock.h"
#include "storage/catalog.h"

namespace meshd::jobs {

/// The wall time that finished jobs and keys are aged by. The machine's clock may be set wrong, by years: time that ran
/// ahead of what has passed by more than a day is not believed before the server has run for a day with it. What has
/// passed since the last sweep is counted by the steady clock; over a restart it is not known, and a server that was
/// off for longer than a day waits a day. Time that ran back is believed at once: it keeps what there is for longer.
///
/// Example: sweeps at noon on Monday (believed), then at 12:01, when the clock says Tuesday in ten years: not believed,
/// nor on any sweep of the next 24 hours. If the clock is right again within these, it is believed at once, and nothing
/// was deleted.
class RetentionTime {
 public:
  static constexpr std::chrono::hours kMostJump{24};

  /// Goes on from the last sweep that the catalog knows of. `on_jump`: called when time is no longer believed, with how
  /// far it ran ahead; may be null.
  RetentionTime(storage::Catalog& catalog, const core::Clock& clock,
                std::function<void(std::chrono::seconds)> on_jump = nullptr);

  /// The time to age by now, which is kept for the next start; nothing while it is not believed. Throws what
  /// Catalog::write throws. One thread at a time.
  std::optional<core::WallTime> now();

 private:
  struct Moment {
    core::WallTime wall;
    core::SteadyTime steady;
  };
  [[nodiscard]] static core::WallTime::duration jump(const Moment& from, const Moment& to);

  storage::Catalog& catalog_;
  const core::Clock& clock_;
  const std::function<void(std::chrono::seconds)> on_jump_;
  std::optional<Moment> last_;     ///< that was believed
  std::optional<Moment> doubted_;  ///< since when the time runs that is not believed
};

/// How long an Idempotency-Key returns its first response, counted from its first request. Keys of jobs that are not
/// over stay until they are.
inline constexpr std::chrono::hours kKeyLife{24};

/// Of the keys of one principal as many are kept: the newest.
inline constexpr int64_t kMostKeys = 1'000'000;

/// Removes idempotency records that are older, or too many; returns how many. `now`: nothing where none may get too old
/// (RetentionTime). Throws what Catalog::write throws. Any thread.
int64_t expire_idempotency_keys(storage::Catalog& catalog, std::optional<core::WallTime> now, int64_t most = kMostKeys);

/// Which finished jobs are kept. A job that an Idempotency-Key still returns is kept in any case.
struct JobRetention {
  int64_t count = 0;            ///< the newest of each principal; 0: any number
  std::chrono::seconds time{};  ///< since their end; 0: for ever
  int64_t answer_bytes = 0;     ///< the newest of each principal until their answers have so many; 0: any number
};

/// Deletes the others; returns how many. `now`: nothing where no job may get too old (RetentionTime). A transaction
/// deletes at most a thousand jobs, and no more than 1 MiB of answers unless one answer has more, so that nobody waits
/// for it long. Throws what Catalog::write throws. Any thread.
///
/// Example: count 2 and time 1 h, and jobs of one principal that ended 5, 20, 30 and 90 minutes ago: the last two go.
int64_t expire_jobs(storage::Catalog& catalog, const JobRetention& kept, std::optional<core::WallTime> now);

}  // namespace meshd::jobs
