// Preloaded into the real binary (LD_PRELOAD) by faults_test.py and the histories: slow syncs and writes, syncs that
// fail, a wall clock that is wrong, no new threads. What it does is read at each call from a file that the test writes:
// five int64, see Faults.
#include <dlfcn.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <ctime>

#include "tests/system/shim_words.h"

namespace {

struct Faults {
  std::atomic<int64_t> stall_us;       ///< of each fsync and fdatasync, and of one pwrite in 16
  std::atomic<int64_t> clock_seconds;  ///< added to CLOCK_REALTIME and its coarse twin
  std::atomic<int64_t> no_threads;     ///< not 0: pthread_create gives EAGAIN
  std::atomic<int64_t> hits;           ///< how many calls were stalled or refused, for the test to read
  std::atomic<int64_t> syncs;          ///< not 0: the so manieth sync from now on, and all behind it, give EIO
};

Faults none;

Faults& faults() {
  static Faults* const kShared = [] {
    Faults* const shared = meshd::tests::map_shim_words<Faults>();
    return shared == nullptr ? &none : shared;
  }();
  return *kShared;
}

void stall() {
  const int64_t us = faults().stall_us.load();
  if (us == 0) return;
  faults().hits.fetch_add(1);
  const timespec time{static_cast<time_t>(us / 1'000'000), static_cast<long>(us % 1'000'000) * 1000};
  ::nanosleep(&time, nullptr);
}

bool sync_fails() {
  std::atomic<int64_t>& syncs = faults().syncs;
  int64_t left = syncs.load();
  while (left > 1 && !syncs.compare_exchange_weak(left, left - 1)) {
  }
  if (left != 1) return false;
  faults().hits.fetch_add(1);
  errno = EIO;
  return true;
}

int sync_by(long call, int fd) {
  stall();
  return sync_fails() ? -1 : static_cast<int>(::syscall(call, fd));
}

ssize_t write_slowly(int fd, const void* bytes, size_t count, off_t offset) {
  static std::atomic<int> calls{0};
  if (calls.fetch_add(1) % 16 == 0) stall();
  return ::syscall(SYS_pwrite64, fd, bytes, count, offset);
}

}  // namespace

extern "C" {

int fsync(int fd) { return sync_by(SYS_fsync, fd); }
int fdatasync(int fd) { return sync_by(SYS_fdatasync, fd); }

ssize_t pwrite(int fd, const void* bytes, size_t count, off_t offset) { return write_slowly(fd, bytes, count, offset); }
ssize_t pwrite64(int fd, const void* bytes, size_t count, off_t offset) {
  return write_slowly(fd, bytes, count, offset);
}

int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const int result = static_cast<int>(::syscall(SYS_clock_gettime, clock, time));
  if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
    time->tv_sec += faults().clock_seconds.load();
  return result;
}

int gettimeofday(timeval* time, void*) noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  *time = {now.tv_sec, now.tv_nsec / 1000};
  return 0;
}

time_t time(time_t* out) noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  if (out != nullptr) *out = now.tv_sec;
  return now.tv_sec;
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                   void* argument) noexcept {
  if (faults().no_threads.load() != 0) {
    faults().hits.fetch_add(1);
    return EAGAIN;
  }
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto kReal = reinterpret_cast<Create>(::dlsym(RTLD_NEXT, "pthread_create"));
  return kReal(thread, attributes, start, argument);
}

}  // extern "C"
