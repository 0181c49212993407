// A call of a fused loop that is made again and again on the same memory, as in the body of a while: registers, readers
// and accumulators stay from one to the next.
#pragma once

#include <cstdint>
#include <memory>

#include "service/kernels/fused/fused_loop.h"

namespace meshd::kernels {

/// One thread at a time.
class RepeatedLoop {
 public:
  /// Of the iteration space: a longer loop runs long enough that what it begins with does not count. A register has 16
  /// KiB at most, as tiles are chosen, and most have less.
  static constexpr int64_t kMostElements = int64_t{16} * 1024;

  /// Of a call that outlives it, and so does the memory that it names; pointers stay, contents may change. Null where
  /// the loop is longer, or has a form that needs no registers.
  static std::unique_ptr<RepeatedLoop> make(std::shared_ptr<const FusedKernel> kernel, const FusedCall& call);
  ~RepeatedLoop();
  RepeatedLoop(const RepeatedLoop&) = delete;
  RepeatedLoop& operator=(const RepeatedLoop&) = delete;

  /// What FusedKernel::run does with the call.
  void run();

 private:
  struct Registers;
  explicit RepeatedLoop(std::unique_ptr<Registers> registers);
  std::unique_ptr<Registers> registers_;
};

}  // namespace meshd::kernels
