#include "service/kernels/sort/merge_sort.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace meshd::kernels {
namespace {

constexpr int64_t kComparisonsBetweenCheckpoints = 1024;
constexpr size_t kRun = 8;  // sorted by insertion

void insert_run(LineComparator& comparator, std::span<int64_t> run) {
  for (size_t i = 1; i < run.size(); ++i) {
    const int64_t moving = run[i];
    size_t at = i;
    for (; at > 0 && comparator.before(moving, run[at - 1]); --at) run[at] = run[at - 1];
    run[at] = moving;
  }
}

void merge(LineComparator& comparator, std::span<const int64_t> left, std::span<const int64_t> right, int64_t* out) {
  size_t l = 0;
  size_t r = 0;
  // The right one is first only where it must be: so the sort is stable.
  while (l < left.size() && r < right.size()) *out++ = comparator.before(right[r], left[l]) ? right[r++] : left[l++];
  out = std::copy(left.begin() + static_cast<std::ptrdiff_t>(l), left.end(), out);
  std::copy(right.begin() + static_cast<std::ptrdiff_t>(r), right.end(), out);
}

}  // namespace

bool LineComparator::before(int64_t a, int64_t b) {
  if (++comparisons_ % kComparisonsBetweenCheckpoints == 0) core::pass(checkpoint_);
  for (size_t k = 0; k < elem_sizes_.size(); ++k) {
    const auto size = static_cast<size_t>(elem_sizes_[k]);
    std::memcpy(scratch_.reg(static_cast<uint16_t>(2 * k)), lines_[k] + static_cast<size_t>(a) * size, size);
    std::memcpy(scratch_.reg(static_cast<uint16_t>(2 * k + 1)), lines_[k] + static_cast<size_t>(b) * size, size);
  }
  run_tile(program_, scratch_, 1);
  return *scratch_.reg(program_.outputs[0]) != std::byte{0};
}

void merge_sort(LineComparator& comparator, std::span<int64_t> order, std::span<int64_t> spare) {
  const size_t count = order.size();
  std::iota(order.begin(), order.end(), int64_t{0});
  for (size_t start = 0; start < count; start += kRun)
    insert_run(comparator, order.subspan(start, std::min(kRun, count - start)));
  std::span<int64_t> from = order;
  std::span<int64_t> to = spare;
  for (size_t width = kRun; width < count; width *= 2) {
    for (size_t start = 0; start < count; start += 2 * width) {
      const size_t middle = std::min(count, start + width);
      const size_t end = std::min(count, start + 2 * width);
      merge(comparator, from.subspan(start, middle - start), from.subspan(middle, end - middle), to.data() + start);
    }
    std::swap(from, to);
  }
  if (from.data() != order.data()) std::copy(from.begin(), from.end(), order.begin());
}

}  // namespace meshd::kernels
