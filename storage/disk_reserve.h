// Reserved disk space, so that deletes can commit on a full disk: a DELETE has to grow the log before it frees
// anything.
#pragma once

#include <cstdint>
#include <string>

#include "storage/file_system.h"

namespace meshd::storage {

/// The file `reserve` of `bytes` bytes in a folder. Any thread; keep() and release() come from one thread at a time
/// each, and either may find that the other was faster.
class DiskReserve {
 public:
  DiskReserve(FileSystem& files, std::string folder, int64_t bytes);

  /// Makes the file where it is missing, or has not its bytes, and the disk has twice the room. False: there is none
  /// now; call it again later.
  bool keep();
  /// Gives the space to whoever writes next. False: it was given before.
  bool release();

 private:
  bool make();

  FileSystem& files_;
  const std::string folder_;
  const std::string path_;
  const int64_t bytes_;
};

}  // namespace meshd::storage
