#include "storage/maintenance.h"

#include <fmt/core.h>

#include <memory>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "service/core/error.h"
#include "storage/blobs/blob_store.h"
#include "storage/blobs/rank_blobs.h"
#include "storage/data_copy.h"
#include "storage/database/connection.h"
#include "storage/database/migrations.h"
#include "storage/rows/recovery_rows.h"
#include "storage/rows/transaction.h"
#include "storage/store.h"

namespace meshd::storage {
namespace {

/// Exclusive use of the folder for its lifetime.
std::unique_ptr<FileLock> locked(FileSystem& files, const std::string& folder) {
  require_data(folder);
  std::unique_ptr<FileLock> lock = files.try_lock(folder + "/lock");
  if (!lock) {
    throw core::Error("storage_failed", "a server uses the folder '" + folder + "'; end it first");
  }
  return lock;
}

class Check {
 public:
  Check(FileSystem& files, const std::string& folder)
      : ranks_(files, folder),
        blobs_(files, folder + "/blobs", [](const std::string&) {}),
        connection_(database_path(folder), Connection::Mode::kReadOnly, {}) {
    blobs_.look_in(ranks_);
  }

  CheckReport run() {
    check_pages();
    if (check_schema()) {
      check_references();
      check_shards();
      check_logs();
    }
    return std::move(report_);
  }

 private:
  void wrong(std::string problem) {
    ++report_.problem_count;
    if (report_.problems.size() < kMostProblems) report_.problems.push_back(std::move(problem));
  }

  int64_t number(const char* sql) {
    Statement statement = connection_.statement(sql);
    return statement.bind().step() ? statement.integer(0) : 0;
  }

  void check_pages() {
    Statement rows = connection_.statement("PRAGMA integrity_check");
    rows.bind();
    while (rows.step()) {
      if (rows.view(0) != "ok") wrong("the database is damaged: " + rows.text(0));
    }
  }

  bool check_schema() {
    report_.schema_version = number("PRAGMA user_version");
    const auto newest = static_cast<int64_t>(migrations().size());
    report_.has_counts = report_.schema_version == newest;
    if (report_.has_counts) return true;
    wrong(fmt::format("the schema is version {}, this build checks {}{}", report_.schema_version, newest,
                      report_.schema_version < newest ? "; start a server on a copy of the folder, which migrates it"
                                                      : "; use a newer build"));
    return false;
  }

  void check_references() {
    Statement rows = connection_.statement("PRAGMA foreign_key_check");
    rows.bind();
    while (rows.step()) wrong("a row of " + rows.text(0) + " names a row of " + rows.text(2) + " that is not there");
  }

  void check_shards() {
    report_.arrays = number("SELECT count(*) FROM arrays");
    Transaction transaction(connection_);
    std::unordered_set<std::string> named;
    for (const ShardRow& shard : RecoveryRows(transaction).all_shards()) {
      named.insert(shard.blob.name);
      ++report_.shards;
      try {
        blobs_.verify(shard.blob);
        report_.bytes += shard.blob.length;
      } catch (const core::Error& error) {
        wrong(fmt::format("array {}, shard {}: {}", shard.array, shard.index, error.internal()));
      }
    }
    for (const UploadPartRow& part : RecoveryRows(transaction).all_upload_parts()) {
      named.insert(part.blob.name);
      try {
        blobs_.verify(part.blob);
      } catch (const core::Error& error) {
        wrong(fmt::format("upload {}, byte {}: {}", part.upload, part.offset, error.internal()));
      }
    }
    for (const JobBlobRow& job : RecoveryRows(transaction).all_job_blobs()) {
      named.insert(job.blob.name);
      try {
        blobs_.verify(job.blob);
      } catch (const core::Error& error) {
        wrong("job " + job.job + ", what its request brought: " + error.internal());
      }
    }
    for (const StoredBlob& blob : blobs_.list()) report_.orphans += named.contains(blob.name) ? 0 : 1;
  }

  void check_logs() {
    Statement rows = connection_.statement(
        "SELECT s.id, s.last_sequence, count(e.sequence), coalesce(max(e.sequence), 0) FROM sessions s "
        "LEFT JOIN effects e ON e.session = s.id WHERE s.id NOT IN deleted_sessions GROUP BY s.id ORDER BY s.id");
    rows.bind();
    while (rows.step()) {
      const int64_t last = rows.integer(1);
      if (rows.integer(2) == last && rows.integer(3) == last) continue;
      wrong(fmt::format("session {}: its log should have the entries 1 to {}, but has {} up to {}", rows.text(0), last,
                        rows.integer(2), rows.integer(3)));
    }
  }

  RankFolders ranks_;
  BlobStore blobs_;
  Connection connection_;
  CheckReport report_;
};

}  // namespace

CheckReport check(FileSystem& files, const std::string& folder) {
  const std::unique_ptr<FileLock> lock = locked(files, folder);
  return Check(files, folder).run();
}

CheckReport restore(FileSystem& files, const std::string& backup, const std::string& folder) {
  const std::unique_ptr<FileLock> lock = locked(files, backup);
  CheckReport report = Check(files, backup).run();
  if (report.problem_count > 0) {
    throw core::Error("storage_failed", fmt::format("the backup is damaged, {} problems: {}", report.problem_count,
                                                    report.problems.front()));
  }
  RankFolders ranks(files, backup);
  BlobStore blobs(files, backup + "/blobs", [](const std::string&) {});
  blobs.look_in(ranks);
  Connection rows(database_path(backup), Connection::Mode::kReadOnly, {});
  copy_data(files, rows, blobs, folder, BlobCopy::kBytes);
  return report;
}

}  // namespace meshd::storage
