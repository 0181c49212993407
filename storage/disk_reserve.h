// Reserved disk space, so that deletes can commit on a full disk: a DELETE has to grow the log before it frees
// anything, and the log starts over only when the database has room for what it holds.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

#include "storage/file_system.h"

namespace meshd::storage {

/// The file `reserve` of `bytes` bytes in a folder. Any thread.
class DiskReserve {
 public:
  DiskReserve(FileSystem& files, std::string folder, int64_t bytes);

  /// Makes the file where it is missing, or has not its bytes, and the disk has twice the room. False: there is none
  /// now; call it again later.
  bool keep();
  /// Gives the space to whoever writes next. False: it was given before.
  bool release();
  /// The file is there with its bytes, as far as the last call of the two above knows. While it is not, the database
  /// must not grow.
  [[nodiscard]] bool is_kept() const { return is_kept_; }
  /// Bytes that are free on the disk; as many as can be where it does not tell.
  [[nodiscard]] int64_t free_bytes() const noexcept;

 private:
  bool make();
  bool remove();

  FileSystem& files_;
  const std::string folder_;
  const std::string path_;
  const int64_t bytes_;
  std::mutex mutex_;  ///< of the file, and of the flag with it
  std::atomic<bool> is_kept_{false};
};

}  // namespace meshd::storage
