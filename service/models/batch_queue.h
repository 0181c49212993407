// Which waiting requests of a model run together, and when: Triton's dynamic batching, fair by principal. Pure: the
// caller gives the time and holds the lock.
//
// Requests are taken by priority level (1 first), within a level principals alternate, within a principal in the order
// of arrival. Only requests of one shape key run together.
//
// Example, at most 8 rows, preferred size 4, delay 500 us: requests of 2, 1 and 1 row run together when the third comes
// (4 rows); requests of 2 and 1 row run 500 us after the first of them came.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "service/core/clock.h"

namespace meshd::models {

/// What decides about batches.
struct BatchRules {
  int64_t most_rows = 1;                     ///< of a batch; a request never has more
  std::vector<int64_t> preferred_rows = {};  ///< a batch of one of these sizes does not wait; ascending
  std::chrono::microseconds most_delay{0};   ///< a request waits for others for so long
};

/// T is a handle that can be compared and copied.
template <typename T>
class BatchQueue {
 public:
  struct Entry {
    T handle;
    std::string principal;
    std::string shape_key;  ///< requests with another one do not run together
    int64_t rows = 1;
    int64_t priority = 1;
    core::SteadyTime arrived;
  };
  struct Batch {
    std::vector<T> handles;  ///< in the order of the rows
    int64_t rows = 0;
  };
  /// What to do now: run a batch, or look again at a time, or neither when nothing waits.
  struct Decision {
    std::optional<Batch> batch;
    std::optional<core::SteadyTime> look_again;
  };

  explicit BatchQueue(BatchRules rules) : rules_(std::move(rules)) {}

  void push(Entry entry) {
    ++size_;
    ++counts_[entry.principal];
    Level& level = levels_[entry.priority];
    for (PrincipalQueue& queue : level) {
      if (queue.front().principal != entry.principal) continue;
      queue.push_back(std::move(entry));
      return;
    }
    level.emplace_back().push_back(std::move(entry));
  }

  /// Takes a request out that need not run any more; false: it is not here.
  bool remove(const T& handle) {
    for (auto level = levels_.begin(); level != levels_.end(); ++level) {
      for (auto queue = level->second.begin(); queue != level->second.end(); ++queue) {
        const auto entry =
            std::find_if(queue->begin(), queue->end(), [&](const Entry& other) { return other.handle == handle; });
        if (entry == queue->end()) continue;
        forget(*entry);
        queue->erase(entry);
        if (queue->empty()) level->second.erase(queue);
        if (level->second.empty()) levels_.erase(level);
        return true;
      }
    }
    return false;
  }

  Decision take(core::SteadyTime now) {
    if (size_ == 0) return {};
    const Picked picked = pick();
    if (picked.preferred > 0) return {take_first(picked, picked.preferred), std::nullopt};
    const core::SteadyTime end = oldest() + rules_.most_delay;
    if (picked.is_full || now >= end) return {take_first(picked, picked.entries.size()), std::nullopt};
    return {std::nullopt, end};
  }

  [[nodiscard]] int64_t size() const { return size_; }
  [[nodiscard]] int64_t size_of(const std::string& principal) const {
    const auto found = counts_.find(principal);
    return found == counts_.end() ? 0 : found->second;
  }

 private:
  using PrincipalQueue = std::deque<Entry>;  // of one principal; never empty
  using Level = std::list<PrincipalQueue>;   // the first one is served next
  using Levels = std::map<int64_t, Level>;
  // Where an entry is: at the front of its queue once those that were picked before it are taken.
  struct Place {
    typename Levels::iterator level;
    typename Level::iterator queue;
  };
  struct Picked {
    std::vector<Place> entries;
    size_t preferred = 0;  // so many of them have a preferred size together, the largest there is; 0: none
    bool is_full = false;  // waiting longer makes the batch no larger
  };

  // What would run next if nothing else came. A request that does not fit lets those behind it of its principal wait.
  [[nodiscard]] Picked pick() {
    Picked out;
    int64_t rows = 0;
    const std::string& key = levels_.begin()->second.front().front().shape_key;
    for (auto level = levels_.begin(); level != levels_.end(); ++level) {
      std::vector<std::pair<typename Level::iterator, size_t>> places;
      for (auto queue = level->second.begin(); queue != level->second.end(); ++queue) places.emplace_back(queue, 0);
      for (bool any = true; any && !out.is_full;) {
        any = false;
        for (auto& [queue, next] : places) {
          if (next == queue->size()) continue;
          const Entry& entry = (*queue)[next];
          if (entry.shape_key != key || rows + entry.rows > rules_.most_rows) {
            out.is_full |= entry.shape_key == key;
            next = queue->size();
            continue;
          }
          any = true;
          ++next;
          rows += entry.rows;
          out.entries.push_back({level, queue});
          const auto& preferred = rules_.preferred_rows;
          if (std::binary_search(preferred.begin(), preferred.end(), rows)) out.preferred = out.entries.size();
        }
      }
      out.is_full |= rows == rules_.most_rows;
      if (out.is_full) break;
    }
    return out;
  }

  Batch take_first(const Picked& picked, size_t count) {
    Batch out;
    for (size_t i = 0; i < count; ++i) {
      const auto [level, queue] = picked.entries[i];
      out.rows += queue->front().rows;
      forget(queue->front());
      out.handles.push_back(std::move(queue->front().handle));
      queue->pop_front();
      // Those who were served last move behind the others.
      if (!queue->empty()) {
        level->second.splice(level->second.end(), level->second, queue);
        continue;
      }
      level->second.erase(queue);
      if (level->second.empty()) levels_.erase(level);
    }
    return out;
  }

  [[nodiscard]] core::SteadyTime oldest() const {
    core::SteadyTime out = core::SteadyTime::max();
    for (const auto& [priority, level] : levels_) {
      for (const PrincipalQueue& queue : level) out = std::min(out, queue.front().arrived);
    }
    return out;
  }

  void forget(const Entry& entry) {
    --size_;
    const auto found = counts_.find(entry.principal);
    if (--found->second == 0) counts_.erase(found);
  }

  const BatchRules rules_;
  Levels levels_;
  std::map<std::string, int64_t> counts_;
  int64_t size_ = 0;
};

}  // namespace meshd::models
