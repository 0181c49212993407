// Memory that reading an artifact takes, counted before it is taken: tables and nodes until they are gone, text as long
// as the request.
#pragma once

#include <cstddef>
#include <cstdint>

#include "service/core/memory_ledger.h"

namespace meshd::program {

/// One thread. What is taken is given back at the end of its life.
class MemoryUse {
 public:
  /// `memory` is the request's; null: nothing is counted.
  explicit MemoryUse(core::MemoryReservation* memory) : memory_(memory) {}
  ~MemoryUse() {
    if (memory_ != nullptr) memory_->shrink(held_);
  }
  MemoryUse(const MemoryUse&) = delete;
  MemoryUse& operator=(const MemoryUse&) = delete;

  /// Throws memory_full, body_too_large.
  void take(size_t bytes) {
    if (memory_ == nullptr) return;
    wanted_ += static_cast<int64_t>(bytes);
    if (wanted_ <= held_) return;
    const int64_t step = wanted_ - held_ + kStep;
    memory_->grow(step);
    held_ += step;
  }
  /// What was taken stays the request's.
  void keep() { held_ = wanted_ = 0; }

 private:
  static constexpr int64_t kStep = int64_t{64} << 10;

  core::MemoryReservation* memory_;
  int64_t wanted_ = 0;
  int64_t held_ = 0;
};

}  // namespace meshd::program
