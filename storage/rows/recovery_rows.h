// Changes of rows in crash recovery. Inside storage only.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "storage/rows/transaction.h"

namespace meshd::storage {

/// The blob of a job that is not over.
struct JobBlobRow {
  std::string job;
  std::string principal;
  BlobRef blob;
};

/// Lives inside one transaction.
class RecoveryRows {
 public:
  explicit RecoveryRows(Transaction& transaction) : transaction_(transaction), connection_(*transaction.connection_) {}

  /// By array and index.
  [[nodiscard]] std::vector<ShardRow> all_shards();
  /// Arrays that are lost already.
  [[nodiscard]] std::vector<std::string> lost_arrays();
  /// By upload and offset.
  [[nodiscard]] std::vector<UploadPartRow> all_upload_parts();
  /// By job and principal.
  [[nodiscard]] std::vector<JobBlobRow> all_job_blobs();
  /// Marks memory arrays as lost. Returns how many.
  int64_t lose_memory_arrays();
  void lose_array(const std::string& id, const char* reason);
  /// Jobs whose cancellation was requested and that nothing else has ended: they are over, and free what they reserved.
  /// Returns how many.
  int64_t end_cancelled_jobs(core::WallTime now);
  /// Jobs that run for the `attempts`-th time fail with code "crashed", free what they reserved, and halt a session
  /// that halts on errors. Returns their ids.
  [[nodiscard]] std::vector<std::string> fail_crashed_jobs(int64_t attempts, core::WallTime now);
  /// The other running jobs are queued again, attempt + 1. Returns how many.
  int64_t requeue_running_jobs();
  /// Reservations of jobs that are over.
  void release_stale_reservations();
  /// Callback requests for the parts of arrays that were pending: a restart forgets these.
  void drop_callbacks_of_arrays();
  /// Deletes meshes and programs that no principal sees and no row names.
  void drop_unseen_contents();

 private:
  struct End {
    JobState state;
    std::string_view code, detail;
  };
  void end_job(const std::string& id, const std::string& principal, const std::string& session, const End& end,
               core::WallTime now);
  int64_t change(const char* sql);

  Transaction& transaction_;
  Connection& connection_;
};

}  // namespace meshd::storage
