#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <string_view>
#include <system_error>

#include "service/core/error.h"
#include "storage/file_system.h"

namespace meshd::storage {
namespace {

[[noreturn]] void throw_errno(int error, std::string_view what, const std::string& path) {
  std::string internal = std::string(what) + " '" + path + "': " + std::generic_category().message(error);
  if (error == ENOSPC || error == EDQUOT) {
    throw core::Error("disk_full", "no space is left on the disk that keeps the data")
        .with_internal(std::move(internal));
  }
  throw core::Error("storage_failed", "the data folder could not be used").with_internal(std::move(internal));
}

// Linux gives a descriptor back even when close fails, so there is nothing to repeat.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  [[nodiscard]] int number() const { return number_; }

 private:
  int number_;
};

/// What root makes belongs to the owner of the folder that it is in, as SQLite's logs do: else a server of that user
/// could not use a folder that root has restored, backed up or served. No effect for other users, and where a file
/// system has no owners.
class Inheritance {
 public:
  explicit Inheritance(const std::string& path) {
    if (::geteuid() != 0) return;
    const size_t end = path.rfind('/');
    const std::string folder = end == std::string::npos ? "." : path.substr(0, end + 1);
    struct stat info {};
    if (::stat(folder.c_str(), &info) != 0 || info.st_uid == 0) return;
    is_given_ = true;
    user_ = info.st_uid;
    group_ = info.st_gid;
  }
  void give(int number) const {
    if (is_given_ && ::fchown(number, user_, group_) != 0) return;
  }
  /// Of a file that root owns, by its name; not through a symbolic link.
  void give(const std::string& path) const {
    if (is_given_ && ::lchown(path.c_str(), user_, group_) != 0) return;
  }

 private:
  bool is_given_ = false;
  uid_t user_ = 0;
  gid_t group_ = 0;
};

class RealFile final : public File {
 public:
  RealFile(int number, std::string path) : descriptor_(number), path_(std::move(path)) {}

  void write_at(int64_t offset, std::span<const std::byte> bytes) override {
    while (!bytes.empty()) {
      const ssize_t done = ::pwrite(descriptor_.number(), bytes.data(), bytes.size(), offset);
      if (done < 0 && errno == EINTR) continue;
      if (done < 0) throw_errno(errno, "write", path_);
      bytes = bytes.subspan(static_cast<size_t>(done));
      offset += done;
    }
  }

  size_t read_at(int64_t offset, std::span<std::byte> out) const override {
    size_t filled = 0;
    while (filled < out.size()) {
      const ssize_t done = ::pread(descriptor_.number(), out.data() + filled, out.size() - filled,
                                   offset + static_cast<int64_t>(filled));
      if (done < 0 && errno == EINTR) continue;
      if (done < 0) throw_errno(errno, "read", path_);
      if (done == 0) break;
      filled += static_cast<size_t>(done);
    }
    return filled;
  }

  void reserve(int64_t size) override {
    if (size <= 0) return;
    while (::fallocate(descriptor_.number(), 0, 0, size) != 0) {
      if (errno == EINTR) continue;
      if (errno == EOPNOTSUPP || errno == ENOSYS) return;
      throw_errno(errno, "reserve", path_);
    }
  }

  void start_writeback() noexcept override {
    // Does not take the error away from a later fsync: it waits for nothing.
    static_cast<void>(::sync_file_range(descriptor_.number(), 0, 0, SYNC_FILE_RANGE_WRITE));
  }

  void sync() override {
    if (::fsync(descriptor_.number()) != 0) throw_errno(errno, "fsync", path_);
  }

  int64_t size() const override {
    struct stat info {};
    if (::fstat(descriptor_.number(), &info) != 0) throw_errno(errno, "stat", path_);
    return info.st_size;
  }

 private:
  Descriptor descriptor_;
  std::string path_;
};

class RealFileLock final : public FileLock {
 public:
  explicit RealFileLock(int number) : descriptor_(number) {}

 private:
  Descriptor descriptor_;
};

struct FolderCloser {
  void operator()(DIR* folder) const { ::closedir(folder); }
};

class RealFileSystem final : public FileSystem {
 public:
  std::unique_ptr<File> create(const std::string& path) override {
    const int number = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (number < 0) throw_errno(errno, "create", path);
    Inheritance(path).give(number);
    return std::make_unique<RealFile>(number, path);
  }

  std::unique_ptr<File> open(const std::string& path) override {
    const int number = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (number < 0 && errno == ENOENT) return nullptr;
    if (number < 0) throw_errno(errno, "open", path);
    return std::make_unique<RealFile>(number, path);
  }

  void rename(const std::string& from, const std::string& to) override {
    if (::rename(from.c_str(), to.c_str()) != 0) throw_errno(errno, "rename", from);
  }

  bool unlink(const std::string& path) override {
    if (::unlink(path.c_str()) == 0) return true;
    if (errno != ENOENT) throw_errno(errno, "unlink", path);
    return false;
  }

  void sync_folder(const std::string& path) override {
    const Descriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (folder.number() < 0 && (errno == EMFILE || errno == ENFILE)) {
      // Nothing was synced, and nothing has failed for good.
      throw core::Error("overloaded", "the server has no file descriptor left").with_retry_after(1);
    }
    if (folder.number() < 0) throw_errno(errno, "open folder", path);
    if (::fsync(folder.number()) != 0) throw_errno(errno, "fsync folder", path);
  }

  std::vector<FolderEntry> list(const std::string& path) override {
    const std::unique_ptr<DIR, FolderCloser> folder(::opendir(path.c_str()));
    if (!folder) throw_errno(errno, "open folder", path);
    std::vector<FolderEntry> entries;
    for (;;) {
      errno = 0;
      const dirent* entry = ::readdir(folder.get());
      if (entry == nullptr) break;
      const std::string_view name = entry->d_name;
      if (name == "." || name == "..") continue;
      struct stat info {};
      if (::fstatat(::dirfd(folder.get()), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0) {
        if (errno == ENOENT) continue;  // deleted between the two calls
        throw_errno(errno, "stat", path);
      }
      entries.push_back({std::string(name), S_ISDIR(info.st_mode), info.st_size});
    }
    if (errno != 0) throw_errno(errno, "read folder", path);
    return entries;
  }

  void make_folder(const std::string& path) override {
    if (::mkdir(path.c_str(), 0700) == 0) {
      Inheritance(path).give(path);
    } else if (errno != EEXIST) {
      throw_errno(errno, "make folder", path);
    }
  }

  bool make_private(const std::string& path) override {
    constexpr mode_t kOwner = S_IRWXU;
    struct stat info {};
    // By name, never through a descriptor: closing one of the database's files would drop SQLite's locks on it.
    if (::lstat(path.c_str(), &info) != 0) {
      if (errno == ENOENT) return true;
      throw_errno(errno, "stat", path);
    }
    if (info.st_uid == 0 && info.st_nlink == 1 && S_ISREG(info.st_mode)) Inheritance(path).give(path);
    if (S_ISLNK(info.st_mode) || (info.st_mode & (S_IRWXG | S_IRWXO)) == 0) return true;
    if (::chmod(path.c_str(), info.st_mode & kOwner) == 0) return true;
    // A file system without permissions cannot either.
    if (errno == EPERM || errno == EROFS || errno == EOPNOTSUPP) return false;
    throw_errno(errno, "chmod", path);
  }

  bool link(const std::string& from, const std::string& to) override {
    if (::link(from.c_str(), to.c_str()) == 0) return true;
    if (errno == EXDEV || errno == EPERM || errno == EMLINK || errno == EOPNOTSUPP) return false;
    throw_errno(errno, "link", to);
  }

  int64_t free_bytes(const std::string& path) override {
    struct statvfs info {};
    if (::statvfs(path.c_str(), &info) != 0) throw_errno(errno, "statvfs", path);
    if (info.f_blocks == 0) return INT64_MAX;
    return static_cast<int64_t>(info.f_bavail) * static_cast<int64_t>(info.f_frsize);
  }

  std::unique_ptr<FileLock> try_lock(const std::string& path) override {
    const int number = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (number < 0) throw_errno(errno, "open lock", path);
    auto lock = std::make_unique<RealFileLock>(number);
    Inheritance(path).give(number);
    while (::flock(number, LOCK_EX | LOCK_NB) != 0) {
      if (errno == EINTR) continue;
      if (errno == EWOULDBLOCK) return nullptr;
      throw_errno(errno, "lock", path);
    }
    return lock;
  }
};

}  // namespace

std::unique_ptr<FileSystem> real_file_system() { return std::make_unique<RealFileSystem>(); }

}  // namespace meshd::storage
