#include "storage/recovery.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "storage/rows/recovery_rows.h"

namespace meshd::storage {
namespace {

// Shards whose file is missing or has another length than its row. Its bytes are checked when they are read.
std::vector<std::string> find_damaged(const std::vector<ShardRow>& shards, const std::vector<StoredBlob>& blobs) {
  std::unordered_map<std::string_view, int64_t> file_bytes;
  for (const StoredBlob& blob : blobs) file_bytes.emplace(blob.name, blob.file_bytes);
  std::vector<std::string> damaged;
  for (const ShardRow& shard : shards) {
    const auto file = file_bytes.find(shard.blob.name);
    if (file != file_bytes.end() && file->second == BlobStore::file_bytes(shard.blob.length)) continue;
    if (damaged.empty() || damaged.back() != shard.array) damaged.push_back(shard.array);
  }
  return damaged;
}

// Files that no row names.
int64_t remove_orphans(BlobStore& store, const std::vector<ShardRow>& shards, const std::vector<StoredBlob>& blobs) {
  std::unordered_set<std::string_view> named;
  for (const ShardRow& shard : shards) named.insert(shard.blob.name);
  std::vector<std::string> orphans;
  for (const StoredBlob& blob : blobs) {
    if (!named.contains(blob.name)) orphans.push_back(blob.name);
  }
  return store.remove_unnamed(orphans, [](const std::string&) { return false; });
}

}  // namespace

RecoveryReport recover(Catalog& catalog, BlobStore& blobs, core::WallTime now) {
  RecoveryReport report;
  report.temporary_files = blobs.remove_temporary_files();
  const std::vector<StoredBlob> files = blobs.list();
  std::vector<ShardRow> shards;
  catalog.write([&](Transaction& transaction) {
    RecoveryRows rows(transaction);
    shards = rows.all_shards();
    report.lost_memory_arrays = rows.lose_memory_arrays();
    report.damaged_arrays = find_damaged(shards, files);
    for (const std::string& array : report.damaged_arrays)
      rows.lose_array(array, "a part of it is missing on the disk");
    report.cancelled_jobs = rows.end_cancelled_jobs(now);
    report.crashed_jobs = rows.fail_crashed_jobs(kMaxAttempts, now);
    report.requeued_jobs = rows.requeue_running_jobs();
    rows.release_stale_reservations();
    rows.drop_callbacks_of_arrays();
    rows.drop_unseen_contents();
  });
  report.orphans = remove_orphans(blobs, shards, files);
  return report;
}

}  // namespace meshd::storage
