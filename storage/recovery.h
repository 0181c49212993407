// Crash recovery at start, before any request: after it, the rows and the files agree, and no row has a job running.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "storage/blobs/blob_store.h"
#include "storage/catalog.h"

namespace meshd::storage {

/// A job that was running when the process ended this often is not tried again.
inline constexpr int64_t kMaxAttempts = 3;

struct RecoveryReport {
  bool was_clean = true;                    ///< the last process ended in order
  int64_t temporary_files = 0;              ///< removed
  int64_t orphans = 0;                      ///< blobs that no row named, removed
  int64_t requeued_jobs = 0;                ///< were running, attempt + 1
  int64_t cancelled_jobs = 0;               ///< their cancellation was requested, and they had not ended
  std::vector<std::string> crashed_jobs;    ///< were running for the third time: failed with code "crashed"
  int64_t lost_memory_arrays = 0;           ///< durability memory: marked lost
  std::vector<std::string> damaged_arrays;  ///< a shard's file is missing or has another length: marked lost
  std::vector<std::string> open_paths;      ///< others may read these, and only their owner can change it
};

/// Runs once, after the lock is taken and before the first request. Arrays whose state changes get version + 1. Throws
/// storage_failed where a rank has shards and none of their files is there, unless it is among `lost_ranks`.
RecoveryReport recover(Catalog& catalog, BlobStore& blobs, core::WallTime now, const std::vector<int>& lost_ranks);

}  // namespace meshd::storage
