#include "storage/rows/recovery_rows.h"

#include <fmt/core.h>

#include "service/core/planted_bugs.h"
#include "storage/rows/row_words.h"

namespace meshd::storage {
namespace {

// What the statements below do to jobs that are queued or running.
static_assert(may_change(JobState::kQueued, JobState::kCancelled) &&
              may_change(JobState::kRunning, JobState::kCancelled));
static_assert(may_change(JobState::kRunning, JobState::kFailed) && may_change(JobState::kRunning, JobState::kQueued));

}  // namespace

int64_t RecoveryRows::change(const char* sql) {
  connection_.statement(sql).bind().run();
  return connection_.changes();
}

std::vector<ShardRow> RecoveryRows::all_shards() {
  Statement rows = connection_.statement(
      "SELECT array, shard_index, blob, length, checksum FROM shards ORDER BY array, shard_index");
  rows.bind();
  std::vector<ShardRow> shards;
  while (rows.step()) shards.push_back({rows.text(0), rows.integer(1), blob_at(rows, 2)});
  return shards;
}

std::vector<UploadPartRow> RecoveryRows::all_upload_parts() {
  Statement rows =
      connection_.statement("SELECT upload, offset, blob, length, checksum FROM upload_parts ORDER BY upload, offset");
  rows.bind();
  std::vector<UploadPartRow> parts;
  while (rows.step()) parts.push_back({rows.text(0), rows.integer(1), blob_at(rows, 2)});
  return parts;
}

std::vector<JobBlobRow> RecoveryRows::all_job_blobs() {
  Statement rows = connection_.statement(
      "SELECT id, principal, blob, blob_length, blob_checksum FROM jobs WHERE blob IS NOT NULL ORDER BY id, principal");
  rows.bind();
  std::vector<JobBlobRow> out;
  while (rows.step()) out.push_back({rows.text(0), rows.text(1), blob_at(rows, 2)});
  return out;
}

int64_t RecoveryRows::lose_memory_arrays() {
  return change(
      "UPDATE arrays SET state = 'lost', version = version + 1, holds_name = 0, "
      "reason = 'it was kept in memory only and the server has restarted' "
      "WHERE durability = 'memory' AND state IN ('pending', 'ready')");
}

std::vector<std::string> RecoveryRows::lost_arrays() {
  Statement rows = connection_.statement("SELECT id FROM arrays WHERE state = 'lost'");
  rows.bind();
  std::vector<std::string> lost;
  while (rows.step()) lost.push_back(rows.text(0));
  return lost;
}

void RecoveryRows::lose_array(const std::string& id, const char* reason) {
  connection_
      .statement(
          "UPDATE arrays SET state = 'lost', version = version + 1, holds_name = 0, reason = ?2 WHERE id = ?1 "
          "AND state != 'lost'")
      .bind(id, reason)
      .run();
}

void RecoveryRows::end_job(const std::string& id, const std::string& principal, const std::string& session,
                           const End& end, core::WallTime now) {
  connection_
      .statement(
          "UPDATE jobs SET state = ?3, error_code = ?4, error_detail = ?5, finished = ?6, request = x'', blob = NULL "
          "WHERE id = ?1 AND principal = ?2")
      .bind(id, principal, to_string(end.state), end.code, end.detail, now)
      .run();
  transaction_.release_arrays(id, principal);
  // A session that was deleted is there, hidden: its log takes the entry and goes with it.
  transaction_.mark_end(session, id, end.state, end.code);
}

int64_t RecoveryRows::end_cancelled_jobs(core::WallTime now) {
  struct Cancelled {
    std::string id, principal, session;
  };
  std::vector<Cancelled> jobs;
  {
    // Each half finds its rows by an index of its own.
    Statement rows = connection_.statement(
        "SELECT id, principal, session FROM jobs WHERE state = 'queued' AND cancel_requested != 0 UNION ALL "
        "SELECT id, principal, session FROM jobs WHERE state = 'running' AND cancel_requested != 0");
    rows.bind();
    while (rows.step()) jobs.push_back({rows.text(0), rows.text(1), rows.text(2)});
  }
  for (const Cancelled& job : jobs)
    end_job(job.id, job.principal, job.session, {JobState::kCancelled, "cancelled", "the job was cancelled"}, now);
  return static_cast<int64_t>(jobs.size());
}

std::vector<std::string> RecoveryRows::fail_crashed_jobs(int64_t attempts, core::WallTime now) {
  struct Crashed {
    std::string id, principal, session;
    int64_t number;
  };
  std::vector<Crashed> crashed;
  {
    Statement rows = connection_.statement(
        "SELECT id, principal, session, number FROM jobs WHERE state = 'running' AND attempt >= ?1 "
        "ORDER BY id, principal");
    rows.bind(attempts);
    while (rows.step()) crashed.push_back({rows.text(0), rows.text(1), rows.text(2), rows.integer(3)});
  }
  const std::string detail = fmt::format("the server ended {} times while the job ran", attempts);
  std::vector<std::string> ids;
  for (const Crashed& job : crashed) {
    end_job(job.id, job.principal, job.session, {JobState::kFailed, "crashed", detail}, now);
    transaction_.halt_session(job.session, job.number);
    ids.push_back(job.id);
  }
  return ids;
}

int64_t RecoveryRows::requeue_running_jobs() {
  return change("UPDATE jobs SET state = 'queued', attempt = attempt + 1, started = NULL WHERE state = 'running'");
}

void RecoveryRows::release_stale_reservations() {
  if (core::is_planted(core::PlantedBug::kLoseIdempotency)) change("DELETE FROM idempotency");
  change(
      "UPDATE arrays SET reserved_by = NULL WHERE reserved_by IS NOT NULL "
      "AND NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.id = arrays.reserved_by AND jobs.principal = arrays.principal "
      "AND jobs.state IN ('queued', 'running'))");
}

void RecoveryRows::drop_callbacks_of_arrays() {
  change("DELETE FROM callbacks WHERE answer IS NULL AND job NOT IN (SELECT id FROM jobs)");
}

void RecoveryRows::drop_unseen_contents() {
  change("DELETE FROM mesh_contents WHERE id NOT IN (SELECT id FROM meshes) AND id NOT IN (SELECT mesh FROM arrays)");
  change(
      "DELETE FROM program_contents WHERE id NOT IN (SELECT id FROM programs) AND id NOT IN "
      "(SELECT program FROM models) AND id NOT IN "
      "(SELECT program FROM jobs WHERE program IS NOT NULL AND state IN ('queued', 'running'))");
}

}  // namespace meshd::storage
