#include "storage/store.h"

#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "service/core/error.h"
#include "storage/data_copy.h"
#include "storage/database/connection.h"

namespace meshd::storage {

Store::Store(StoreOptions options, FileSystem& files, const core::Clock& clock)
    : files_(files), folder_(std::move(options.folder)), reserve_(files, folder_, options.reserve_bytes) {
  make_durable_folder(files_, folder_);
  require_whole(folder_);
  lock_ = files_.try_lock(folder_ + "/lock");
  if (!lock_) {
    throw core::Error("storage_failed", "the data folder is in use by another meshd; one folder serves one process")
        .with_internal(folder_);
  }
  // SQLite gives its log and its index the database's permissions, so these come first for an old database, and the
  // second time for what is new.
  make_data_private(files_, folder_);
  const auto open = [&] {
    database_ = std::make_unique<Database>(DatabaseOptions{database_path(folder_), options.vfs, options.fatal});
  };
  try {
    open();
  } catch (const core::Error& error) {
    // The index of the log takes room, too; on a full disk a server starts for what it is asked to delete.
    if (error.code() != core::ErrorCode("disk_full") || !reserve_.release()) throw;
    open();
  }
  reserve_.keep();  // before the writer, which lets nothing grow without it
  catalog_ = std::make_unique<Catalog>(*database_, &reserve_);
  Database& database = *database_;
  blobs_ = std::make_unique<BlobStore>(files_, folder_ + "/blobs",
                                       [&database](const std::string& reason) { database.fail(reason); });
  if (options.ranks != nullptr) blobs_->look_in(*options.ranks);
  rank_folders_ = std::make_unique<RankFolders>(files_, folder_, options.ranks);
  blobs_->look_in(*rank_folders_);
  files_.sync_folder(folder_);
  recovery_ = recover(*catalog_, *blobs_, clock.wall(), options.lost_ranks);
  recovery_.was_clean = database_->was_clean();
  recovery_.open_paths = make_data_private(files_, folder_);
}

Store::~Store() = default;

StoreHealth Store::health() const { return {catalog_->writable(), files_.free_bytes(folder_), catalog_->counters()}; }

int64_t Store::collect_garbage() {
  // Before what may wait for a backup, or throw: without the reserve nothing can grow.
  reserve_.keep();
  const std::lock_guard<std::mutex> held(removal_);
  std::vector<std::string> names = catalog_->take_dropped_blobs();
  abandoned_.with([&](std::vector<std::string>& more) {
    names.insert(names.end(), more.begin(), more.end());
    more.clear();
  });
  // Whether a commit that failed fatally has happened, only the next start knows, and then collects what it did not
  // name.
  if (database_->failed()) return 0;
  int64_t gone = 0;
  try {
    gone = blobs_->remove_unnamed(names, [&](const std::string& name) {
      return catalog_->read([&](Reader& reader) { return reader.names_blob(name); });
    });
  } catch (...) {
    abandon(std::move(names));  // a rank that does not answer now may do so the next time
    throw;
  }
  reserve_.keep();  // of what was removed
  vacuum();
  return gone;
}

// Each step is a transaction of its own, between those of others.
void Store::vacuum() {
  constexpr int kMostSteps = 16;
  const auto is_due = [](Reader& reader) { return reader.needs_vacuum(); };
  for (int step = 0; step < kMostSteps && catalog_->read(is_due); ++step)
    catalog_->write([](Transaction& transaction) { transaction.vacuum_step(); }, Space::kFrees);
}

void Store::abandon(std::vector<std::string> blobs) {
  abandoned_.with([&](std::vector<std::string>& names) { names.insert(names.end(), blobs.begin(), blobs.end()); });
}

void Store::backup_to(const std::string& folder) {
  // Blobs that the copied rows name must not be collected before they are linked.
  const std::lock_guard<std::mutex> held(removal_);
  const std::unique_ptr<Connection> rows = database_->open_reader();
  copy_data(files_, *rows, *blobs_, folder, BlobCopy::kLinkOrBytes);
}

std::string database_path(const std::string& folder) { return folder + "/meshd.db"; }

void require_data(const std::string& folder) {
  std::error_code unreadable;
  const bool has_database = std::filesystem::exists(database_path(folder), unreadable);
  if (unreadable) {
    throw core::Error("storage_failed", "the folder '" + folder + "' cannot be looked into")
        .with_internal(unreadable.message());
  }
  require_whole(folder);
  if (!has_database) throw core::Error("not_found", "there is no data in the folder '" + folder + "'");
}

}  // namespace meshd::storage
