// Blobs on the disks of other ranks (processes of one mesh, service/hosts). A rank writes and syncs the shards that it
// holds itself; rows are rank 0's. The name of such a blob says whose it is: "arr_X.v1.w8.s1.rank1". A BlobStore looks
// here for what is not in its own folder, and checks what it reads as it does its own.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "storage/blobs/blob_store.h"
#include "storage/file_system.h"

namespace meshd::storage {

/// The rank that the name of a blob tells; 0 where it tells none: the process that has the rows.
int blob_rank(std::string_view name);
/// The name of a blob that this rank writes.
std::string rank_blob_name(std::string name, int rank);

/// The disks of other ranks. Any thread; calls wait for the other side.
class RankBlobs {
 public:
  virtual ~RankBlobs() = default;
  [[nodiscard]] virtual bool has_rank(int rank) const = 0;
  /// What is there now, in no order.
  [[nodiscard]] virtual std::vector<StoredBlob> list() = 0;
  /// For reading; it stays readable when the blob is removed. nullptr where there is none.
  [[nodiscard]] virtual std::unique_ptr<File> open(const std::string& name) = 0;
  /// Returns how many there were. Throws storage_failed.
  virtual int64_t remove(std::span<const std::string> names) = 0;
};

/// The folder of a rank below the data folder that all ranks are given; it has the rank's lock, its blobs, and the name
/// of the mesh that these belong to. That of rank 0 has the name alone.
std::string rank_folder(const std::string& data_folder, int rank);

/// The name of the mesh whose folder it is: the one that is written there, or else `name`, which is written. The folder
/// is made, and all of it is durable; the parent of the data folder exists.
std::string name_of_mesh(FileSystem& files, const std::string& data_folder, int rank, const std::string& name);

/// Folders of ranks that this process can open itself: all ranks share a machine or a file system, and the mesh now has
/// fewer ranks than the one that wrote them, or no server runs (`meshd fsck`).
class RankFolders final : public RankBlobs {
 public:
  /// Those that are there and belong to the mesh of rank 0's folder, but for the ranks of `others`. The host of another
  /// rank has that rank's folder alone: a server that is started there on its own has no rows that name these shards,
  /// and must not take them for orphans.
  RankFolders(FileSystem& files, const std::string& data_folder, const RankBlobs* others = nullptr);
  ~RankFolders() override;

  [[nodiscard]] bool has_rank(int rank) const override;
  [[nodiscard]] std::vector<StoredBlob> list() override;
  [[nodiscard]] std::unique_ptr<File> open(const std::string& name) override;
  int64_t remove(std::span<const std::string> names) override;

 private:
  std::vector<std::pair<int, std::unique_ptr<BlobStore>>> stores_;
};

}  // namespace meshd::storage
