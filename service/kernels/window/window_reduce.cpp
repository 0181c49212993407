#include "service/kernels/window/window_reduce.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "service/core/checked_math.h"
#include "service/kernels/movement/movement.h"
#include "service/kernels/window/window_scan.h"
#include "service/tensor/shape.h"

namespace meshd::kernels {
namespace {

using tensor::Dims;

constexpr int64_t kBlockBytes = 512 << 10;  ///< of accumulators that go into a work item

}  // namespace

WindowReduce::WindowReduce(std::shared_ptr<const Monoid> monoid, const std::vector<WindowDim>& dims)
    : monoid_(std::move(monoid)) {
  size_t first = 0;
  while (first < dims.size() && dims[first].is_trivial()) lead_ *= dims[first++].size;
  size_t last = dims.size();
  while (last > first && dims[last - 1].is_trivial()) inner_ *= dims[--last].size;
  dims_.assign(dims.begin() + static_cast<int64_t>(first), dims.begin() + static_cast<int64_t>(last));
  if (dims_.empty()) dims_.push_back({.size = std::exchange(lead_, 1)});
  for (const WindowDim& dim : dims_) {
    rows_.push_back(dim.size);
    windows_.push_back(dim.output_size());
  }
  result_lanes_ = lead_ * tensor::element_count(windows_) * inner_;
  if (result_lanes_ == 0) return;
  const WindowDim& dim = dims_.front();
  const bool steps_by_one = dims_.size() == 1 && dim.stride == 1 && dim.window_dilation == 1 &&
                            dim.base_dilation == 1 && dim.window >= dim.size && windows_[0] == dim.size && dim.size > 1;
  is_backwards_ = dim.pad_low == 0;
  is_scan_ = steps_by_one && (is_backwards_ || dim.pad_low == dim.window - 1);
  if (!is_scan_) short_ = ShortWindows::make(monoid_->single_op(), monoid_->element(0), dims_, lead_, inner_);
  if (short_) {
    work_count_ = short_->work_count();
    scratch_bytes_ = short_->scratch_bytes();
    for (const WindowDim& each : dims_) combine_count_ += static_cast<double>(result_lanes_ * each.window);
    return;
  }
  choose_blocks();
  work_count_ = core::ceil_div(lead_, block_.lead) * core::ceil_div(windows_[0], window_block_) *
                core::ceil_div(inner_, block_.inner);
}

void WindowReduce::choose_blocks() {
  block_ = WindowLanes::of(lead_, inner_);
  window_block_ = windows_[0];
  const int64_t lanes = block_.count();
  if (is_scan_) {
    combine_count_ = static_cast<double>(result_lanes_) * (lanes < WindowLanes::kFew ? 2 : 1);
    scratch_bytes_ = WindowScan::scratch_bytes(*monoid_, lanes);
    return;
  }
  const WindowDim& dim = dims_.front();
  // Rows that go into a pass, or come out of it, at most: dimensions behind have been through theirs.
  int64_t widest = 0;
  for (size_t done = 0; done < dims_.size(); ++done) {
    const int64_t others = tensor::element_count(rows_, 1, dims_.size() - done) *
                           tensor::element_count(windows_, std::max<size_t>(1, dims_.size() - done), dims_.size());
    widest = std::max(widest, others);
  }
  const int64_t row_bytes = core::checked_mul(widest, lanes * monoid_->lane_bytes());
  const int64_t fitting = kBlockBytes / std::max<int64_t>(1, row_bytes);
  const int64_t rows_for = (fitting - dim.span() / dim.base_dilation) * dim.base_dilation / dim.stride;
  // Blocks overlap by a window: they must be longer than that to be worth it.
  const int64_t shortest = 2 * core::ceil_div(dim.span(), dim.stride);
  window_block_ = std::clamp<int64_t>(std::max(rows_for, shortest), 1, windows_[0]);
  int64_t rows = 0;
  for (int64_t window = 0; window < windows_[0]; window += window_block_) {
    rows = std::max(rows, part_of(dim, window, std::min(window_block_, windows_[0] - window)).dim.size);
  }
  array_lanes_ = core::round_up(core::checked_mul(widest, std::max(rows, window_block_)) * lanes, 64);
  for (size_t k = 0; k < monoid_->value_count(); ++k) {
    const int64_t bytes = 3 * monoid_->sum_bytes(k) + std::max(monoid_->element_bytes(k), monoid_->result_bytes(k));
    scratch_bytes_ = core::checked_add(scratch_bytes_, core::checked_mul(array_lanes_, bytes));
  }
  for (const WindowDim& each : dims_) {
    combine_count_ += static_cast<double>(result_lanes_) *
                      static_cast<double>(std::min<int64_t>(3, core::ceil_div(each.window, each.base_dilation)));
  }
}

void WindowReduce::run(const WindowReduceCall& call) const {
  if (short_) {
    short_->run({.input = call.inputs[0],
                 .init = call.init[0],
                 .result = call.results[0],
                 .begin = call.begin,
                 .end = call.end,
                 .scratch = call.scratch,
                 .checkpoint = call.checkpoint});
    return;
  }
  Monoid::Worker worker(*monoid_, call.checkpoint);
  const int64_t window_blocks = core::ceil_div(windows_[0], window_block_);
  const int64_t inners = core::ceil_div(inner_, block_.inner);
  for (int64_t work_item = call.begin; work_item < call.end; ++work_item) {
    Block block;
    block.inner = work_item % inners * block_.inner;
    block.inner_count = std::min(block_.inner, inner_ - block.inner);
    block.window = work_item / inners % window_blocks * window_block_;
    block.window_count = std::min(window_block_, windows_[0] - block.window);
    block.lead = work_item / inners / window_blocks * block_.lead;
    block.lead_count = std::min(block_.lead, lead_ - block.lead);
    if (is_scan_) {
      run_scan(call, worker, block);
    } else {
      run_block(call, worker, block);
    }
  }
}

void WindowReduce::run_scan(const WindowReduceCall& call, Monoid::Worker& worker, const Block& block) const {
  WindowScan scan;
  scan.rows = rows_[0];
  scan.row_stride = inner_;
  scan.lead_count = block.lead_count;
  scan.lead_stride = rows_[0] * inner_;
  scan.inner_count = block.inner_count;
  scan.is_backwards = is_backwards_;
  const int64_t offset = block.lead * scan.lead_stride + block.inner;
  ConstRows inputs;
  Rows results;
  for (size_t k = 0; k < monoid_->value_count(); ++k) {
    inputs.push_back(call.inputs[k] + offset * monoid_->element_bytes(k));
    results.push_back(call.results[k] + offset * monoid_->result_bytes(k));
  }
  scan.run(*monoid_, worker, inputs, {call.init, call.init + monoid_->value_count()}, results, call.scratch);
}

void WindowReduce::run_block(const WindowReduceCall& call, Monoid::Worker& worker, const Block& block) const {
  const size_t values = monoid_->value_count();
  const int64_t lanes = block.lead_count * block.inner_count;
  const WindowPart part = part_of(dims_[0], block.window, block.window_count);
  std::vector<int64_t> rows = rows_;
  rows[0] = part.dim.size;
  std::vector<int64_t> windows = windows_;
  windows[0] = block.window_count;

  Rows one;
  Rows other;
  Rows spare;
  Rows elements;
  std::byte* place = call.scratch;
  for (size_t k = 0; k < values; ++k) {
    for (Rows* array : {&one, &other, &spare}) {
      array->push_back(place);
      place += array_lanes_ * monoid_->sum_bytes(k);
    }
    elements.push_back(place);
    place += array_lanes_ * std::max(monoid_->element_bytes(k), monoid_->result_bytes(k));
  }

  // Lanes are the indices behind the windows, and some of those before where these are few.
  const bool is_dense = block.lead_count == 1 && block.inner_count == inner_;
  const int64_t row_count = tensor::element_count(rows);
  const int64_t lead_stride = tensor::element_count(rows_) * inner_;
  const int64_t first =
      block.lead * lead_stride + part.row * tensor::element_count(rows_, 1, rows_.size()) * inner_ + block.inner;
  ConstRows sources;
  for (size_t k = 0; k < values; ++k) {
    const int64_t bytes = monoid_->element_bytes(k);
    const std::byte* from = call.inputs[k] + first * bytes;
    if (!is_dense) {
      const Dims extent = {row_count, block.lead_count, block.inner_count};
      const Dims dense = {lanes, block.inner_count, 1};
      const Dims strides = {inner_, lead_stride, 1};
      StridedCopy(extent, dense, strides, bytes).run(elements[k], from);
      from = elements[k];
    }
    sources.push_back(from);
  }
  Rows before = one;
  if (monoid_->elements_are_sums() && !WindowPass(dims_.back(), 1).is_blocked()) {
    // Combined in place: a pass that is not blocked only reads its rows.
    for (size_t k = 0; k < values; ++k) before[k] = const_cast<std::byte*>(sources[k]);
  } else {
    worker.load(sources, before, row_count * lanes);
  }

  std::vector<std::vector<int64_t>> empty(dims_.size());
  std::vector<int64_t> sizes = rows;
  Rows after = other;
  for (size_t d = dims_.size(); d-- > 0;) {
    const WindowPass pass(d == 0 ? part.dim : dims_[d], windows[d]);
    pass.run(*monoid_, worker, before, after, spare, tensor::element_count(sizes, 0, d),
             tensor::element_count(sizes, d + 1, sizes.size()) * lanes);
    empty[d] = pass.empty_windows();
    sizes[d] = windows[d];
    before = after;
    after = after[0] == other[0] ? one : other;
  }
  store(call, worker, block, before, is_dense, empty, elements);
}

void WindowReduce::store(const WindowReduceCall& call, Monoid::Worker& worker, const Block& block, const Rows& sums,
                         bool is_dense, const std::vector<std::vector<int64_t>>& empty, const Rows& spare) const {
  const size_t values = monoid_->value_count();
  const int64_t lanes = block.lead_count * block.inner_count;
  const int64_t others = tensor::element_count(windows_, 1, windows_.size());
  const int64_t row_count = block.window_count * others;
  const int64_t lead_stride = windows_[0] * others * inner_;
  const int64_t first = block.lead * lead_stride + block.window * others * inner_ + block.inner;
  const ConstRows init(call.init, call.init + values);
  Rows to = spare;
  for (size_t k = 0; is_dense && k < values; ++k) to[k] = call.results[k] + first * monoid_->result_bytes(k);
  worker.finish(init, sums, to, row_count * lanes);

  // A window without elements in any one dimension has none at all.
  int64_t run = row_count * lanes;
  for (size_t d = 0; d < dims_.size(); ++d) {
    const int64_t size = d == 0 ? block.window_count : windows_[d];
    const int64_t array = run;  // lanes of one index of the dimensions before
    run /= size;
    for (int64_t at = 0; at < row_count * lanes && !empty[d].empty(); at += array) {
      for (const int64_t window : empty[d]) {
        Rows rows = to;
        for (size_t k = 0; k < values; ++k) rows[k] += (at + window * run) * monoid_->result_bytes(k);
        worker.fill(init, rows, run);
      }
    }
  }
  for (size_t k = 0; !is_dense && k < values; ++k) {
    const Dims extent = {row_count, block.lead_count, block.inner_count};
    const Dims strides = {inner_, lead_stride, 1};
    const Dims dense = {lanes, block.inner_count, 1};
    const int64_t bytes = monoid_->result_bytes(k);
    StridedCopy(extent, strides, dense, bytes).run(call.results[k] + first * bytes, to[k]);
  }
}

}  // namespace meshd::kernels
