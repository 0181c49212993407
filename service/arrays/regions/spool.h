// Bytes of a request that are needed in another order than they come in: written to the disk, then read at any place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "service/arrays/regions/region.h"
#include "service/quotas/array_ledger.h"
#include "storage/blobs/blob_store.h"
#include "storage/pending_blobs.h"

namespace meshd::arrays {

/// A blob that no row names, gone with its owner, or with the process. One thread.
class Spool {
 public:
  /// For `bytes` bytes, which `charge` counts. Throws as PendingBlobs::begin.
  Spool(storage::Store& store, std::string name, int64_t bytes, quotas::ArrayCharge charge);
  /// The next bytes. Throws disk_full, storage_failed.
  void write(std::span<const std::byte> bytes);
  [[nodiscard]] int64_t remaining() const { return bytes_ - done_; }
  /// To be called once all has come. Valid as long as the spool. Throws disk_full, storage_failed.
  std::shared_ptr<const storage::BlobReader> seal();

 private:
  storage::Store& store_;
  const int64_t bytes_;
  const quotas::ArrayCharge charge_;
  storage::PendingBlobs blob_;
  int64_t done_ = 0;
};

/// A blob, read in ascending order for the most part: the page that it was read from last is kept. Throws
/// storage_failed where a page is damaged.
ByteSource paged_source(std::shared_ptr<const storage::BlobReader> blob);
/// Bytes in memory, which must outlive it.
ByteSource memory_source(std::span<const std::byte> bytes);

}  // namespace meshd::arrays
