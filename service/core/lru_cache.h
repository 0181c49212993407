// A cache of a bounded number of entries that evicts the least recently used one. Not locked: the owner is.
//
// Example, capacity 2: insert a, insert b, find a, insert c -> b is evicted, a and c stay.
#pragma once

#include <cstddef>
#include <list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace meshd::core {

/// Values by text keys. One thread at a time.
template <typename Value>
class LruCache {
 public:
  /// At least one entry is kept.
  explicit LruCache(size_t capacity) : capacity_(capacity == 0 ? 1 : capacity) {}

  /// The value of `key`, which counts as used now, or null. The pointer is valid until the next insert.
  const Value* find(std::string_view key) {
    const auto found = by_key_.find(key);
    if (found == by_key_.end()) return nullptr;
    entries_.splice(entries_.begin(), entries_, found->second);
    return &found->second->second;
  }

  /// Keeps `value` unless the key has one already, and gives the one that is kept: of two threads that did the same
  /// work, both go on with the first result.
  const Value& insert(std::string key, Value value) {
    if (const Value* known = find(key)) return *known;
    if (entries_.size() == capacity_) {
      by_key_.erase(entries_.back().first);
      entries_.pop_back();
    }
    entries_.emplace_front(std::move(key), std::move(value));
    by_key_.emplace(entries_.front().first, entries_.begin());
    return entries_.front().second;
  }

  [[nodiscard]] size_t size() const { return entries_.size(); }

 private:
  using Entries = std::list<std::pair<const std::string, Value>>;  // most recently used first

  size_t capacity_;
  Entries entries_;
  std::unordered_map<std::string_view, typename Entries::iterator> by_key_;  // keys are those of entries_
};

}  // namespace meshd::core
