// State that the parts of one blob store share. Inside storage only.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "service/core/locked.h"
#include "storage/fatal.h"
#include "storage/file_system.h"

namespace meshd::storage {

class RankBlobs;

/// Any thread. The lock is a leaf: nothing is called while it is held.
struct BlobStoreState {
  BlobStoreState(FileSystem& files_, std::string folder_, FatalHandler fatal_)
      : files(files_), folder(std::move(folder_)), fatal(std::move(fatal_)) {}

  FileSystem& files;
  std::string folder;
  FatalHandler fatal;
  /// Blobs that are being written or that no row names yet, and how many pins each has.
  core::Locked<std::map<std::string, int>> pins;
  std::vector<RankBlobs*> ranks;  ///< constant once blobs are read

  [[nodiscard]] std::string temporary_folder() const { return folder + "/tmp"; }
  [[nodiscard]] std::string temporary_path(std::string_view name) const {
    return temporary_folder() + "/" + std::string(name);
  }
  /// The folder of a blob: names that agree up to their first dot share it.
  [[nodiscard]] std::string bucket(std::string_view name) const;
  [[nodiscard]] std::string path(std::string_view name) const { return bucket(name) + "/" + std::string(name); }
};

}  // namespace meshd::storage
