// Uploads that may be resumed, and the blobs that have come of them.
#include "service/core/error.h"
#include "storage/rows/row_words.h"
#include "storage/rows/transaction.h"

namespace meshd::storage {
namespace {

constexpr std::string_view kOpen = "open", kDone = "done";

}  // namespace

std::vector<UploadRow> Reader::uploads() {
  Statement rows =
      connection_->statement("SELECT id, principal, request, length, state, result, touched FROM uploads ORDER BY id");
  rows.bind();
  std::vector<UploadRow> out;
  while (rows.step()) {
    UploadRow& row = out.emplace_back();
    std::string state;
    rows.read(row.id, row.principal, row.request, row.length, state, row.result, row.touched);
    row.is_done = state == kDone;
  }
  return out;
}

std::vector<UploadPartRow> Reader::upload_parts(std::string_view upload) {
  Statement rows = connection_->statement(
      "SELECT upload, offset, blob, length, checksum FROM upload_parts WHERE upload = ?1 ORDER BY offset");
  rows.bind(upload);
  std::vector<UploadPartRow> out;
  while (rows.step()) out.push_back({rows.text(0), rows.integer(1), blob_at(rows, 2)});
  return out;
}

void Transaction::insert_upload(const UploadRow& row) {
  connection_
      ->statement(
          "INSERT INTO uploads(id, principal, request, length, state, result, touched) "
          "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)")
      .bind(row.id, row.principal, row.request, row.length, row.is_done ? kDone : kOpen, row.result, row.touched)
      .run();
}

void Transaction::update_upload(const UploadRow& row) {
  connection_->statement("UPDATE uploads SET length = ?2, state = ?3, result = ?4, touched = ?5 WHERE id = ?1")
      .bind(row.id, row.length, row.is_done ? kDone : kOpen, row.result, row.touched)
      .run();
  if (connection_->changes() == 0) throw core::Error("not_found", "there is no upload '" + row.id + "'");
}

void Transaction::insert_upload_part(const UploadPartRow& row) {
  // Of an upload that is gone nothing is inserted; its foreign key alone would fail as a damaged database does.
  connection_
      ->statement(
          "INSERT INTO upload_parts(upload, offset, blob, length, checksum) SELECT ?1, ?2, ?3, ?4, ?5 "
          "WHERE EXISTS (SELECT 1 FROM uploads WHERE id = ?1)")
      .bind(row.upload, row.offset, row.blob.name, row.blob.length, static_cast<int64_t>(row.blob.checksum))
      .run();
  if (connection_->changes() == 0) throw core::Error("not_found", "there is no upload '" + row.upload + "'");
}

void Transaction::drop_upload_parts(std::string_view upload) {
  for (const UploadPartRow& part : upload_parts(upload)) dropped_blobs_.push_back(part.blob.name);
  connection_->statement("DELETE FROM upload_parts WHERE upload = ?1").bind(upload).run();
}

bool Transaction::delete_upload(std::string_view id) {
  drop_upload_parts(id);
  connection_->statement("DELETE FROM uploads WHERE id = ?1").bind(id).run();
  return connection_->changes() > 0;
}

}  // namespace meshd::storage
