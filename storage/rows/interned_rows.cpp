// Meshes and programs: content once, visibility for each principal.
#include "storage/rows/row_words.h"
#include "storage/rows/transaction.h"

namespace meshd::storage {
namespace {

MeshRow read_mesh(const Statement& row) { return {row.text(0), row.text(1), row.text(2), row.time(3)}; }

ProgramRow read_program(const Statement& row) {
  return {row.text(0), row.text(1), row.text(2), row.text(5), row.text(3), row.time(4), row.text(6), row.text(7)};
}

}  // namespace

std::optional<MeshRow> Reader::mesh(std::string_view id, std::string_view principal) {
  Statement row = connection_->statement(
      "SELECT m.id, m.principal, c.document, m.created FROM meshes m JOIN mesh_contents c ON c.id = m.id "
      "WHERE m.principal = ?2 AND m.id = ?1");
  if (!row.bind(id, principal).step()) return std::nullopt;
  return read_mesh(row);
}

std::optional<std::string> Reader::mesh_document(std::string_view id) {
  Statement row = connection_->statement("SELECT document FROM mesh_contents WHERE id = ?1");
  if (!row.bind(id).step()) return std::nullopt;
  return row.text(0);
}

Page<MeshRow> Reader::meshes(std::string_view principal, const PageRequest& page) {
  check_limit(page.limit);
  Statement rows = connection_->statement(
      "SELECT m.id, m.principal, c.document, m.created FROM meshes m JOIN mesh_contents c ON c.id = m.id "
      "WHERE m.principal = ?1 AND m.id > ?2 ORDER BY m.id LIMIT ?3");
  rows.bind(principal, page.cursor, page.limit + 1);
  return collect_page<MeshRow>(rows, page, read_mesh, [](const MeshRow& row) { return row.id; });
}

std::optional<ProgramRow> Reader::program(std::string_view id, std::string_view principal, const AdmitRow& admit) {
  Statement row = connection_->statement(
      "SELECT p.id, p.principal, c.format, c.document, p.created, c.text, p.name, p.doc FROM programs p "
      "JOIN program_contents c ON c.id = p.id WHERE p.principal = ?2 AND p.id = ?1");
  if (!row.bind(id, principal).step() || is_refused(row, admit, 0)) return std::nullopt;
  return read_program(row);
}

std::optional<ProgramRow> Reader::program_content(std::string_view id) {
  Statement row =
      connection_->statement("SELECT id, '', format, document, 0, text, '', '' FROM program_contents WHERE id = ?1");
  if (!row.bind(id).step()) return std::nullopt;
  return read_program(row);
}

bool Reader::has_program_content(std::string_view id) {
  return connection_->statement("SELECT 1 FROM program_contents WHERE id = ?1").bind(id).step();
}

Page<ProgramRow> Reader::programs(std::string_view principal, const PageRequest& page) {
  check_limit(page.limit);
  Statement rows = connection_->statement(
      "SELECT p.id, p.principal, c.format, c.document, p.created, '', p.name, p.doc FROM programs p "
      "JOIN program_contents c ON c.id = p.id WHERE p.principal = ?1 AND p.id > ?2 ORDER BY p.id LIMIT ?3");
  rows.bind(principal, page.cursor, page.limit + 1);
  return collect_page<ProgramRow>(rows, page, read_program, [](const ProgramRow& row) { return row.id; });
}

void Transaction::keep_mesh(std::string_view id, std::string_view document) {
  connection_->statement("INSERT INTO mesh_contents(id, document) VALUES(?1, ?2) ON CONFLICT DO NOTHING")
      .bind(id, document)
      .run();
}

bool Transaction::put_mesh(const MeshRow& row) {
  keep_mesh(row.id, row.document);
  connection_->statement("INSERT INTO meshes(principal, id, created) VALUES(?1, ?2, ?3) ON CONFLICT DO NOTHING")
      .bind(row.principal, row.id, row.created)
      .run();
  return connection_->changes() == 1;
}

void Transaction::collect_mesh(std::string_view id) {
  connection_
      ->statement(
          "DELETE FROM mesh_contents WHERE id = ?1 AND NOT EXISTS(SELECT 1 FROM meshes WHERE id = ?1) "
          "AND NOT EXISTS(SELECT 1 FROM arrays WHERE mesh = ?1)")
      .bind(id)
      .run();
}

bool Transaction::delete_mesh(std::string_view id, std::string_view principal) {
  connection_->statement("DELETE FROM meshes WHERE principal = ?2 AND id = ?1").bind(id, principal).run();
  const bool was_there = connection_->changes() == 1;
  if (was_there) collect_mesh(id);
  return was_there;
}

bool Transaction::put_program(const ProgramRow& row) {
  connection_
      ->statement(
          "INSERT INTO program_contents(id, format, document, text) VALUES(?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING")
      .bind(row.id, row.format, row.document, row.text)
      .run();
  connection_
      ->statement(
          "INSERT INTO programs(principal, id, created, name, doc) VALUES(?1, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING")
      .bind(row.principal, row.id, row.created, row.name, row.doc)
      .run();
  return connection_->changes() == 1;
}

void Transaction::collect_program(std::string_view id) {
  connection_
      ->statement(
          "DELETE FROM program_contents WHERE id = ?1 AND NOT EXISTS(SELECT 1 FROM programs WHERE id = ?1) "
          "AND NOT EXISTS(SELECT 1 FROM models WHERE program = ?1) "
          "AND NOT EXISTS(SELECT 1 FROM jobs WHERE program = ?1 AND state IN ('queued', 'running'))")
      .bind(id)
      .run();
}

bool Transaction::delete_program(std::string_view id, std::string_view principal) {
  connection_->statement("DELETE FROM programs WHERE principal = ?2 AND id = ?1").bind(id, principal).run();
  const bool was_there = connection_->changes() == 1;
  if (was_there) collect_program(id);
  return was_there;
}

}  // namespace meshd::storage
