// The incremental vacuum: how the file gives back pages that rows have left.
#include <algorithm>

#include "storage/database/connection.h"
#include "storage/rows/transaction.h"

namespace meshd::storage {
namespace {

// What is kept for the next rows: giving pages back and taking them again moves other pages each time.
constexpr int64_t kKeptPages = 1024;
constexpr int64_t kKeptShare = 8;  // of all pages, one in so many

}  // namespace

bool Reader::needs_vacuum() {
  // A file that was too large to be written anew (make_shrinkable) gives nothing back.
  Statement row = connection_->statement(
      "SELECT freelist_count, page_count FROM pragma_freelist_count, pragma_page_count, pragma_auto_vacuum "
      "WHERE auto_vacuum = 2");
  return row.bind().step() && row.integer(0) > std::max(kKeptPages, row.integer(1) / kKeptShare);
}

void Transaction::vacuum_step() { connection_->statement("PRAGMA incremental_vacuum(128)").bind().run(); }

}  // namespace meshd::storage
