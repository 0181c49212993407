// Bugs that are planted on purpose, to show that the checker of histories (tests/history) finds such bugs. They exist
// only in the test binary meshd_planted, whose sources with a site are compiled a second time with MESHD_PLANTED_BUGS;
// in meshd is_planted() is a constant and the sites are gone. PLANTED_BUG in the environment chooses one at the
// start, by the name in the table.
#pragma once

namespace meshd::core {

/// One row for each bug, with its site.
enum class PlantedBug {
  kNone,
  kAcknowledgeBeforeCommit,  ///< acknowledge_before_commit: storage/writer.cpp, the answer before COMMIT
  kSkipSequenceNumber,       ///< skip_sequence_number: storage/rows/effect_rows.cpp, a gap in the log
  kDeliverToWrongSession,    ///< deliver_to_wrong_session: storage/rows/effect_rows.cpp, all effects in one log
  kLoseIdempotency,          ///< lose_idempotency_on_restart: storage/rows/recovery_rows.cpp, keys are forgotten
  kSwapTwoJobs,              ///< swap_two_jobs: service/sessions/session_queue.cpp, a job has its turn one too early
  kOrderByCompletion,        ///< order_by_completion: service/sessions/session_queue.cpp, every job has its turn
  kReuseDonatedStoreEarly,   ///< reuse_donated_store_early: service/jobs/commit/job_failure.cpp, a failed job's input
                             ///< is spoilt
  kStreamBeforeCommit,  ///< stream_before_commit: service/jobs/commit/job_commit.cpp, effects of a job that is not done
  kAppendTwiceOnRetry,  ///< append_twice_on_retry: service/jobs/commit/job_commit.cpp, a second attempt logs twice
};

#ifdef MESHD_PLANTED_BUGS
/// True when the environment names this bug. Any thread. Defined in tests/history/planted_bugs.cpp.
[[nodiscard]] bool is_planted(PlantedBug bug);
#else
[[nodiscard]] constexpr bool is_planted(PlantedBug) { return false; }
#endif

}  // namespace meshd::core
