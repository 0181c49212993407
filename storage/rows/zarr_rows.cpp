// Zarr groups that clients have described.
#include <fmt/core.h>

#include "service/core/error.h"
#include "storage/rows/row_words.h"
#include "storage/rows/transaction.h"

namespace meshd::storage {

std::vector<ZarrGroupRow> Reader::zarr_groups(std::string_view principal, std::string_view path, int64_t limit) {
  // '0' is the character behind '/': paths between are below the group.
  Statement rows = connection_->statement(
      "SELECT path, attributes FROM zarr_groups WHERE principal = ?1 "
      "AND (?2 = '' OR path = ?2 OR (path > ?2 || '/' AND path < ?2 || '0')) ORDER BY path LIMIT ?3");
  rows.bind(principal, path, limit);
  std::vector<ZarrGroupRow> out;
  while (rows.step()) out.push_back({rows.text(0), rows.text(1)});
  return out;
}

int64_t Reader::zarr_group_bytes(std::string_view principal, std::string_view path) {
  Statement row = connection_->statement(
      "SELECT coalesce(sum(length(CAST(path AS BLOB)) + length(CAST(attributes AS BLOB))), 0) FROM zarr_groups "
      "WHERE principal = ?1 AND (?2 = '' OR path = ?2 OR (path > ?2 || '/' AND path < ?2 || '0'))");
  row.bind(principal, path).step();
  return row.integer(0);
}

int64_t Reader::zarr_attribute_bytes(std::string_view principal) {
  Statement row = connection_->statement(
      "SELECT (SELECT coalesce(sum(length(CAST(attributes AS BLOB))), 0) FROM zarr_groups WHERE principal = ?1) + "
      "(SELECT coalesce(sum(length(CAST(attributes AS BLOB))), 0) FROM arrays WHERE principal = ?1)");
  row.bind(principal).step();
  return row.integer(0);
}

void Transaction::put_zarr_group(std::string_view principal, const ZarrGroupRow& row, int64_t most) {
  Statement others = connection_->statement("SELECT count(*) FROM zarr_groups WHERE principal = ?1 AND path != ?2");
  if (others.bind(principal, row.path).step() && others.integer(0) >= most) {
    throw core::Error("limit_reached",
                      fmt::format("there are {} Zarr groups, which is all that one principal may have; delete some",
                                  others.integer(0)));
  }
  connection_->statement("INSERT OR REPLACE INTO zarr_groups(principal, path, attributes) VALUES(?1, ?2, ?3)")
      .bind(principal, row.path, row.attributes)
      .run();
}

bool Transaction::delete_zarr_group(std::string_view principal, std::string_view path) {
  connection_->statement("DELETE FROM zarr_groups WHERE principal = ?1 AND path = ?2").bind(principal, path).run();
  return connection_->changes() > 0;
}

}  // namespace meshd::storage
