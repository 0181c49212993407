#include "storage/store.h"

#include <utility>
#include <vector>

#include "service/core/error.h"
#include "storage/connection.h"

namespace meshd::storage {
namespace {

std::string database_path(const std::string& folder) { return folder + "/meshd.db"; }

}  // namespace

Store::Store(StoreOptions options, FileSystem& files, const core::Clock& clock)
    : files_(files), folder_(std::move(options.folder)) {
  files_.make_folder(folder_);
  lock_ = files_.try_lock(folder_ + "/lock");
  if (!lock_) {
    throw core::Error("storage_failed", "the data folder is in use by another meshd; one folder serves one process")
        .with_internal(folder_);
  }
  database_ = std::make_unique<Database>(DatabaseOptions{database_path(folder_), options.vfs, options.fatal});
  catalog_ = std::make_unique<Catalog>(*database_);
  Database& database = *database_;
  blobs_ = std::make_unique<BlobStore>(files_, folder_ + "/blobs",
                                       [&database](const std::string& reason) { database.fail(reason); });
  files_.sync_folder(folder_);
  recovery_ = recover(*catalog_, *blobs_, clock.wall());
  recovery_.was_clean = database_->was_clean();
}

Store::~Store() = default;

StoreHealth Store::health() const { return {catalog_->writable(), files_.free_bytes(folder_), catalog_->counters()}; }

int64_t Store::collect_garbage() {
  const std::lock_guard<std::mutex> held(removal_);
  std::vector<std::string> names = catalog_->take_dropped_blobs();
  abandoned_.with([&](std::vector<std::string>& more) {
    names.insert(names.end(), more.begin(), more.end());
    more.clear();
  });
  return blobs_->remove_unnamed(names, [&](const std::string& name) {
    return catalog_->read([&](Reader& reader) { return reader.names_blob(name); });
  });
}

void Store::abandon(std::vector<std::string> blobs) {
  abandoned_.with([&](std::vector<std::string>& names) { names.insert(names.end(), blobs.begin(), blobs.end()); });
}

void Store::backup_to(const std::string& folder) {
  files_.make_folder(folder);
  // Blobs that the copied rows name must still be there when their turn comes.
  const std::lock_guard<std::mutex> held(removal_);
  database_->backup_to(database_path(folder));
  BlobStore target(files_, folder + "/blobs", [](const std::string&) {});
  target.copy_from(*blobs_);
  files_.sync_folder(folder);
}

}  // namespace meshd::storage
