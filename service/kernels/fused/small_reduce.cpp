#include "service/kernels/fused/small_reduce.h"

#include <algorithm>
#include <array>
#include <bit>

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

// The compiler orders the operands of sums and products as it likes. Asked by two NaNs, as tile_steps does it.
std::optional<std::vector<bool>> SmallReduce::find_order() const {
  constexpr uint32_t kEarlier = 0x7FC10000U;
  constexpr uint32_t kLater = 0x7FC20000U;
  std::array<float, kBlockLanes> values{};
  std::array<float, kBlockLanes> made{};
  std::vector<bool> later;
  for (int64_t item = 0; item < items; ++item) {
    values.fill(1.0F);
    const auto fill = [&](int64_t at, uint32_t nan) {
      for (int64_t result = 0; result < results(); ++result)
        values[static_cast<size_t>((result / lanes * items + at) * lanes + result % lanes)] = std::bit_cast<float>(nan);
    };
    const float init = item == 0 ? std::bit_cast<float>(kEarlier) : 1.0F;
    fill(item, kLater);
    if (item > 0) fill(0, kEarlier);
    run(reinterpret_cast<const std::byte*>(values.data()), reinterpret_cast<const std::byte*>(&init),
        reinterpret_cast<std::byte*>(made.data()));
    const auto is_later = [](float nan) { return std::bit_cast<uint32_t>(nan) == kLater; };
    const auto end = made.begin() + results();
    later.push_back(is_later(made[0]));
    if (std::any_of(made.begin(), end, [&](float nan) { return is_later(nan) != is_later(made[0]); }))
      return std::nullopt;
  }
  return later;
}

}  // namespace meshd::kernels
