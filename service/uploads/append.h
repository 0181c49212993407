// The bytes of one request, appended to an upload: written to a blob as they come, sealed part by part.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "service/uploads/upload_store.h"
#include "storage/pending_blobs.h"

namespace meshd::uploads {

/// When parts are sealed, so that they count.
enum class Sealing : uint8_t {
  kAsTheyFill,
  kAtTheEnd,  ///< nothing counts unless all of the request has come
};

/// The right to append to an upload, finish or cancel it: one at a time. Destroyed before seal(), it seals what has
/// come (kAsTheyFill), or leaves nothing of it. One thread at a time; the store must outlive it.
///
/// Example: a body of 40 MiB that breaks off after 33 MiB leaves the parts [0, 32 MiB) and [32 MiB, 33 MiB).
class Append {
 public:
  /// `waiter`: of the request, by which UploadStore::interrupt ends it. `begin`: where it says that its bytes begin.
  /// Throws not_found, upload_completed, upload_in_use when another request has the right, upload_offset_mismatch when
  /// the upload is not at `begin`: such a request never has the right, and refuses nobody.
  Append(UploadStore& store, UploadRef upload, core::WaiterRef waiter, Sealing sealing = Sealing::kAsTheyFill,
         std::optional<int64_t> begin = std::nullopt);
  ~Append();
  Append(const Append&) = delete;
  Append& operator=(const Append&) = delete;

  /// Throws disk_full, quota_exceeded, body_too_large (over the limit), upload_length_mismatch (more than the upload's
  /// length), limit_reached (too many parts).
  void write(std::span<const std::byte> bytes);
  /// Makes durable what has come. Returns the upload's offset. Throws disk_full, storage_failed.
  int64_t seal();
  /// Bytes of this request that count.
  [[nodiscard]] int64_t sealed_bytes() const { return sealed_; }
  [[nodiscard]] const UploadRef& upload() const { return upload_; }
  /// The client has sent all: nothing interrupts it any more.
  void stop_receiving();

 private:
  void begin_part();

  UploadStore& store_;
  UploadRef upload_;
  const Sealing sealing_;
  storage::PendingBlobs blobs_;      ///< of parts that do not count yet; the last is being written
  std::vector<int64_t> part_bytes_;  ///< what was written to each of them
  core::SteadyTime part_begun_;
  int64_t charged_ = 0;  ///< bytes of this request, where the upload is not charged for its length
  int64_t sealed_ = 0;
  int64_t unsealed_ = 0;
};

}  // namespace meshd::uploads
