#include "service/kernels/fold/batch_norm.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "service/core/checked_math.h"
#include "service/core/error.h"

namespace meshd::kernels {
namespace {

constexpr int64_t kTile = 1024;        ///< elements that are widened at once
constexpr int64_t kFeatureBlock = 64;  ///< features in a work item
constexpr int64_t kFeatureRows = 10;   ///< arrays of a work item with a number for each feature

}  // namespace

BatchNorm::BatchNorm(BatchNormKind kind, const Sizes& sizes, double epsilon, tensor::DType dtype)
    : kind_(kind), sizes_(sizes), epsilon_(epsilon), elem_(tensor::size_bytes(dtype)) {
  widen_ = find_scalar_kernel(ScalarOp::kConvert, dtype, tensor::DType::kFloat64);
  narrow_ = find_scalar_kernel(ScalarOp::kConvert, tensor::DType::kFloat64, dtype);
  if (widen_ == nullptr || narrow_ == nullptr || !tensor::is_float(dtype)) {
    throw core::Error("unsupported_dtype", fmt::format("normalisation of '{}' is not supported", tensor::name(dtype)));
  }
  block_ = std::min(kFeatureBlock, std::max<int64_t>(1, sizes.features));
  // Whole features where they are short, parts of one feature where they are long.
  tile_ = sizes.inner >= kTile ? kTile : std::max<int64_t>(1, kTile / std::max<int64_t>(1, sizes.inner)) * sizes.inner;
}

int64_t BatchNorm::work_count() const { return core::ceil_div(sizes_.features, block_); }
int64_t BatchNorm::scratch_bytes() const { return 8 * (2 * core::round_up(kTile, 8) + kFeatureRows * block_); }

/// A block of features. One thread.
class BatchNorm::WorkItem {
 public:
  WorkItem(const BatchNorm& norm, int64_t first, int64_t count, std::byte* scratch, core::Checkpoint* checkpoint)
      : norm_(norm),
        first_(first),
        count_(count),
        checkpoint_(checkpoint),
        tile_(reinterpret_cast<double*>(scratch)),
        other_(tile_ + kTile) {
    for (int64_t row = 0; row < kFeatureRows; ++row) rows_[row] = other_ + kTile + row * norm.block_;
  }

  /// A number for each feature, from an operand or to a result.
  double* load(const std::byte* from, int row) {
    const std::byte* const at = from + first_ * norm_.elem_;
    norm_.widen_(&at, reinterpret_cast<std::byte*>(rows_[row]), count_);
    return rows_[row];
  }
  double* zeros(int row) {
    std::fill_n(rows_[row], count_, 0.0);
    return rows_[row];
  }
  void store(const double* numbers, std::byte* to) const {
    const auto* const at = reinterpret_cast<const std::byte*>(numbers);
    norm_.narrow_(&at, to + first_ * norm_.elem_, count_);
  }

  /// Calls visit(feature in the block, values, others, count) for all elements of these features; where there is a
  /// result, `values` go there afterwards.
  template <typename Visit>
  void for_all(const std::byte* operand, const std::byte* other, std::byte* result, Visit&& visit) {
    const int64_t inner = norm_.sizes_.inner;
    const int64_t row = count_ * inner;
    for (int64_t outer = 0; outer < norm_.sizes_.outer; ++outer) {
      for (int64_t begin = 0; begin < row; begin += norm_.tile_) {
        core::pass(checkpoint_);
        const int64_t some = std::min(norm_.tile_, row - begin);
        const int64_t at = ((outer * norm_.sizes_.features + first_) * inner + begin) * norm_.elem_;
        widen(operand + at, tile_, some);
        if (other != nullptr) widen(other + at, other_, some);
        for (int64_t done = 0; done < some;) {
          const int64_t place = begin + done;
          const int64_t run = std::min(some - done, inner - place % inner);
          visit(place / inner, tile_ + done, other_ + done, run);
          done += run;
        }
        if (result == nullptr) continue;
        const auto* const made = reinterpret_cast<const std::byte*>(tile_);
        norm_.narrow_(&made, result + at, some);
      }
    }
  }

 private:
  void widen(const std::byte* from, double* to, int64_t count) const {
    norm_.widen_(&from, reinterpret_cast<std::byte*>(to), count);
  }

  const BatchNorm& norm_;
  int64_t first_;
  int64_t count_;
  core::Checkpoint* checkpoint_;
  double* tile_;
  double* other_;
  double* rows_[kFeatureRows];
};

void BatchNorm::run(const std::byte* const* operands, std::byte* const* results, int64_t begin, int64_t end,
                    std::byte* scratch, core::Checkpoint* checkpoint) const {
  const auto elements = static_cast<double>(sizes_.outer * sizes_.inner);
  for (int64_t number = begin; number < end; ++number) {
    const int64_t first = number * block_;
    const int64_t count = std::min(block_, sizes_.features - first);
    WorkItem work_item(*this, first, count, scratch, checkpoint);
    const double* const scale = work_item.load(operands[1], 0);
    if (kind_ == BatchNormKind::kGrad) {
      const double* const mean = work_item.load(operands[2], 1);
      const double* const variance = work_item.load(operands[3], 2);
      double* const sums = work_item.zeros(3);
      double* const products = work_item.zeros(4);  // of gradients with distances from the mean
      work_item.for_all(operands[0], operands[4], nullptr,
                        [&](int64_t f, const double* x, const double* grad, int64_t n) {
                          for (int64_t i = 0; i < n; ++i) {
                            sums[f] += grad[i];
                            products[f] += grad[i] * (x[i] - mean[f]);
                          }
                        });
      work_item.for_all(operands[0], operands[4], results[0], [&](int64_t f, double* x, const double* grad, int64_t n) {
        const double spread = variance[f] + epsilon_;
        const double factor = scale[f] / std::sqrt(spread) / elements;
        for (int64_t i = 0; i < n; ++i) {
          x[i] = factor * (grad[i] * elements - sums[f] - products[f] * (x[i] - mean[f]) / spread);
        }
      });
      for (int64_t f = 0; f < count; ++f) products[f] /= std::sqrt(variance[f] + epsilon_);
      work_item.store(products, results[1]);
      work_item.store(sums, results[2]);
      continue;
    }
    const double* const offset = work_item.load(operands[2], 1);
    const bool is_training = kind_ == BatchNormKind::kTraining;
    double* const mean = is_training ? work_item.zeros(2) : work_item.load(operands[3], 2);
    double* const variance = is_training ? work_item.zeros(3) : work_item.load(operands[4], 3);
    if (is_training) {
      work_item.for_all(operands[0], nullptr, nullptr, [&](int64_t f, const double* x, const double*, int64_t n) {
        for (int64_t i = 0; i < n; ++i) mean[f] += x[i];
      });
      for (int64_t f = 0; f < count; ++f) mean[f] /= elements;
      work_item.for_all(operands[0], nullptr, nullptr, [&](int64_t f, const double* x, const double*, int64_t n) {
        for (int64_t i = 0; i < n; ++i) variance[f] += (x[i] - mean[f]) * (x[i] - mean[f]);
      });
      for (int64_t f = 0; f < count; ++f) variance[f] /= elements;
      work_item.store(mean, results[1]);
      work_item.store(variance, results[2]);
    }
    work_item.for_all(operands[0], nullptr, results[0], [&](int64_t f, double* x, const double*, int64_t n) {
      const double deviation = std::sqrt(variance[f] + epsilon_);
      for (int64_t i = 0; i < n; ++i) x[i] = (x[i] - mean[f]) / deviation * scale[f] + offset[f];
    });
  }
}

}  // namespace meshd::kernels
