// What one owner of requests may hold of an account of memory, so that nobody takes the room of everybody else: many
// slow bodies hold much for long.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "service/core/locked.h"

namespace meshd::core {

/// What the reservations of one owner hold together. Any thread.
class MemoryShare {
 public:
  explicit MemoryShare(int64_t limit_bytes) : limit_(limit_bytes) {}
  [[nodiscard]] int64_t limit_bytes() const { return limit_; }
  [[nodiscard]] int64_t held_bytes() const { return held_.load(std::memory_order_relaxed); }
  /// False where the owner would hold more than its share; nothing is held then.
  [[nodiscard]] bool try_take(int64_t bytes) {
    if (bytes > limit_ - held_) return false;  // looked at first: who is refused seldom takes the room of another
    if (held_.fetch_add(bytes) + bytes <= limit_) return true;
    held_.fetch_sub(bytes);
    return false;
  }
  void take_anyway(int64_t bytes) { held_.fetch_add(bytes); }
  void give_back(int64_t bytes) { held_.fetch_sub(bytes); }

 private:
  const int64_t limit_;
  std::atomic<int64_t> held_{0};
};
using MemoryShareRef = std::shared_ptr<MemoryShare>;

/// The shares of those who hold something, by name. Any thread.
class MemoryShareTable {
 public:
  /// `limit_bytes`: of each.
  explicit MemoryShareTable(int64_t limit_bytes) : limit_(limit_bytes) {}

  MemoryShareRef of(const std::string& owner) {
    return shares_.with([&](Shares& shares) {
      std::weak_ptr<MemoryShare>& known = shares.by_owner[owner];
      MemoryShareRef share = known.lock();
      if (share == nullptr) known = share = std::make_shared<MemoryShare>(limit_);
      // Those who hold nothing are forgotten, each time that there are twice as many as were left.
      if (shares.by_owner.size() > 2 * shares.left + kFew) {
        std::erase_if(shares.by_owner, [](const auto& entry) { return entry.second.expired(); });
        shares.left = shares.by_owner.size();
      }
      return share;
    });
  }

 private:
  static constexpr size_t kFew = 64;
  struct Shares {
    std::map<std::string, std::weak_ptr<MemoryShare>> by_owner;
    size_t left = 0;  ///< when it was last cleaned
  };
  const int64_t limit_;
  Locked<Shares> shares_;
};

}  // namespace meshd::core
