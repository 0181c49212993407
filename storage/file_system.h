// The file system interface (LevelDB's Env): what blobs and the lock file need, no more. `real_file_system` is the
// implementation; tests inject faults (tests/support/watched_file_system.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace meshd::storage {

/// An open file. Reads and writes at disjoint ranges may come from any thread; destroying it closes it.
/// Every function throws core::Error: `disk_full` when there is no space or quota left, else `storage_failed`.
class File {
 public:
  virtual ~File() = default;

  /// Writes all of `bytes` at `offset`.
  virtual void write_at(int64_t offset, std::span<const std::byte> bytes) = 0;
  /// Fills `out` from `offset`; returns how many bytes there were, fewer than requested only at the end of the file.
  [[nodiscard]] virtual size_t read_at(int64_t offset, std::span<std::byte> out) const = 0;
  /// Reserves `size` bytes on the disk, so that a full disk shows before the bytes arrive. May do nothing.
  virtual void reserve(int64_t size) = 0;
  /// Starts to write to the disk what was written to the file, and does not wait for it: what a later sync() waits for,
  /// and what the kernel may not drop from memory, gets less. A hint that never fails: sync() reports every error.
  virtual void start_writeback() noexcept = 0;
  /// fsync. When it throws the file's state is unknown: it must be thrown away, never synced again.
  virtual void sync() = 0;
  [[nodiscard]] virtual int64_t size() const = 0;
};

/// Held for its lifetime; the system releases it when the process ends, however it ends.
class FileLock {
 public:
  virtual ~FileLock() = default;
};

/// One name in a folder.
struct FolderEntry {
  std::string name;
  bool is_folder = false;
  int64_t bytes = 0;  ///< size of a file
};

/// The file system as storage sees it. Any thread. Paths are absolute or relative to the working folder.
/// Every function throws core::Error: `disk_full` when there is no space or quota left, else `storage_failed`, with the
/// path and the system's reason in the internal text only.
class FileSystem {
 public:
  virtual ~FileSystem() = default;

  /// Makes a new file for reading and writing; it must not exist.
  [[nodiscard]] virtual std::unique_ptr<File> create(const std::string& path) = 0;
  /// Opens for reading; nullptr when there is no such file.
  [[nodiscard]] virtual std::unique_ptr<File> open(const std::string& path) = 0;
  /// Replaces `to` if it is there. Durable only after `sync_folder` of the folder of `to`.
  virtual void rename(const std::string& from, const std::string& to) = 0;
  /// False when there was no such file.
  virtual bool unlink(const std::string& path) = 0;
  /// Makes the names in a folder durable.
  virtual void sync_folder(const std::string& path) = 0;
  /// All names except "." and "..", in no order.
  [[nodiscard]] virtual std::vector<FolderEntry> list(const std::string& path) = 0;
  /// Makes a folder (not its parents); one that is already there is right.
  virtual void make_folder(const std::string& path) = 0;
  /// Removes the permissions of group and others from a file or folder. No effect on a missing one or a symbolic link.
  /// False when it has another owner, so that only they (or root) can. A file of root's in a folder of another user
  /// becomes that user's, as what root makes through this interface is from the start.
  [[nodiscard]] virtual bool make_private(const std::string& path) = 0;
  /// Gives a file a second name, which must not exist; false when this file system (or two of them) cannot.
  [[nodiscard]] virtual bool link(const std::string& from, const std::string& to) = 0;
  /// Bytes that this process may still write on the disk of `path`; as many as can be where the file system does not
  /// tell.
  [[nodiscard]] virtual int64_t free_bytes(const std::string& path) = 0;
  /// Takes an exclusive flock on a file, which is created when missing; nullptr when another process holds it.
  [[nodiscard]] virtual std::unique_ptr<FileLock> try_lock(const std::string& path) = 0;
};

/// The system's own files.
std::unique_ptr<FileSystem> real_file_system();

/// Makes a folder, and its name in its parent durable. One that is already there is right.
void make_durable_folder(FileSystem& files, const std::string& path);

}  // namespace meshd::storage
