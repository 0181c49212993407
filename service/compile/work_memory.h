// What a piece of compiling takes in memory while it is done: a request holds it (core::MemoryAccount::kRequests), so
// that many programs at a time do not take more than there is.
#pragma once

#include <cstdint>
#include <utility>

#include "service/core/memory_ledger.h"

namespace meshd::compile {

/// Who counts what compiling takes, and whether it may refuse it.
struct WorkAccount {
  core::MemoryLedgerRef ledger = nullptr;  ///< null: nothing is counted
  /// False: for what has to be compiled whatever it takes.
  bool refuses = true;
};

/// While it lives, what its thread compiles takes what the account has left and no more: nobody waits for it, so it
/// neither borrows nor waits. Where there is not so much it ends with memory_full.
class BackgroundWork {
 public:
  BackgroundWork();
  ~BackgroundWork();
  BackgroundWork(const BackgroundWork&) = delete;
  BackgroundWork& operator=(const BackgroundWork&) = delete;
};

/// One piece of work. What its account has no room for it borrows from the memory of jobs. One thread at a time.
class WorkMemory {
 public:
  explicit WorkMemory(WorkAccount account)
      : refuses_(account.refuses), held_(std::move(account.ledger), core::MemoryAccount::kRequests) {}

  /// It takes so many bytes more. Throws memory_full where others hold them, and memory_exceeded where the work is too
  /// large for this server; it may wait a moment (core::MemoryReservation::grow_beyond).
  void hold(int64_t bytes);

 private:
  const bool refuses_;
  core::MemoryReservation held_;
  int64_t needed_ = 0;
};

}  // namespace meshd::compile
