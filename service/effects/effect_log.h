// The log of a session as readers see it: committed entries by sequence number, and a nudge when there may be more.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "service/core/locked.h"
#include "service/effects/recorder.h"
#include "storage/catalog.h"

namespace meshd::effects {

/// Where an effect happened: kept behind the values of its row.
struct EffectPlace {
  int64_t point = 0;
  int64_t device = 0;
};
EffectPlace place_from_text(std::string_view text);

/// A recorded effect as its row keeps it: the values as a compact binary document (dtype, dims, bytes each).
std::string values_to_text(const std::vector<OwnedValue>& values);
std::vector<OwnedValue> values_from_text(std::string_view text);
storage::EffectRow to_row(const RecordedEffect& effect, const std::string& job, int64_t step);

/// Any thread.
class EffectLog {
 public:
  explicit EffectLog(storage::Catalog& catalog) : catalog_(catalog) {}

  /// Committed entries with sequence > after, at most limit (1..1000).
  std::vector<storage::EffectRow> after(const std::string& session, int64_t after, int64_t limit);

  /// `wake` runs after entries of the session were committed, on the thread that committed them; it must not block.
  /// Dropping the returned handle ends it.
  using Subscription = std::shared_ptr<void>;
  Subscription subscribe(const std::string& session, std::function<void()> wake);
  /// Tells the session's readers. After the commit, never before.
  void notify(const std::string& session);

 private:
  struct Table {
    uint64_t next = 0;
    std::multimap<std::string, std::pair<uint64_t, std::shared_ptr<std::function<void()>>>> readers;
  };
  storage::Catalog& catalog_;
  std::shared_ptr<core::Locked<Table>> table_ = std::make_shared<core::Locked<Table>>();
};

}  // namespace meshd::effects
