#include "storage/data_copy.h"

#include <filesystem>
#include <system_error>

#include "service/core/error.h"
#include "storage/database/database.h"
#include "storage/rows/reader.h"
#include "storage/store.h"

namespace meshd::storage {
namespace {

std::string mark_of(const std::string& folder) { return folder + "/incomplete"; }

/// What a copy has made so far, the mark last: without it all the rest is gone. Fails silently.
void remove_copy(const std::string& folder) {
  std::error_code failed;
  std::filesystem::remove_all(folder + "/blobs", failed);
  for (const char* ending : {"", "-journal", "-wal", "-shm"}) {
    if (!failed) std::filesystem::remove(database_path(folder) + ending, failed);
  }
  if (!failed) std::filesystem::remove(mark_of(folder), failed);
}

}  // namespace

void copy_data(FileSystem& files, Connection& rows, const BlobStore& blobs, const std::string& folder, BlobCopy how) {
  make_durable_folder(files, folder);
  if (!files.list(folder).empty()) {
    std::error_code unreadable;
    const bool was_cut_off = std::filesystem::exists(mark_of(folder), unreadable);
    throw core::Error("conflict", "the folder '" + folder +
                                      (was_cut_off ? "' holds a copy that was cut off; delete it, or name a new one"
                                                   : "' has something in it already; name a new one"));
  }
  static_cast<void>(files.create(mark_of(folder)));
  try {
    files.sync_folder(folder);
    copy_database(rows, database_path(folder));
    BlobStore target(files, folder + "/blobs", [](const std::string&) {});
    {
      // By the rows of the copy: others are committed meanwhile, and name other blobs.
      Connection copied(database_path(folder), Connection::Mode::kReadWrite, {});
      Reader reader(copied);
      target.copy_from(blobs, how, [&](const std::string& name) { return reader.names_blob(name); });
    }
    make_data_private(files, folder);
    files.sync_folder(folder);
    files.unlink(mark_of(folder));
    files.sync_folder(folder);
  } catch (...) {
    remove_copy(folder);
    throw;
  }
}

void require_whole(const std::string& folder) {
  std::error_code unreadable;
  if (!std::filesystem::exists(mark_of(folder), unreadable)) return;
  throw core::Error("storage_failed", "the folder '" + folder +
                                          "' holds a copy that was cut off before it was whole; delete it and make the "
                                          "copy again");
}

std::vector<std::string> make_data_private(FileSystem& files, const std::string& folder) {
  std::vector<std::string> open;
  const auto close = [&](const std::string& path) {
    if (!files.make_private(path)) open.push_back(path);
  };
  close(folder + "/.");  // the folder itself may be reached through a link
  for (const FolderEntry& entry : files.list(folder)) {
    // There may be other entries, such as a disk's lost+found.
    const bool is_blobs = entry.is_folder && entry.name == "blobs";
    const std::string path = folder + "/" + entry.name;
    if (is_blobs || entry.name == "lock" || entry.name.starts_with("meshd.db")) close(path);
    if (!is_blobs) continue;
    for (const FolderEntry& bucket : files.list(path)) close(path + "/" + bucket.name);
  }
  return open;
}

}  // namespace meshd::storage
