#include "service/compile/work_memory.h"

#include <fmt/core.h>

#include "service/core/error.h"

namespace meshd::compile {
namespace {

thread_local bool is_in_background = false;

}  // namespace

BackgroundWork::BackgroundWork() { is_in_background = true; }
BackgroundWork::~BackgroundWork() { is_in_background = false; }

void WorkMemory::hold(int64_t bytes) {
  constexpr int64_t kUncounted = int64_t{1} << 20;
  constexpr int64_t kMostAccounts = 3;  // one piece of work may go so far beyond the account of requests
  needed_ += bytes;
  if (needed_ <= kUncounted) return;
  if (is_in_background) {
    if (held_.try_grow(needed_ - held_.bytes())) return;
    throw core::Error("memory_full", "requests hold the memory that compiling in the background needs");
  }
  if (!refuses_) return held_.grow_regardless(needed_ - held_.bytes());
  if (needed_ / kMostAccounts > held_.limit_bytes()) {
    throw core::Error("memory_exceeded", fmt::format("compiling the program takes {} bytes of memory or more, and this "
                                                     "server has {} for it",
                                                     needed_, kMostAccounts * held_.limit_bytes()));
  }
  held_.grow_beyond(needed_ - held_.bytes(), "compiling the program");
}

}  // namespace meshd::compile
