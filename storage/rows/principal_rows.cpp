// What a principal has, and giving it to another.
#include <string>
#include <utility>
#include <vector>

#include "service/core/error.h"
#include "storage/rows/row_words.h"
#include "storage/rows/transaction.h"

namespace meshd::storage {
namespace {

const char* count_sql(Counted what) {
  switch (what) {
    case Counted::kArrays:
      return "SELECT count(*) FROM arrays WHERE principal = ?1";
    case Counted::kSessions:
      return "SELECT count(*) FROM sessions WHERE principal = ?1 AND id NOT IN deleted_sessions";
    case Counted::kJobs:
      return "SELECT count(*) FROM jobs WHERE principal = ?1 AND (session IS NULL OR session NOT IN deleted_sessions)";
    case Counted::kPrograms:
      return "SELECT count(*) FROM programs WHERE principal = ?1";
    case Counted::kMeshes:
      return "SELECT count(*) FROM meshes WHERE principal = ?1";
    case Counted::kModels:
      return "SELECT count(*) FROM models WHERE principal = ?1";
    case Counted::kWebhooks:
      return "SELECT count(*) FROM webhooks WHERE principal = ?1";
  }
  return "";
}

}  // namespace

int64_t Reader::count_of(Counted what, std::string_view principal) {
  Statement row = connection_->statement(count_sql(what));
  return row.bind(principal).step() ? row.integer(0) : 0;
}

std::vector<StoredArrays> Reader::stored_arrays() {
  Statement rows = connection_->statement(
      "SELECT principal, count(*), coalesce(sum(bytes), 0) FROM arrays WHERE state IN ('pending', 'ready') "
      "GROUP BY principal ORDER BY principal");
  rows.bind();
  std::vector<StoredArrays> out;
  while (rows.step()) out.push_back({rows.text(0), rows.integer(1), rows.integer(2)});
  return out;
}

void Transaction::give_to(std::string_view from, std::string_view to) {
  // Jobs of deleted sessions, which nobody sees, give way.
  for (const auto& [owner, other] : {std::pair(from, to), std::pair(to, from)}) {
    Statement hidden = connection_->statement(
        "SELECT a.id FROM jobs a JOIN jobs b ON a.id = b.id WHERE a.principal = ?1 AND b.principal = ?2 "
        "AND a.session IN deleted_sessions");
    std::vector<std::string> ids;
    for (hidden.bind(owner, other); hidden.step();) ids.push_back(hidden.text(0));
    for (const std::string& id : ids) delete_job(id, owner);
  }
  Statement both = connection_->statement(
      "SELECT a.id FROM jobs a JOIN jobs b ON a.id = b.id WHERE a.principal = ?1 AND b.principal = ?2 LIMIT 1");
  if (both.bind(from, to).step()) {
    throw core::Error("conflict", "both principals have a job '" + both.text(0) + "'; delete one of them");
  }
  // A name that both have an array of is held by none of `from`, which would hide what `to` has.
  connection_
      ->statement(
          "UPDATE arrays SET holds_name = 0 WHERE principal = ?1 AND holds_name = 1 "
          "AND name IN (SELECT name FROM arrays WHERE principal = ?2)")
      .bind(from, to)
      .run();
  // Where both have posted the same content or used the same key, what `to` has stays.
  for (const char* sql : {"UPDATE arrays SET principal = ?2 WHERE principal = ?1",
                          "UPDATE uploads SET principal = ?2 WHERE principal = ?1",
                          "UPDATE sessions SET principal = ?2 WHERE principal = ?1",
                          "UPDATE webhooks SET principal = ?2 WHERE principal = ?1",
                          "UPDATE jobs SET principal = ?2 WHERE principal = ?1",
                          "UPDATE OR IGNORE meshes SET principal = ?2 WHERE principal = ?1",
                          "UPDATE OR IGNORE models SET principal = ?2 WHERE principal = ?1",
                          "UPDATE OR IGNORE zarr_groups SET principal = ?2 WHERE principal = ?1",
                          "UPDATE OR IGNORE programs SET principal = ?2 WHERE principal = ?1",
                          "UPDATE OR IGNORE idempotency SET principal = ?2 WHERE principal = ?1"}) {
    connection_->statement(sql).bind(from, to).run();
  }
  for (const char* sql : {"DELETE FROM meshes WHERE principal = ?1", "DELETE FROM programs WHERE principal = ?1",
                          "DELETE FROM models WHERE principal = ?1", "DELETE FROM zarr_groups WHERE principal = ?1",
                          "DELETE FROM idempotency WHERE principal = ?1"}) {
    connection_->statement(sql).bind(from).run();
  }
}

}  // namespace meshd::storage
