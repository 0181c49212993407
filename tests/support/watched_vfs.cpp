#include "tests/support/watched_vfs.h"

#include <sqlite3.h>

#include <atomic>
#include <new>
#include <utility>

namespace meshd::testing {
namespace {

// SQLite allocates this, and the system's file right behind it.
struct ShimFile {
  sqlite3_file base;
  SystemWatcher* watcher;
  sqlite3_file* real;
  const char* path;      ///< SQLite keeps it as long as the file is open; null for temporary files
  bool sync_folder_too;  ///< a journal that was just made: its first sync makes its name durable
};

std::string folder_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

ShimFile& shim(sqlite3_file* file) { return *reinterpret_cast<ShimFile*>(file); }
sqlite3_file* real(sqlite3_file* file) { return shim(file).real; }
const sqlite3_io_methods* methods(sqlite3_file* file) { return real(file)->pMethods; }

int full_or(SystemWatcher& watcher, int code) { return watcher.kind() == FaultKind::kNoSpace ? SQLITE_FULL : code; }

int close_file(sqlite3_file* file) {
  const int code = methods(file)->xClose(real(file));
  file->pMethods = nullptr;
  return code;
}
int read_file(sqlite3_file* file, void* out, int amount, sqlite3_int64 offset) {
  if (shim(file).watcher->fails("sql_read")) return SQLITE_IOERR_READ;
  return methods(file)->xRead(real(file), out, amount, offset);
}
int write_file(sqlite3_file* file, const void* bytes, int amount, sqlite3_int64 offset) {
  if (shim(file).watcher->fails("sql_write")) {
    methods(file)->xWrite(real(file), bytes, amount / 2, offset);
    return full_or(*shim(file).watcher, SQLITE_IOERR_WRITE);
  }
  const int code = methods(file)->xWrite(real(file), bytes, amount, offset);
  if (code == SQLITE_OK && shim(file).path != nullptr) {
    const auto* data = static_cast<const std::byte*>(bytes);
    shim(file).watcher->wrote(shim(file).path, offset, {data, static_cast<size_t>(amount)});
  }
  return code;
}
int truncate_file(sqlite3_file* file, sqlite3_int64 size) {
  if (shim(file).watcher->fails("sql_truncate")) return SQLITE_IOERR_TRUNCATE;
  const int code = methods(file)->xTruncate(real(file), size);
  if (code == SQLITE_OK && shim(file).path != nullptr) shim(file).watcher->resized(shim(file).path, size);
  return code;
}
int sync_file(sqlite3_file* file, int flags) {
  if (shim(file).watcher->fails("sql_sync")) return SQLITE_IOERR_FSYNC;
  const int code = methods(file)->xSync(real(file), flags);
  if (code != SQLITE_OK || shim(file).path == nullptr) return code;
  shim(file).watcher->synced(shim(file).path);
  if (std::exchange(shim(file).sync_folder_too, false)) shim(file).watcher->synced_folder(folder_of(shim(file).path));
  return code;
}
int file_size(sqlite3_file* file, sqlite3_int64* size) {
  if (shim(file).watcher->fails("sql_size")) return SQLITE_IOERR_FSTAT;
  return methods(file)->xFileSize(real(file), size);
}
int lock_file(sqlite3_file* file, int level) { return methods(file)->xLock(real(file), level); }
int unlock_file(sqlite3_file* file, int level) { return methods(file)->xUnlock(real(file), level); }
int check_reserved(sqlite3_file* file, int* out) { return methods(file)->xCheckReservedLock(real(file), out); }
int control_file(sqlite3_file* file, int op, void* arg) { return methods(file)->xFileControl(real(file), op, arg); }
int sector_size(sqlite3_file* file) { return methods(file)->xSectorSize(real(file)); }
int characteristics(sqlite3_file* file) { return methods(file)->xDeviceCharacteristics(real(file)); }
int shm_map(sqlite3_file* file, int page, int size, int extend, void volatile** out) {
  if (shim(file).watcher->fails("sql_shm")) {
    return shim(file).watcher->kind() == FaultKind::kNoSpace ? SQLITE_IOERR_SHMSIZE : SQLITE_IOERR_SHMMAP;
  }
  return methods(file)->xShmMap(real(file), page, size, extend, out);
}
int shm_lock(sqlite3_file* file, int offset, int n, int flags) {
  return methods(file)->xShmLock(real(file), offset, n, flags);
}
void shm_barrier(sqlite3_file* file) { methods(file)->xShmBarrier(real(file)); }
int shm_unmap(sqlite3_file* file, int remove) { return methods(file)->xShmUnmap(real(file), remove); }

constexpr sqlite3_io_methods kShimMethods = {
    2,         close_file,  read_file,      write_file,   truncate_file, sync_file,       file_size,
    lock_file, unlock_file, check_reserved, control_file, sector_size,   characteristics, shm_map,
    shm_lock,  shm_barrier, shm_unmap,      nullptr,      nullptr};

}  // namespace

struct WatchedVfs::Impl {
  sqlite3_vfs vfs{};
  sqlite3_vfs* system = nullptr;
  SystemWatcher* watcher = nullptr;

  static Impl& of(sqlite3_vfs* vfs) { return *static_cast<Impl*>(vfs->pAppData); }

  static int open(sqlite3_vfs* vfs, const char* name, sqlite3_file* file, int flags, int* out_flags) {
    Impl& impl = of(vfs);
    file->pMethods = nullptr;
    if (impl.watcher->fails("sql_open")) return SQLITE_CANTOPEN;
    int existed = 1;
    if (name != nullptr) impl.system->xAccess(impl.system, name, SQLITE_ACCESS_EXISTS, &existed);
    const bool journal = (flags & (SQLITE_OPEN_WAL | SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_SUPER_JOURNAL)) != 0;
    auto* made = new (file) ShimFile{
        {nullptr}, impl.watcher, reinterpret_cast<sqlite3_file*>(&shim(file) + 1), name, journal && existed == 0};
    const int code = impl.system->xOpen(impl.system, name, made->real, flags, out_flags);
    if (made->real->pMethods != nullptr) file->pMethods = &kShimMethods;
    if (code == SQLITE_OK && existed == 0) impl.watcher->created(name);
    return code;
  }
  static int remove(sqlite3_vfs* vfs, const char* name, int sync) {
    Impl& impl = of(vfs);
    if (impl.watcher->fails("sql_delete")) return SQLITE_IOERR_DELETE;
    const int code = impl.system->xDelete(impl.system, name, sync);
    if (code == SQLITE_OK) impl.watcher->removed(name);
    if (code == SQLITE_OK && sync != 0) impl.watcher->synced_folder(folder_of(name));
    return code;
  }
  static int access(sqlite3_vfs* vfs, const char* name, int flags, int* out) {
    return of(vfs).system->xAccess(of(vfs).system, name, flags, out);
  }
  static int full_path(sqlite3_vfs* vfs, const char* name, int size, char* out) {
    return of(vfs).system->xFullPathname(of(vfs).system, name, size, out);
  }
  static int randomness(sqlite3_vfs* vfs, int size, char* out) {
    return of(vfs).system->xRandomness(of(vfs).system, size, out);
  }
  static int sleep(sqlite3_vfs* vfs, int microseconds) { return of(vfs).system->xSleep(of(vfs).system, microseconds); }
  static int time(sqlite3_vfs* vfs, sqlite3_int64* out) {
    return of(vfs).system->xCurrentTimeInt64(of(vfs).system, out);
  }
  static int last_error(sqlite3_vfs* vfs, int size, char* out) {
    return of(vfs).system->xGetLastError(of(vfs).system, size, out);
  }
};

WatchedVfs::WatchedVfs(SystemWatcher& watcher) : impl_(std::make_unique<Impl>()) {
  static std::atomic<int> count{0};
  name_ = "failing-" + std::to_string(++count);
  impl_->system = sqlite3_vfs_find(nullptr);
  impl_->watcher = &watcher;
  sqlite3_vfs& vfs = impl_->vfs;
  vfs.iVersion = 2;
  vfs.szOsFile = static_cast<int>(sizeof(ShimFile)) + impl_->system->szOsFile;
  vfs.mxPathname = impl_->system->mxPathname;
  vfs.zName = name_.c_str();
  vfs.pAppData = impl_.get();
  vfs.xOpen = Impl::open;
  vfs.xDelete = Impl::remove;
  vfs.xAccess = Impl::access;
  vfs.xFullPathname = Impl::full_path;
  vfs.xRandomness = Impl::randomness;
  vfs.xSleep = Impl::sleep;
  vfs.xGetLastError = Impl::last_error;
  vfs.xCurrentTimeInt64 = Impl::time;
  sqlite3_vfs_register(&vfs, 0);
}

WatchedVfs::~WatchedVfs() { sqlite3_vfs_unregister(&impl_->vfs); }

}  // namespace meshd::testing
