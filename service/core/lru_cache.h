// A cache bounded by the number of its entries and by their bytes, which evicts the least recently used ones. Not
// locked: the owner is.
//
// Example, capacity 2: insert a, insert b, find a, insert c -> b is evicted, a and c stay.
// Example, 100 bytes: insert a (60), insert b (30), insert c (40) -> a is evicted; insert d (200) -> d is not kept.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
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
  explicit LruCache(size_t capacity, int64_t most_bytes = INT64_MAX)
      : capacity_(std::max<size_t>(capacity, 1)), most_bytes_(most_bytes) {}

  /// The value of `key`, which counts as used now, or null. The pointer is valid until the next insert.
  const Value* find(std::string_view key) {
    const auto found = by_key_.find(key);
    if (found == by_key_.end()) return nullptr;
    entries_.splice(entries_.begin(), entries_, found->second);
    return &found->second->value;
  }

  /// Keeps `value` unless the key has one already, and gives the one that is kept: of two threads that did the same
  /// work, both go on with the first result. `bytes`: of key and value; what is larger than the cache is not kept.
  Value insert(std::string key, Value value, int64_t bytes = 0) {
    if (const Value* known = find(key)) return *known;
    if (bytes > most_bytes_) return value;
    entries_.push_front({std::move(key), std::move(value), bytes});
    try {
      by_key_.emplace(entries_.front().key, entries_.begin());
    } catch (...) {
      entries_.pop_front();
      throw;
    }
    bytes_ += bytes;
    while (entries_.size() > capacity_ || bytes_ > most_bytes_) {
      bytes_ -= entries_.back().bytes;
      by_key_.erase(entries_.back().key);
      entries_.pop_back();
    }
    return entries_.front().value;
  }

  /// The same, but a value that the key has is given up.
  Value replace(std::string key, Value value, int64_t bytes = 0) {
    erase(key);
    return insert(std::move(key), std::move(value), bytes);
  }

  /// Nothing where there is no such key.
  void erase(std::string_view key) {
    const auto found = by_key_.find(key);
    if (found == by_key_.end()) return;
    const auto entry = found->second;
    bytes_ -= entry->bytes;
    by_key_.erase(found);
    entries_.erase(entry);
  }

  [[nodiscard]] size_t size() const { return entries_.size(); }
  /// Of all entries, as insert() was told.
  [[nodiscard]] int64_t bytes() const { return bytes_; }
  /// Of the entries and the bytes that it may have, the larger share: 0 to 1.
  [[nodiscard]] double fullness() const {
    return std::max(static_cast<double>(entries_.size()) / static_cast<double>(capacity_),
                    static_cast<double>(bytes_) / static_cast<double>(std::max<int64_t>(most_bytes_, 1)));
  }

 private:
  struct Entry {
    std::string key;
    Value value;
    int64_t bytes;
  };
  using Entries = std::list<Entry>;  // most recently used first

  size_t capacity_;
  int64_t most_bytes_;
  int64_t bytes_ = 0;
  Entries entries_;
  std::unordered_map<std::string_view, typename Entries::iterator> by_key_;  // keys are those of entries_
};

}  // namespace meshd::core
