#include "tests/support/failing_vfs.h"

#include <sqlite3.h>

#include <atomic>
#include <new>

namespace meshd::testing {
namespace {

// SQLite allocates this, and the system's file right behind it.
struct ShimFile {
  sqlite3_file base;
  FaultPlan* plan;
  sqlite3_file* real;
};

ShimFile& shim(sqlite3_file* file) { return *reinterpret_cast<ShimFile*>(file); }
sqlite3_file* real(sqlite3_file* file) { return shim(file).real; }
const sqlite3_io_methods* methods(sqlite3_file* file) { return real(file)->pMethods; }

int full_or(FaultPlan& plan, int code) { return plan.kind() == FaultKind::kNoSpace ? SQLITE_FULL : code; }

int close_file(sqlite3_file* file) {
  const int code = methods(file)->xClose(real(file));
  file->pMethods = nullptr;
  return code;
}
int read_file(sqlite3_file* file, void* out, int amount, sqlite3_int64 offset) {
  if (shim(file).plan->fails("sql_read")) return SQLITE_IOERR_READ;
  return methods(file)->xRead(real(file), out, amount, offset);
}
int write_file(sqlite3_file* file, const void* bytes, int amount, sqlite3_int64 offset) {
  if (shim(file).plan->fails("sql_write")) {
    methods(file)->xWrite(real(file), bytes, amount / 2, offset);
    return full_or(*shim(file).plan, SQLITE_IOERR_WRITE);
  }
  return methods(file)->xWrite(real(file), bytes, amount, offset);
}
int truncate_file(sqlite3_file* file, sqlite3_int64 size) {
  if (shim(file).plan->fails("sql_truncate")) return SQLITE_IOERR_TRUNCATE;
  return methods(file)->xTruncate(real(file), size);
}
int sync_file(sqlite3_file* file, int flags) {
  if (shim(file).plan->fails("sql_sync")) return SQLITE_IOERR_FSYNC;
  return methods(file)->xSync(real(file), flags);
}
int file_size(sqlite3_file* file, sqlite3_int64* size) {
  if (shim(file).plan->fails("sql_size")) return SQLITE_IOERR_FSTAT;
  return methods(file)->xFileSize(real(file), size);
}
int lock_file(sqlite3_file* file, int level) { return methods(file)->xLock(real(file), level); }
int unlock_file(sqlite3_file* file, int level) { return methods(file)->xUnlock(real(file), level); }
int check_reserved(sqlite3_file* file, int* out) { return methods(file)->xCheckReservedLock(real(file), out); }
int control_file(sqlite3_file* file, int op, void* arg) { return methods(file)->xFileControl(real(file), op, arg); }
int sector_size(sqlite3_file* file) { return methods(file)->xSectorSize(real(file)); }
int characteristics(sqlite3_file* file) { return methods(file)->xDeviceCharacteristics(real(file)); }
int shm_map(sqlite3_file* file, int page, int size, int extend, void volatile** out) {
  if (shim(file).plan->fails("sql_shm")) {
    return shim(file).plan->kind() == FaultKind::kNoSpace ? SQLITE_IOERR_SHMSIZE : SQLITE_IOERR_SHMMAP;
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

struct FailingVfs::Impl {
  sqlite3_vfs vfs{};
  sqlite3_vfs* system = nullptr;
  FaultPlan* plan = nullptr;

  static Impl& of(sqlite3_vfs* vfs) { return *static_cast<Impl*>(vfs->pAppData); }

  static int open(sqlite3_vfs* vfs, const char* name, sqlite3_file* file, int flags, int* out_flags) {
    Impl& impl = of(vfs);
    file->pMethods = nullptr;
    if (impl.plan->fails("sql_open")) return SQLITE_CANTOPEN;
    auto* made = new (file) ShimFile{{nullptr}, impl.plan, reinterpret_cast<sqlite3_file*>(&shim(file) + 1)};
    const int code = impl.system->xOpen(impl.system, name, made->real, flags, out_flags);
    if (made->real->pMethods != nullptr) file->pMethods = &kShimMethods;
    return code;
  }
  static int remove(sqlite3_vfs* vfs, const char* name, int sync) {
    Impl& impl = of(vfs);
    if (impl.plan->fails("sql_delete")) return SQLITE_IOERR_DELETE;
    return impl.system->xDelete(impl.system, name, sync);
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

FailingVfs::FailingVfs(FaultPlan& plan) : impl_(std::make_unique<Impl>()) {
  static std::atomic<int> count{0};
  name_ = "failing-" + std::to_string(++count);
  impl_->system = sqlite3_vfs_find(nullptr);
  impl_->plan = &plan;
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

FailingVfs::~FailingVfs() { sqlite3_vfs_unregister(&impl_->vfs); }

}  // namespace meshd::testing
