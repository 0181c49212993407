// Models.
#include "storage/rows/row_words.h"
#include "storage/rows/transaction.h"

namespace meshd::storage {

std::vector<ModelRow> Reader::models() {
  Statement rows = connection_->statement(
      "SELECT principal, name, version, program, document, loaded, created FROM models "
      "ORDER BY principal, name, version");
  rows.bind();
  std::vector<ModelRow> out;
  while (rows.step()) {
    out.push_back(
        {rows.text(0), rows.text(1), rows.integer(2), rows.text(3), rows.text(4), rows.integer(5) != 0, rows.time(6)});
  }
  return out;
}

int64_t Reader::last_model_version(std::string_view principal, std::string_view name) {
  Statement row =
      connection_->statement("SELECT coalesce(max(version), 0) FROM models WHERE principal = ?1 AND name = ?2");
  return row.bind(principal, name).step() ? row.integer(0) : 0;
}

void Transaction::insert_model(const ModelRow& row) {
  connection_
      ->statement(
          "INSERT INTO models(principal, name, version, program, document, loaded, created) "
          "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)")
      .bind(row.principal, row.name, row.version, row.program, row.document, row.is_loaded, row.created)
      .run();
}

void Transaction::set_model_loaded(std::string_view principal, std::string_view name, int64_t version, bool is_loaded) {
  connection_->statement("UPDATE models SET loaded = ?4 WHERE principal = ?1 AND name = ?2 AND version = ?3")
      .bind(principal, name, version, is_loaded)
      .run();
}

bool Transaction::delete_model(std::string_view principal, std::string_view name, int64_t version) {
  std::string program;
  {
    Statement row =
        connection_->statement("SELECT program FROM models WHERE principal = ?1 AND name = ?2 AND version = ?3");
    if (!row.bind(principal, name, version).step()) return false;
    program = row.text(0);
  }
  connection_->statement("DELETE FROM models WHERE principal = ?1 AND name = ?2 AND version = ?3")
      .bind(principal, name, version)
      .run();
  collect_program(program);
  return true;
}

}  // namespace meshd::storage
