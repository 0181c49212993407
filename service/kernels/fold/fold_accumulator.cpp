#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "service/kernels/elementwise/lanes/lane_loop.h"
#include "service/kernels/elementwise/lanes/repeat_elements.h"
#include "service/kernels/fold/accumulator.h"

namespace meshd::kernels {
namespace {

using Bytes = std::vector<std::byte>;

/// Steps that are added one after another before they become a leaf of the tree.
constexpr int64_t kLeafSteps = 16;
/// Values that are widened at once.
constexpr int64_t kWidenLanes = 1024;

class FoldAccumulator final : public Accumulator {
 public:
  FoldAccumulator(const FoldKernels& fold, tensor::DType element, int64_t lanes)
      : fold_(fold),
        element_bytes_(tensor::size_bytes(element)),
        value_bytes_(tensor::size_bytes(fold.value)),
        sum_bytes_(tensor::size_bytes(fold.accumulator)),
        sums_(bytes_of(lanes)) {}

  void reset(int64_t lanes) override {
    lanes_ = lanes;
    steps_ = 0;
    for (Level& level : levels_) level.is_full = false;
  }

  void add_values(const ValueRows& values, int64_t lane, int64_t count) override {
    if (fold_.widen == nullptr) return add(values[0], lane, count);
    widened_.resize(static_cast<size_t>(kWidenLanes * value_bytes_));
    for (int64_t begin = 0; begin < count; begin += kWidenLanes) {
      const int64_t some = std::min(kWidenLanes, count - begin);
      add(widen(values[0] + begin * element_bytes_, some), lane + begin, some);
    }
  }

  void add_segments(const ValueRows& values, int64_t groups, int64_t items, int64_t lanes, int64_t lane) override {
    const std::byte* from = values[0];
    if (fold_.widen != nullptr) {
      widened_.resize(static_cast<size_t>(groups * items * lanes * value_bytes_));
      from = widen(from, groups * items * lanes);
    }
    partial_.resize(static_cast<size_t>(groups * lanes * sum_bytes_));
    if (lanes <= kBlockLanes)
      fold_.segments(from, groups, items, lanes, partial_.data());
    else
      fold_row_groups(from, groups, items, lanes);
    add_sums(partial_.data(), lane, groups * lanes);
  }

  void add_totals(const double* totals, int64_t groups, int64_t lane) override {
    add_sums(reinterpret_cast<const std::byte*>(totals), lane, groups);
  }

  void add_rows(const std::byte* values, int64_t row_bytes, int64_t rows, int64_t count) override {
    fold_.rows(values, row_bytes, rows, steps_ == 0, count, sums_.data());
  }
  [[nodiscard]] bool adds_rows() const override { return fold_.widen == nullptr; }

  void add_all_of(Accumulator& other, int64_t lane) override {
    auto& rest = static_cast<FoldAccumulator&>(other);
    rest.join_levels();
    add_sums(rest.sums_.data(), lane, rest.lanes_);
    rest.reset(rest.lanes_);
  }

  void end_step() override {
    ++steps_;
    if (!fold_.rounds || steps_ < kLeafSteps) return;
    steps_ = 0;
    // As in a binary counter: two full leaves of one level become one of the next.
    size_t level = 0;
    for (; level < levels_.size() && levels_[level].is_full; ++level) {
      combine(levels_[level].sums.data(), sums_.data(), sums_.data(), lanes_);
      levels_[level].is_full = false;
    }
    if (level == levels_.size()) levels_.push_back({Bytes(sums_.size()), false});
    std::swap(levels_[level].sums, sums_);
    levels_[level].is_full = true;
  }

  void store(std::byte* to) override {
    join_levels();
    std::memcpy(to, sums_.data(), bytes_of(lanes_));
    reset(lanes_);
  }

  void add_stored(const std::byte* from) override { add_sums(from, 0, lanes_); }

  void finish(const ValueRows& init, std::byte* const* results, int64_t start) override {
    const bool has_any = join_levels();
    alignas(16) std::array<std::byte, 16> first{};
    fold_.start_init(init.data(), first.data(), 1);
    partial_.resize(static_cast<size_t>(lanes_ * sum_bytes_));
    repeat_element(first.data(), sum_bytes_, partial_.data(), lanes_);
    if (has_any) combine(partial_.data(), sums_.data(), partial_.data(), lanes_);
    const std::byte* const from = partial_.data();
    fold_.finish(&from, results[0] + start * element_bytes_, lanes_);
  }

 private:
  /// Groups of rows into partial_.
  void fold_row_groups(const std::byte* values, int64_t groups, int64_t items, int64_t lanes) {
    const int64_t row_bytes = lanes * value_bytes_;
    for (int64_t group = 0; group < groups; ++group) {
      for (int64_t item = 0; item < items; item += kFoldRows) {
        fold_.rows(values + (group * items + item) * row_bytes, row_bytes, std::min(kFoldRows, items - item), item == 0,
                   lanes, partial_.data() + group * static_cast<int64_t>(bytes_of(lanes)));
      }
    }
  }

  struct Level {
    Bytes sums;
    bool is_full = false;
  };

  [[nodiscard]] size_t bytes_of(int64_t lanes) const { return static_cast<size_t>(lanes * sum_bytes_); }

  const std::byte* widen(const std::byte* elements, int64_t count) {
    fold_.widen(&elements, widened_.data(), count);
    return widened_.data();
  }

  void add(const std::byte* values, int64_t lane, int64_t count) {
    std::byte* const sums = sums_.data() + lane * sum_bytes_;
    const std::array<const std::byte*, 2> operands = {sums, values};
    if (steps_ == 0)
      fold_.start(&operands[1], sums, count);
    else
      fold_.fold(operands.data(), sums, count);
  }

  void add_sums(const std::byte* from, int64_t lane, int64_t count) {
    std::byte* const sums = sums_.data() + lane * sum_bytes_;
    if (steps_ == 0)
      std::memcpy(sums, from, bytes_of(count));
    else
      combine(sums, from, sums, count);
  }

  void combine(const std::byte* a, const std::byte* b, std::byte* to, int64_t count) const {
    const std::array<const std::byte*, 2> operands = {a, b};
    fold_.combine_kernel(count)(operands.data(), to, count);
  }

  /// Combines all levels into sums_; false when there are none.
  bool join_levels() {
    bool has_any = steps_ > 0;
    for (Level& level : levels_) {
      if (!level.is_full) continue;
      if (has_any)
        combine(level.sums.data(), sums_.data(), sums_.data(), lanes_);
      else
        std::swap(level.sums, sums_);
      level.is_full = false;
      has_any = true;
    }
    return has_any;
  }

  const FoldKernels& fold_;
  int64_t element_bytes_;
  int64_t value_bytes_;
  int64_t sum_bytes_;
  int64_t lanes_ = 0;
  int64_t steps_ = 0;  ///< steps in sums_ that are not in a level
  Bytes sums_;
  std::vector<Level> levels_;
  Bytes widened_;
  Bytes partial_;
};

}  // namespace

std::unique_ptr<Accumulator> make_fold_accumulator(const FoldKernels& fold, tensor::DType element, int64_t lanes) {
  return std::make_unique<FoldAccumulator>(fold, element, lanes);
}

}  // namespace meshd::kernels
