// Pending arrays: announced, and waiting for parts that clients send (assembly.h). They are in memory only. This table
// bounds them: so many for each principal, so many bytes of parts for all of them, and an end for each that gets no
// part for a while.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "service/arrays/array.h"
#include "service/core/clock.h"
#include "service/core/locked.h"

namespace meshd::arrays {

struct PendingLimits {
  std::chrono::seconds timeout{900};      ///< an array that gets no part for so long is deleted
  int64_t most_of_principal = 256;        ///< arrays that one principal may have pending
  int64_t most_bytes = INT64_C(1) << 40;  ///< of the parts of all pending arrays together
};

/// Any thread. Lock order: its own table, then one array's state; with ArrayStore's table held it is not called.
class PendingArrays {
 public:
  PendingArrays(const core::Clock& clock, PendingLimits limits) : clock_(clock), limits_(limits) {}

  /// The array is pending from now on. Throws limit_reached when its principal has too many.
  void add(const ArrayRef& array);
  /// A job is to make it (ArrayStore::promise): it has no parts, does not expire, and does not count among those of its
  /// principal.
  void add_promised(const ArrayRef& array);
  /// It is not complete and is gone: its principal is told why.
  void forget(const ArrayRef& array, const std::string& reason);
  /// It is complete, or deleted: its parts are no longer counted. Nothing happens to one that is not there.
  void remove(const ArrayRef& array);
  /// A principal's pending arrays by id.
  [[nodiscard]] std::vector<ArrayRef> of(std::string_view principal) const;

  /// Something came for the array: its time begins anew. Called under the array's lock.
  void note_progress(PendingParts& parts) const;
  /// So many more bytes of a part are kept. Called under the array's lock. Throws overloaded when pending arrays hold
  /// all that they may.
  void take_bytes(PendingParts& parts, int64_t bytes);

  [[nodiscard]] bool is_over(Array& array) const;
  /// Those whose time is over are deleted, and their parts freed. The caller forgets them.
  std::vector<ArrayRef> take_expired();
  /// Why a pending array was deleted, for its principal; of the last thousand.
  [[nodiscard]] std::optional<std::string> why_gone(std::string_view id, std::string_view principal) const;

  /// Of parts of pending arrays.
  [[nodiscard]] int64_t held_bytes() const { return held_bytes_; }
  [[nodiscard]] const PendingLimits& limits() const { return limits_; }

 private:
  [[nodiscard]] bool is_over(const Array::State& state) const;
  struct Gone {
    std::string id, principal, reason;
  };
  struct Table {
    std::map<std::string, ArrayRef, std::less<>> by_id;
    std::deque<Gone> gone;

    void note_gone(const ArrayInfo& info, std::string reason);
  };

  const core::Clock& clock_;
  const PendingLimits limits_;
  std::atomic<int64_t> held_bytes_{0};
  core::Locked<Table> table_;
};

}  // namespace meshd::arrays
