// Infeed queues: clients append, programs consume; one for each name in a session. An acknowledged entry is durable and
// is removed when the job that took it commits, so that a job that fails or starts again reads it again.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "service/core/clock.h"
#include "service/effects/infeed_entry.h"
#include "service/effects/wake_table.h"
#include "storage/catalog.h"

namespace meshd::effects {

/// What a session's queues may hold.
struct InfeedLimits {
  int64_t entries = 4096;              ///< waiting in one queue
  int64_t of_session = 16'384;         ///< waiting in all queues of a session
  int64_t queues = 256;                ///< of a session, that ever had an entry
  int64_t bytes = int64_t{256} << 20;  ///< waiting in all queues of a session
  int64_t name_bytes = 255;
};

/// Any thread; it waits for the disk.
class InfeedQueues {
 public:
  InfeedQueues(storage::Catalog& catalog, const core::Clock& clock, InfeedLimits limits = {})
      : catalog_(catalog), clock_(clock), limits_(limits) {}

  struct Appended {
    int64_t number = 0;
    bool is_new = true;  ///< false: it was there, a repetition changed nothing
  };
  /// Appends an entry; durable when it returns. `number`: the expected number of the entry, which makes a retry
  /// idempotent. `key` does so, too: stored with the entry, whose number is what was made. Throws queue_full over the
  /// limits, conflict for another number than the next one (unless that entry has the same content), not_found,
  /// session_closed, invalid_request for names that are too long.
  Appended append(const std::string& session, const InfeedEntry& entry, std::optional<int64_t> number,
                  std::optional<storage::IdempotencyRow> key = std::nullopt);
  /// The next entries after `after` that no job has used up, in order: a few, or one where they are large.
  std::vector<InfeedEntry> after(const std::string& session, const std::string& queue, int64_t after);
  std::vector<storage::InfeedQueueRow> queues(const std::string& session);
  /// Empties a queue. Throws conflict while a job of the session is not over.
  int64_t drop(const std::string& session, const std::string& queue);

  /// `wake` runs after an entry was appended in the session; it must not block.
  WakeTable::Subscription subscribe(const std::string& session, std::function<void()> wake) {
    return wakes_.subscribe(session, std::move(wake));
  }
  void notify(const std::string& session) { wakes_.notify(session); }

 private:
  storage::Catalog& catalog_;
  const core::Clock& clock_;
  const InfeedLimits limits_;
  WakeTable wakes_;
};

}  // namespace meshd::effects
