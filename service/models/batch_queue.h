// Which waiting requests of a model run together, and when: Triton's dynamic batching, fair by principal. Pure: the
// caller gives the time and holds the lock.
//
// Requests of one principal and one shape key run together: a program may mix the rows of a batch, and nobody sees rows
// of others. Principals take turns; those of one are taken by priority level (1 first), within a level in the order of
// arrival.
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

  /// Where it throws, nothing has changed.
  void push(Entry entry) {
    const auto found = find(entry.principal);
    Queues added;
    if (found == queues_.end()) added.push_back(PrincipalQueue{entry.principal, {}, 0});
    PrincipalQueue& queue = added.empty() ? *found : added.front();
    const auto [level, is_new] = queue.levels.try_emplace(entry.priority);
    try {
      level->second.push_back(std::move(entry));
    } catch (...) {
      if (is_new) queue.levels.erase(level);  // no level is empty
      throw;
    }
    ++queue.size;
    ++size_;
    queues_.splice(queues_.end(), added);
  }

  /// Takes a request out that need not run any more; false: it is not here.
  bool remove(const T& handle) {
    for (auto queue = queues_.begin(); queue != queues_.end(); ++queue) {
      for (auto& [priority, level] : queue->levels) {
        const auto entry =
            std::find_if(level.begin(), level.end(), [&](const Entry& other) { return other.handle == handle; });
        if (entry == level.end()) continue;
        level.erase(entry);
        forget_one(*queue, priority);
        if (queue->size == 0) queues_.erase(queue);
        return true;
      }
    }
    return false;
  }

  /// The first principal, by turns, whose requests need not wait for more is served. Where it throws, nothing has
  /// changed.
  Decision take(core::SteadyTime now) {
    Decision out;
    for (auto queue = queues_.begin(); queue != queues_.end(); ++queue) {
      const Picked picked = pick(*queue);
      const core::SteadyTime end = oldest(*queue) + rules_.most_delay;
      if (picked.preferred > 0 || picked.is_full || now >= end) {
        out.batch = take_first(queue, picked.preferred > 0 ? picked.preferred : picked.levels.size());
        out.look_again.reset();
        return out;
      }
      out.look_again = std::min(out.look_again.value_or(end), end);
    }
    return out;
  }

  [[nodiscard]] int64_t size() const { return size_; }
  [[nodiscard]] int64_t size_of(const std::string& principal) const {
    const auto found =
        std::find_if(queues_.begin(), queues_.end(), [&](const PrincipalQueue& t) { return t.principal == principal; });
    return found == queues_.end() ? 0 : found->size;
  }

 private:
  // The requests of one principal; never empty, and no level of it is.
  struct PrincipalQueue {
    std::string principal;
    std::map<int64_t, std::deque<Entry>> levels;
    int64_t size = 0;
  };
  using Queues = std::list<PrincipalQueue>;  // the first one is served next
  struct Picked {
    std::vector<int64_t> levels;  // of each entry: the first ones of their levels, in this order
    size_t preferred = 0;         // so many of them have a preferred size together, the largest there is; 0: none
    bool is_full = false;         // waiting longer makes the batch no larger
  };

  typename Queues::iterator find(const std::string& principal) {
    return std::find_if(queues_.begin(), queues_.end(),
                        [&](const PrincipalQueue& queue) { return queue.principal == principal; });
  }

  // What would run if nothing else came. A request that does not fit lets those behind it wait.
  [[nodiscard]] Picked pick(const PrincipalQueue& queue) const {
    Picked out;
    int64_t rows = 0;
    const std::string& key = queue.levels.begin()->second.front().shape_key;
    for (const auto& [priority, level] : queue.levels) {
      for (const Entry& entry : level) {
        if (entry.shape_key != key) break;
        out.is_full = rows + entry.rows > rules_.most_rows;
        if (out.is_full) return out;
        rows += entry.rows;
        out.levels.push_back(priority);
        const auto& preferred = rules_.preferred_rows;
        if (std::binary_search(preferred.begin(), preferred.end(), rows)) out.preferred = out.levels.size();
      }
    }
    out.is_full = rows == rules_.most_rows;
    return out;
  }

  Batch take_first(typename Queues::iterator queue, size_t count) {
    const Picked picked = pick(*queue);
    Batch out;
    out.handles.reserve(count);  // nothing below allocates
    for (size_t i = 0; i < count; ++i) {
      const int64_t priority = picked.levels[i];
      std::deque<Entry>& level = queue->levels.at(priority);
      out.rows += level.front().rows;
      out.handles.push_back(std::move(level.front().handle));
      level.pop_front();
      forget_one(*queue, priority);
    }
    // Who was served last moves behind the others.
    if (queue->size == 0) {
      queues_.erase(queue);
    } else {
      queues_.splice(queues_.end(), queues_, queue);
    }
    return out;
  }

  [[nodiscard]] static core::SteadyTime oldest(const PrincipalQueue& queue) {
    core::SteadyTime out = core::SteadyTime::max();
    for (const auto& [priority, level] : queue.levels) out = std::min(out, level.front().arrived);
    return out;
  }

  void forget_one(PrincipalQueue& queue, int64_t priority) {
    --size_;
    --queue.size;
    if (queue.levels.at(priority).empty()) queue.levels.erase(priority);
  }

  const BatchRules rules_;
  Queues queues_;
  int64_t size_ = 0;
};

}  // namespace meshd::models
