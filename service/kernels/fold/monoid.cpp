#include "service/kernels/fold/monoid.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "service/core/error.h"
#include "service/kernels/elementwise/lanes/lane_loop.h"
#include "service/kernels/elementwise/lanes/repeat_elements.h"

namespace meshd::kernels {
namespace {

using tensor::DType;

/// Lanes that are converted, or go through the body's program, at once.
constexpr int64_t kWorkLanes = 512;

}  // namespace

Monoid::Monoid(TileProgram body, std::vector<DType> elements)
    : body_(std::move(body)), layout_(body_), elements_(std::move(elements)) {
  const size_t count = elements_.size();
  for (size_t k = 0; k < count; ++k) {
    const DType sum = body_.registers[k];
    if (body_.registers[count + k] != sum || body_.registers[body_.outputs[k]] != sum) {
      throw core::Error("unsupported_dtype",
                        "a window's body whose accumulators and values have different types is not supported");
    }
    results_.push_back(sum);
  }
  sums_ = results_;
  if (count == 1 && elements_[0] == results_[0]) fold_ = find_fold(as_single_binary(body_), elements_[0]);
  if (fold_) sums_[0] = fold_->accumulator;
  for (size_t k = 0; k < count; ++k) {
    const bool same = elements_[k] == sums_[k];
    ScalarKernel kernel = same ? nullptr : find_scalar_kernel(ScalarOp::kConvert, elements_[k], sums_[k]);
    if (!same && kernel == nullptr && !fold_) {
      throw core::Error("unsupported_dtype", fmt::format("a window's values of type '{}' cannot become '{}'",
                                                         tensor::name(elements_[k]), tensor::name(sums_[k])));
    }
    load_.push_back(kernel);
    elements_are_sums_ = elements_are_sums_ && same;
  }
}

int64_t Monoid::lane_bytes() const {
  int64_t bytes = 0;
  for (const DType dtype : sums_) bytes += tensor::size_bytes(dtype);
  return bytes;
}

Monoid::Worker::Worker(const Monoid& monoid, core::Checkpoint* checkpoint) : monoid_(monoid), checkpoint_(checkpoint) {
  if (!monoid.fold_) scratch_.emplace(monoid.body_, monoid.layout_, kWorkLanes);
  init_.resize(monoid.value_count());
}

void Monoid::Worker::load(const ConstRows& elements, const Rows& sums, int64_t count) {
  for (size_t k = 0; k < sums.size(); ++k) {
    const int64_t bytes = monoid_.element_bytes(k);
    if (monoid_.fold_ && monoid_.fold_->widen != nullptr) {
      const FoldKernels& fold = *monoid_.fold_;
      widened_.resize(static_cast<size_t>(kWorkLanes * tensor::size_bytes(fold.value)));
      for (int64_t begin = 0; begin < count; begin += kWorkLanes) {
        const int64_t some = std::min(kWorkLanes, count - begin);
        const std::byte* from = elements[k] + begin * bytes;
        fold.widen(&from, widened_.data(), some);
        from = widened_.data();
        fold.start(&from, sums[k] + begin * monoid_.sum_bytes(k), some);
      }
    } else if (monoid_.load_[k] != nullptr) {
      monoid_.load_[k](&elements[k], sums[k], count);
    } else if (sums[k] != elements[k]) {
      std::memcpy(sums[k], elements[k], static_cast<size_t>(count * bytes));
    }
  }
}

void Monoid::Worker::combine(const ConstRows& earlier, const ConstRows& later, const Rows& to, int64_t count) {
  core::pass(checkpoint_);
  if (!monoid_.fold_) return combine_by_program(earlier, later, to, count);
  const std::array<const std::byte*, 2> operands = {earlier[0], later[0]};
  monoid_.fold_->combine_kernel(count)(operands.data(), to[0], count);
}

void Monoid::Worker::combine_by_program(const ConstRows& earlier, const ConstRows& later, const Rows& to,
                                        int64_t count) {
  const size_t values = to.size();
  for (int64_t begin = 0; begin < count; begin += kWorkLanes) {
    const int64_t some = std::min(kWorkLanes, count - begin);
    core::pass(checkpoint_);
    for (size_t k = 0; k < values; ++k) {
      const int64_t skip = begin * monoid_.sum_bytes(k);
      // Registers are only read, so lending them memory of others is safe.
      scratch_->bind(static_cast<uint16_t>(k), const_cast<std::byte*>(earlier[k]) + skip);
      scratch_->bind(static_cast<uint16_t>(values + k), const_cast<std::byte*>(later[k]) + skip);
    }
    run_tile(monoid_.body_, *scratch_, some);
    for (size_t k = 0; k < values; ++k) {
      std::memmove(to[k] + begin * monoid_.sum_bytes(k), scratch_->reg(monoid_.body_.outputs[k]),
                   static_cast<size_t>(some * monoid_.sum_bytes(k)));
    }
  }
}

void Monoid::Worker::load_init(const ConstRows& init, int64_t count) {
  for (size_t k = 0; k < init.size(); ++k) {
    alignas(16) std::array<std::byte, 16> first{};
    if (monoid_.fold_) {
      monoid_.fold_->start_init(&init[k], first.data(), 1);
    } else if (monoid_.load_[k] != nullptr) {
      monoid_.load_[k](&init[k], first.data(), 1);
    } else {
      std::memcpy(first.data(), init[k], static_cast<size_t>(monoid_.element_bytes(k)));
    }
    init_[k].resize(std::max(init_[k].size(), static_cast<size_t>(count * monoid_.sum_bytes(k))));
    repeat_element(first.data(), monoid_.sum_bytes(k), init_[k].data(), count);
  }
}

void Monoid::Worker::finish(const ConstRows& init, const Rows& sums, const Rows& results, int64_t count) {
  load_init(init, std::min(count, kWorkLanes));
  ConstRows starts;
  for (const auto& row : init_) starts.push_back(row.data());
  for (int64_t begin = 0; begin < count; begin += kWorkLanes) {
    const int64_t some = std::min(kWorkLanes, count - begin);
    const Rows at = advanced_to(monoid_, sums, begin);
    combine(starts, advanced(monoid_, at, 0), at, some);
    for (size_t k = 0; k < at.size(); ++k) {
      std::byte* const to = results[k] + begin * monoid_.result_bytes(k);
      const std::byte* const from = at[k];
      if (monoid_.fold_) {
        monoid_.fold_->finish(&from, to, some);
      } else {
        std::memcpy(to, from, static_cast<size_t>(some * monoid_.result_bytes(k)));
      }
    }
  }
}

void Monoid::Worker::fill(const ConstRows& init, const Rows& results, int64_t count) {
  for (size_t k = 0; k < results.size(); ++k) {
    alignas(16) std::array<std::byte, 16> element{};
    if (monoid_.fold_ || monoid_.load_[k] == nullptr) {
      std::memcpy(element.data(), init[k], static_cast<size_t>(monoid_.element_bytes(k)));
    } else {
      monoid_.load_[k](&init[k], element.data(), 1);
    }
    repeat_element(element.data(), monoid_.result_bytes(k), results[k], count);
  }
}

}  // namespace meshd::kernels
