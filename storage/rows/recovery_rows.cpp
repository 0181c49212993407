#include "storage/rows/recovery_rows.h"

#include "service/core/planted_bugs.h"
#include "storage/database/connection.h"

namespace meshd::storage {

int64_t RecoveryRows::change(const char* sql) {
  connection_.statement(sql).bind().run();
  return connection_.changes();
}

std::vector<ShardRow> RecoveryRows::all_shards() {
  Statement rows = connection_.statement(
      "SELECT array, shard_index, blob, length, checksum FROM shards ORDER BY array, shard_index");
  rows.bind();
  std::vector<ShardRow> shards;
  while (rows.step()) {
    ShardRow& shard = shards.emplace_back();
    shard.array = rows.text(0);
    shard.index = rows.integer(1);
    shard.blob = {rows.text(2), rows.integer(3), static_cast<uint64_t>(rows.integer(4))};
  }
  return shards;
}

int64_t RecoveryRows::lose_memory_arrays() {
  return change(
      "UPDATE arrays SET state = 'lost', version = version + 1, reason = 'it was kept in memory only and the server "
      "has restarted' WHERE durability = 'memory' AND state IN ('pending', 'ready')");
}

void RecoveryRows::lose_array(const std::string& id, const char* reason) {
  connection_
      .statement(
          "UPDATE arrays SET state = 'lost', version = version + 1, reason = ?2 WHERE id = ?1 AND state != 'lost'")
      .bind(id, reason)
      .run();
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
  const std::string detail = "the server ended " + std::to_string(attempts) + " times while the job ran";
  std::vector<std::string> ids;
  for (const Crashed& job : crashed) {
    connection_
        .statement(
            "UPDATE jobs SET state = 'failed', error_code = 'crashed', error_detail = ?2, finished = ?3, request = x'' "
            "WHERE id = ?1 AND principal = ?4")
        .bind(job.id, detail, now, job.principal)
        .run();
    transaction_.halt_session(job.session, job.number);
    transaction_.release_arrays(job.id, job.principal);
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
      "(SELECT program FROM jobs WHERE program IS NOT NULL AND state IN ('queued', 'running'))");
}

}  // namespace meshd::storage
