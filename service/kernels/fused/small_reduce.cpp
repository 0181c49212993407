#include "service/kernels/fused/small_reduce.h"

#include <array>

#include "service/kernels/elementwise/lanes/lane_loop.h"
#include "service/kernels/elementwise/lanes/repeat_elements.h"
#include "service/kernels/fold/fold_segment.h"

namespace meshd::kernels {

void SmallReduce::run(const std::byte* values, const std::byte* init, std::byte* results) const {
  constexpr size_t kMostBytes = 16;  // of an accumulator
  alignas(64) std::array<std::byte, kMostBytes * kBlockLanes> sums;
  alignas(64) std::array<std::byte, kMostBytes * kBlockLanes> first;
  const int64_t count = this->results();
  fold.segments(values, groups, items, lanes, sums.data());
  fold.start_init(&init, first.data(), 1);
  const int64_t bytes = tensor::size_bytes(fold.accumulator);
  repeat_element(first.data(), bytes, first.data() + bytes, count - 1);
  const std::array<const std::byte*, 2> both = {first.data(), sums.data()};
  fold.combine_kernel(count)(both.data(), first.data(), count);
  fold.finish(both.data(), results, count);
}

bool SmallReduce::is_in_order() const {
  const bool is_integer = tensor::is_integer(dtype) || dtype == tensor::DType::kBool;
  const bool chooses = op == ScalarOp::kMaximum || op == ScalarOp::kMinimum;
  return is_integer || chooses || lanes > 1 || items < kShortSegment;
}

}  // namespace meshd::kernels
