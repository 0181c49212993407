// The storage engine over one data folder; api/app builds it once. Layout: `lock`, `meshd.db` (with -wal and -shm),
// `blobs/`.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "service/core/clock.h"
#include "service/core/locked.h"
#include "storage/blobs/blob_store.h"
#include "storage/blobs/rank_blobs.h"
#include "storage/catalog.h"
#include "storage/database/database.h"
#include "storage/disk_reserve.h"
#include "storage/fatal.h"
#include "storage/file_system.h"
#include "storage/recovery.h"

namespace meshd::storage {

struct StoreOptions {
  std::string folder;                        ///< made when missing; its parent must exist
  std::string vfs;                           ///< see DatabaseOptions
  FatalHandler fatal;                        ///< must be set
  int64_t reserve_bytes = int64_t{4} << 20;  ///< held back for deletes on a full disk
  RankBlobs* ranks = nullptr;                ///< of the mesh that this process is rank 0 of; it outlives the store
  std::vector<int> lost_ranks = {};          ///< their disks are gone for good: arrays with shards there are lost
};

/// For /readyz and /metrics.
struct StoreHealth {
  bool writable = true;
  int64_t disk_free_bytes = 0;
  CatalogCounters catalog;
};

/// Owns lock, database, catalog and blobs. Any thread.
class Store {
 public:
  /// Takes the lock, opens, recovers. Throws storage_failed with a clear line when another process uses the folder, the
  /// schema is newer, or the database is damaged. `files` and `clock` must outlive the store.
  Store(StoreOptions options, FileSystem& files, const core::Clock& clock);
  /// Commits what is queued, checkpoints, marks the end as clean, releases the lock.
  ~Store();

  [[nodiscard]] Catalog& catalog() { return *catalog_; }
  [[nodiscard]] BlobStore& blobs() { return *blobs_; }
  [[nodiscard]] const RecoveryReport& recovery() const { return recovery_; }
  [[nodiscard]] StoreHealth health() const;

  /// Removes files that rows stopped naming since the last call, refills the disk reserve, and gives back pages of the
  /// database that nothing needs. Call it periodically from one background thread. Returns how many files were removed.
  int64_t collect_garbage();
  /// Blobs of a write that came to nothing: the next collect_garbage() removes those that no row names.
  void abandon(std::vector<std::string> blobs);
  /// A copy of everything that is committed now, into a new folder that a Store can open. Blobs are hard links where
  /// the file system allows it, else copies. The store stays writable meanwhile. Throws conflict where the folder is
  /// not empty, disk_full; then nothing of the copy is left.
  void backup_to(const std::string& folder);

 private:
  void vacuum();

  FileSystem& files_;
  core::Locked<std::vector<std::string>> abandoned_;
  std::mutex removal_;  ///< held while files are removed or must not be; taken before any other lock
  std::string folder_;
  DiskReserve reserve_;
  std::unique_ptr<FileLock> lock_;
  std::unique_ptr<Database> database_;
  std::unique_ptr<Catalog> catalog_;
  std::unique_ptr<RankFolders> rank_folders_;
  std::unique_ptr<BlobStore> blobs_;
  RecoveryReport recovery_;
};

/// The database of a data folder.
std::string database_path(const std::string& folder);
/// Throws not_found where the folder has no database, whose file is not opened (README.md); storage_failed where it
/// cannot be looked into, or holds a copy that was cut off.
void require_data(const std::string& folder);

}  // namespace meshd::storage
