#include "storage/recovery.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "service/core/error.h"
#include "storage/blobs/rank_blobs.h"
#include "storage/rows/recovery_rows.h"

namespace meshd::storage {
namespace {

// The blob files that there are, by name.
class Files {
 public:
  explicit Files(const std::vector<StoredBlob>& blobs) {
    for (const StoredBlob& blob : blobs) bytes_.emplace(blob.name, blob.file_bytes);
  }
  // False for a file that is missing or of another length than its row has. Its bytes are checked when they are read.
  [[nodiscard]] bool has(const BlobRef& blob) const {
    const auto file = bytes_.find(blob.name);
    return file != bytes_.end() && file->second == BlobStore::file_bytes(blob.length);
  }

 private:
  std::unordered_map<std::string_view, int64_t> bytes_;
};

std::vector<std::string> find_damaged(const std::vector<ShardRow>& shards, const Files& files) {
  std::vector<std::string> damaged;
  for (const ShardRow& shard : shards) {
    if (!files.has(shard.blob) && (damaged.empty() || damaged.back() != shard.array)) damaged.push_back(shard.array);
  }
  return damaged;
}

// Shards of a rank none of whose files are here are not lost: the rank is not, or another one has its number.
void require_ranks(const std::vector<ShardRow>& shards, const Files& files, const std::vector<int>& lost_ranks,
                   const std::vector<std::string>& lost_arrays) {
  const std::unordered_set<std::string_view> lost(lost_arrays.begin(), lost_arrays.end());
  struct Rank {
    int64_t shards = 0;
    bool is_here = false;
    std::string first;
  };
  std::map<int, Rank> ranks;
  for (const ShardRow& shard : shards) {
    const int number = blob_rank(shard.blob.name);
    if (number == 0 || lost.contains(shard.array)) continue;
    Rank& rank = ranks[number];
    if (rank.shards++ == 0) rank.first = shard.array;
    rank.is_here = rank.is_here || files.has(shard.blob);
  }
  for (const auto& [number, rank] : ranks) {
    if (rank.is_here || std::find(lost_ranks.begin(), lost_ranks.end(), number) != lost_ranks.end()) continue;
    throw core::Error(
        "storage_failed",
        fmt::format("rank {0} has {1} shards of arrays on its disk, the first of array '{2}', and none of "
                    "them is there; start all ranks that wrote the data, each with its own folder "
                    "(--data, below it ranks/{0}), or make that folder readable here; if that disk is "
                    "gone for good, --lost-rank {0} gives these arrays up",
                    number, rank.shards, rank.first));
  }
}

// The names that rows have, less those of uploads that cannot go on without a part, which are deleted.
std::unordered_set<std::string> named_blobs(const std::vector<ShardRow>& shards, const Files& files,
                                            Transaction& transaction) {
  std::unordered_set<std::string> named;
  for (const ShardRow& shard : shards) named.insert(shard.blob.name);
  const std::vector<UploadPartRow> parts = RecoveryRows(transaction).all_upload_parts();
  std::unordered_set<std::string_view> damaged;
  for (const UploadPartRow& part : parts) {
    if (!files.has(part.blob)) damaged.insert(part.upload);
  }
  for (const std::string_view upload : damaged) transaction.delete_upload(upload);
  for (const UploadPartRow& part : parts) {
    if (!damaged.contains(part.upload)) named.insert(part.blob.name);
  }
  return named;
}

// Files that no row names.
int64_t remove_orphans(BlobStore& store, const std::unordered_set<std::string>& named,
                       const std::vector<StoredBlob>& blobs) {
  std::vector<std::string> orphans;
  for (const StoredBlob& blob : blobs) {
    if (!named.contains(blob.name)) orphans.push_back(blob.name);
  }
  return store.remove_unnamed(orphans, [](const std::string&) { return false; });
}

}  // namespace

RecoveryReport recover(Catalog& catalog, BlobStore& blobs, core::WallTime now, const std::vector<int>& lost_ranks) {
  RecoveryReport report;
  report.temporary_files = blobs.remove_temporary_files();
  const std::vector<StoredBlob> stored = blobs.list();
  const Files files(stored);
  std::unordered_set<std::string> named;
  const auto recover_rows = [&](Transaction& transaction) {
    RecoveryRows rows(transaction);
    const std::vector<ShardRow> shards = rows.all_shards();
    require_ranks(shards, files, lost_ranks, rows.lost_arrays());
    named = named_blobs(shards, files, transaction);
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
    // A job whose blob is damaged fails when it is next in its session.
    for (const JobBlobRow& job : rows.all_job_blobs()) named.insert(job.blob.name);
  };
  catalog.write(recover_rows, Space::kFrees);  // a start on a full disk may use the reserve
  report.orphans = remove_orphans(blobs, named, stored);
  return report;
}

}  // namespace meshd::storage
