// Quota accounting of arrays: count and bytes of each principal. An array is counted from before its first byte until
// its data is deleted: deleted, donated, lost, or never completed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "service/quotas/limits.h"

namespace meshd::quotas {

struct ArrayTotals {
  int64_t arrays = 0;
  int64_t bytes = 0;
};

/// The part of an array, or of bytes beside arrays, in its principal's totals; given back when the last copy is
/// destroyed. One thread at a time.
class ArrayCharge {
 public:
  /// So many bytes more, for what grows as it comes. Throws quota_exceeded; then nothing has changed.
  void grow(int64_t bytes);
  /// Gives so many bytes of it back: they have not come.
  void shrink(int64_t bytes);
  /// Gives it back now; nothing happens when that was done before.
  void release() { held_.reset(); }

 private:
  friend class ArrayLedger;
  class Held;
  std::shared_ptr<Held> held_;  ///< null: nothing is held
};

/// Any thread. Charges may outlive it.
class ArrayLedger {
 public:
  explicit ArrayLedger(const Limits& limits);

  /// Counts one array more. Throws limit_reached, quota_exceeded; then nothing is counted. Of several at once, those
  /// that fit are counted and no more.
  ArrayCharge charge(const std::string& principal, int64_t bytes);
  /// Bytes beside a principal's arrays: a new version while the old one is there, values of requests that wait as jobs.
  /// `what`: as a message calls them. kAnyway: whatever the limit is, for what was accepted before a restart. Throws
  /// quota_exceeded; then nothing is counted.
  enum class Fit : uint8_t { kWithin, kAnyway };
  ArrayCharge charge_bytes(const std::string& principal, int64_t bytes, std::string_view what, Fit fit = Fit::kWithin);
  /// What the database has when the server starts, whatever the limits are.
  void count(const std::string& principal, ArrayTotals totals);
  /// The part of an array that `count` has counted.
  ArrayCharge counted(const std::string& principal, int64_t bytes);

  [[nodiscard]] ArrayTotals totals(std::string_view principal) const;

 private:
  friend class ArrayCharge::Held;
  struct Totals;
  ArrayCharge held(const std::string& principal, ArrayTotals part) const;

  const Limits limits_;
  std::shared_ptr<Totals> totals_;
};

}  // namespace meshd::quotas
