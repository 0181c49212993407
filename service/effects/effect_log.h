// The effect log of a session: committed entries by sequence number, and subscriptions to new ones.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "service/effects/effect_recorder.h"
#include "service/effects/wake_table.h"
#include "storage/catalog.h"

namespace meshd::effects {

/// Where an effect happened: kept behind the values of its row.
struct EffectOrigin {
  int64_t point = 0;
  int64_t device = 0;
};
EffectOrigin place_from_text(std::string_view text);

/// Any thread.
class EffectLog {
 public:
  explicit EffectLog(storage::Catalog& catalog) : catalog_(catalog) {}

  /// Committed entries with sequence > after, at most limit (1..1000), up to one that is not admitted.
  std::vector<storage::EffectRow> after(const std::string& session, int64_t after, int64_t limit,
                                        const storage::AdmitRow& admit = {});

  /// Entries of an outgoing queue, by number.
  std::vector<storage::EffectRow> outgoing(const std::string& session, const std::string& queue, int64_t after,
                                           int64_t limit, const storage::AdmitRow& admit = {});

  /// `wake` runs after entries of the session were committed, on the thread that committed them; it must not block.
  /// Dropping the returned handle ends it.
  using Subscription = WakeTable::Subscription;
  Subscription subscribe(const std::string& session, std::function<void()> wake) {
    return wakes_.subscribe(session, std::move(wake));
  }
  /// Tells the session's readers. After the commit, never before.
  void notify(const std::string& session) { wakes_.notify(session); }

 private:
  storage::Catalog& catalog_;
  WakeTable wakes_;
};

}  // namespace meshd::effects
