// The store of uploads: creates, finds, finishes, expires and deletes them.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "service/core/clock.h"
#include "service/core/error.h"
#include "service/core/locked.h"
#include "service/quotas/array_ledger.h"
#include "service/uploads/upload.h"
#include "storage/store.h"

namespace meshd::uploads {

struct UploadLimits {
  int64_t most_bytes = int64_t{4} << 30;                  ///< of one upload
  std::chrono::seconds max_age = std::chrono::hours(24);  ///< without a byte
  int64_t most_open = 64;                                 ///< of one principal
  int64_t part_bytes = int64_t{32} << 20;                 ///< after which a part is sealed
  std::chrono::seconds part_time{5};                      ///< and the time, where bytes come slowly
  int64_t most_parts = 16'384;                            ///< of one upload
  int64_t most_done = 256;  ///< of one principal, that say where to find what they made; the oldest go
};

/// upload_in_use: another request has the right to append (Append). It may be gone in a second.
core::Error other_appends();

/// Any thread. Waits for the disk.
class UploadStore {
 public:
  /// Finds what an earlier process has left. `ledger` and `store` must outlive it.
  UploadStore(storage::Store& store, quotas::ArrayLedger& ledger, const core::Clock& clock, UploadLimits limits = {});

  /// Makes one; its row is durable when this returns. Throws limit_reached, quota_exceeded, body_too_large for a
  /// `length` over the limit.
  UploadRef create(const std::string& principal, std::string request, std::optional<int64_t> length);
  /// The principal's upload. Throws not_found, for expired and cancelled ones, too.
  UploadRef find(std::string_view id, std::string_view principal);
  [[nodiscard]] UploadStatus status(const UploadRef& upload) const;
  /// Notes the length that a request has told. Throws upload_length_mismatch where another was told before or more has
  /// come, body_too_large over the limit, disk_full; then it is not noted.
  void set_length(const UploadRef& upload, int64_t length);
  /// Ends the request that appends, if there is one, and waits until it has sealed what has come, or until `until`.
  /// Throws upload_in_use when it has not ended by then.
  void interrupt(const UploadRef& upload, const core::WaiterRef& waiter, core::SteadyTime until);
  /// The bytes become an array, which is charged by itself; take_charge_back() when they have not, whatever the limits
  /// are by then.
  void give_charge(const UploadRef& upload);
  void take_charge_back(const UploadRef& upload);
  /// The request has run and made what `result` says where to find (may be empty): the parts are dropped, and the
  /// principal's oldest uploads that are done, beyond most_done, are deleted. By the holder of an Append. Throws what
  /// Catalog::write throws; then it is not done.
  void finish(const UploadRef& upload, const std::string& result);
  /// Cancels it, with all that has come; Append throws not_found from here on. Throws upload_in_use when a request
  /// appends or finishes it, as one may that began behind interrupt(): what it makes is not to be lost sight of.
  void remove(const UploadRef& upload);
  /// Deletes uploads whose time is over. Called periodically.
  void expire();

  [[nodiscard]] const UploadLimits& limits() const { return limits_; }
  [[nodiscard]] storage::Store& storage() const { return store_; }
  [[nodiscard]] const core::Clock& clock() const { return clock_; }
  /// The row of an upload as its state is.
  [[nodiscard]] storage::UploadRow row_of(const Upload& upload, const Upload::State& state) const;
  /// Numbers parts, so that no two blobs have one name.
  int64_t next_part() { return parts_.fetch_add(1) + 1; }

 private:
  using Table = std::map<std::string, UploadRef, std::less<>>;
  using Done = std::map<std::string, std::vector<UploadRef>, std::less<>>;  ///< by principal, in the order of their end
  void forget(const UploadRef& upload);

  storage::Store& store_;
  quotas::ArrayLedger& ledger_;
  const core::Clock& clock_;
  const UploadLimits limits_;
  std::atomic<int64_t> parts_{0};
  mutable core::Locked<Table> table_;
  core::Locked<Done> done_;  ///< those of the table whose request has run
};

}  // namespace meshd::uploads
