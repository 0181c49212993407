#include "service/kernels/window/window.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "service/core/checked_math.h"
#include "service/kernels/elementwise/lanes/lane_loop.h"
#include "service/kernels/movement/movement_loops.h"

namespace meshd::kernels {
namespace {

/// Windows of more rows than these are worth blocks.
constexpr int64_t kFewElements = 6;
constexpr int64_t kRunRows = 8;  ///< of a block, where each combination rounds

int64_t ceil_div_any(int64_t a, int64_t b) { return -core::floor_div(-a, b); }

void copy_rows(const Monoid& monoid, const ConstRows& from, const Rows& to, int64_t lanes) {
  for (size_t k = 0; k < to.size(); ++k) {
    std::memcpy(to[k], from[k], static_cast<size_t>(lanes * monoid.sum_bytes(k)));
  }
}

}  // namespace

int64_t WindowDim::output_size() const {
  const int64_t dilated = size == 0 ? 0 : core::checked_add(core::checked_mul(size - 1, base_dilation), 1);
  const int64_t padded = core::checked_add(core::checked_add(dilated, pad_low), pad_high);
  const int64_t needed = core::checked_add(core::checked_mul(window - 1, window_dilation), 1);
  return padded <= 0 || needed > padded ? 0 : (padded - needed) / stride + 1;
}

bool WindowDim::is_trivial() const {
  return window == 1 && stride == 1 && base_dilation == 1 && pad_low == 0 && pad_high == 0;
}

WindowPart part_of(const WindowDim& dim, int64_t first, int64_t count) {
  const int64_t begin = first * dim.stride - dim.pad_low;
  const int64_t end = begin + (count - 1) * dim.stride + dim.span();
  const int64_t row = std::clamp<int64_t>(ceil_div_any(begin, dim.base_dilation), 0, dim.size);
  const int64_t row_end = std::clamp<int64_t>(core::floor_div(end - 1, dim.base_dilation) + 1, row, dim.size);
  WindowPart part{dim, row, first, count};
  part.dim.size = row_end - row;
  part.dim.pad_low = row * dim.base_dilation - begin;
  return part;
}

WindowLanes WindowLanes::of(int64_t all_lead, int64_t all_inner) {
  if (all_inner >= kBlockLanes) return {.lead = 1, .inner = std::min(all_inner, kMost)};
  return {.lead = std::clamp<int64_t>(kFew / all_inner, 1, all_lead), .inner = all_inner};
}

WindowPass::WindowPass(const WindowDim& dim, int64_t count) : dim_(dim), count_(count) {
  const int64_t longest = core::ceil_div(dim.window, dim.base_dilation);
  is_blocked_ = longest > kFewElements && (dim.window_dilation == 1 || dim.base_dilation == 1);
  if (is_blocked_) {
    plan_blocks();
  } else {
    plan_steps();
  }
}

bool WindowPass::plan_ranges() {
  if (dim_.stride % dim_.base_dilation != 0) return false;
  int64_t filled_begin = 0;
  int64_t filled_end = 0;
  for (int64_t offset = 0; offset < dim_.window; ++offset) {
    const int64_t first = offset * dim_.window_dilation - dim_.pad_low;
    if (first % dim_.base_dilation != 0) continue;
    const int64_t behind = (dim_.size - 1) * dim_.base_dilation - first;  // places left to the last row
    const int64_t begin = std::min(count_, first < 0 ? core::ceil_div(-first, dim_.stride) : 0);
    const int64_t end = behind < 0 ? 0 : std::min(count_, behind / dim_.stride + 1);
    if (begin >= end) continue;
    const bool has_any = filled_end > filled_begin;
    if (has_any && end < filled_begin) return false;
    const auto add = [&](int64_t from, int64_t to, bool is_first) {
      if (from >= to) return;
      steps_.push_back({from, 1, (first + from * dim_.stride) / dim_.base_dilation, dim_.stride / dim_.base_dilation,
                        to - from, is_first});
    };
    // Later offsets begin earlier: the rows that they are first in precede the filled ones.
    const int64_t border = has_any ? std::min(filled_begin, end) : end;
    add(begin, border, true);
    add(std::max(begin, border), end, false);
    filled_begin = has_any ? std::min(filled_begin, begin) : begin;
    filled_end = std::max(filled_end, end);
  }
  for (int64_t window = 0; window < filled_begin; ++window) empty_.push_back(window);
  for (int64_t window = filled_end; window < count_; ++window) empty_.push_back(window);
  return true;
}

void WindowPass::plan_steps() {
  if (dim_.window <= kFewElements && plan_ranges()) return;
  steps_.clear();
  empty_.clear();
  std::vector<char> is_filled(static_cast<size_t>(count_), 0);
  const int64_t period = dim_.base_dilation / std::gcd(dim_.stride, dim_.base_dilation);
  // Elements of the window that overlap any row.
  const int64_t last_start = (count_ - 1) * dim_.stride - dim_.pad_low;
  const int64_t last_place = (dim_.size - 1) * dim_.base_dilation + dim_.pad_low;
  const int64_t begin = last_start < 0 ? core::ceil_div(-last_start, dim_.window_dilation) : 0;
  const int64_t end = last_place < 0 ? 0 : std::min(dim_.window, last_place / dim_.window_dilation + 1);
  for (int64_t offset = begin; offset < end; ++offset) {
    const int64_t first = offset * dim_.window_dilation - dim_.pad_low;
    int64_t window = 0;
    while (window < period && (first + window * dim_.stride) % dim_.base_dilation != 0) ++window;
    if (window == period) continue;
    const auto place = [&](int64_t w) { return first + w * dim_.stride; };
    if (place(window) < 0) {
      const int64_t jump = period * dim_.stride;
      window += core::ceil_div(-place(window), jump) * period;
    }
    Step step;
    for (; window < count_ && dim_.row_at(place(window)) >= 0; window += period) {
      char& filled = is_filled[static_cast<size_t>(window)];
      const bool is_first = filled == 0;
      filled = 1;
      if (step.count > 0 && step.is_first == is_first) {
        ++step.count;
        continue;
      }
      if (step.count > 0) steps_.push_back(step);
      step = {window, period, dim_.row_at(place(window)), period * dim_.stride / dim_.base_dilation, 1, is_first};
    }
    if (step.count > 0) steps_.push_back(step);
  }
  for (int64_t window = 0; window < count_; ++window) {
    if (is_filled[static_cast<size_t>(window)] == 0) empty_.push_back(window);
  }
}

void WindowPass::plan_blocks() {
  const int64_t step = dim_.window_dilation;
  const int64_t base = dim_.base_dilation;
  block_ = core::ceil_div(dim_.window, base);
  for (int64_t window = 0; window < count_; ++window) {
    const int64_t begin = window * dim_.stride - dim_.pad_low;
    const int64_t end = begin + (dim_.window - 1) * step;  // the last place
    int64_t row = base > 1 ? std::max<int64_t>(0, ceil_div_any(begin, base)) : begin;
    if (row < 0) row += core::ceil_div(-row, step) * step;
    int64_t last = base > 1 ? std::min(dim_.size - 1, core::floor_div(end, base)) : end;
    if (last >= dim_.size) last -= core::ceil_div(last - (dim_.size - 1), step) * step;
    if (row > last) {
      empty_.push_back(window);
      continue;
    }
    const int64_t row_block = row / step / block_;
    const int64_t last_block = last / step / block_;
    Piece piece{window, row, last, 1};
    if (dim_.stride == 1 && step == 1 && base == 1 && end < dim_.size) {
      // Up to the next border of a block, or to where windows are clipped, all are alike.
      const int64_t rest = std::min(count_ - window, dim_.size - end);
      if (begin <= 0) piece.count = std::min(rest, 1 - begin);
      if (begin > 0 && begin % block_ != 0) piece.count = std::min(rest, block_ - begin % block_);
    }
    // Within one block a window begins where the block does, or ends where it does: the clipped rest is out of bounds.
    if (row_block == last_block && row / step % block_ == 0) {
      piece.row = -1;
    } else if (row_block == last_block) {
      piece.last = -1;
    }
    needs_ends_ = needs_ends_ || piece.row >= 0;
    needs_begins_ = needs_begins_ || piece.last >= 0;
    if (!pieces_.empty()) {
      Piece& before = pieces_.back();
      const bool goes_on = before.window + before.count == window && (before.row < 0) == (piece.row < 0) &&
                           (before.last < 0) == (piece.last < 0) &&
                           (piece.row < 0 || before.row + before.count == piece.row) &&
                           (piece.last < 0 || before.last + before.count == piece.last);
      if (goes_on) {
        before.count += piece.count;
        window += piece.count - 1;
        continue;
      }
    }
    pieces_.push_back(piece);
    window += piece.count - 1;
  }
}

void WindowPass::run(const Monoid& monoid, Monoid::Worker& worker, const Rows& rows, const Rows& windows,
                     const Rows& spare, int64_t outer, int64_t lanes) const {
  for (int64_t i = 0; i < outer; ++i) {
    const Rows from = advanced_to(monoid, rows, i * dim_.size * lanes);
    const Rows to = advanced_to(monoid, windows, i * count_ * lanes);
    for (const int64_t window : empty_) {
      for (size_t k = 0; k < to.size(); ++k) {
        const int64_t bytes = lanes * monoid.sum_bytes(k);
        std::memset(to[k] + window * bytes, 0, static_cast<size_t>(bytes));
      }
    }
    if (is_blocked_) {
      run_blocks(monoid, worker, from, to, spare, lanes);
    } else {
      run_steps(monoid, worker, from, to, spare, lanes);
    }
  }
}

void WindowPass::run_steps(const Monoid& monoid, Monoid::Worker& worker, const Rows& rows, const Rows& windows,
                           const Rows& spare, int64_t lanes) const {
  const auto put = [&](bool is_first, const ConstRows& from, const Rows& to, int64_t count) {
    if (is_first) return copy_rows(monoid, from, to, count);
    worker.combine(advanced(monoid, to, 0), from, to, count);
  };
  for (const Step& step : steps_) {
    const bool side_by_side = step.window_step == 1 || step.count == 1;
    if (side_by_side && (step.row_step == 1 || step.count == 1)) {
      put(step.is_first, advanced(monoid, rows, step.row * lanes), advanced_to(monoid, windows, step.window * lanes),
          step.count * lanes);
    } else if (side_by_side && (step.is_first || lanes < Monoid::kCheapLanes)) {
      const Rows to = advanced_to(monoid, windows, step.window * lanes);
      const Rows& gathered = step.is_first ? to : spare;
      for (size_t k = 0; k < rows.size(); ++k) {
        const int64_t bytes = lanes * monoid.sum_bytes(k);
        copy_strided(gathered[k], bytes, rows[k] + step.row * bytes, step.row_step * bytes, step.count, bytes);
      }
      if (!step.is_first) put(false, advanced(monoid, spare, 0), to, step.count * lanes);
    } else {
      for (int64_t i = 0; i < step.count; ++i) {
        put(step.is_first, advanced(monoid, rows, (step.row + i * step.row_step) * lanes),
            advanced_to(monoid, windows, (step.window + i * step.window_step) * lanes), lanes);
      }
    }
  }
}

void WindowPass::run_blocks(const Monoid& monoid, Monoid::Worker& worker, const Rows& rows, const Rows& windows,
                            const Rows& spare, int64_t lanes) const {
  const int64_t step = dim_.window_dilation;
  const int64_t size = dim_.size;
  // Where each combination rounds, runs of a block are combined by themselves and then get what is beyond them, so that
  // no row comes from a chain as long as the block.
  const int64_t run = monoid.rounds() ? std::min(block_, kRunRows) : block_;
  const auto in_block = [&](int64_t row) { return row / step % block_; };
  for (int64_t row = 0; needs_begins_ && row < size; row += step) {
    const int64_t some = std::min(step, size - row) * lanes;
    const Rows to = advanced_to(monoid, spare, row * lanes);
    if (in_block(row) % run == 0) {
      copy_rows(monoid, advanced(monoid, rows, row * lanes), to, some);
    } else {
      worker.combine(advanced(monoid, spare, (row - step) * lanes), advanced(monoid, rows, row * lanes), to, some);
    }
  }
  for (int64_t row = 0; needs_begins_ && run < block_ && row < size; row += step) {
    if (in_block(row) < run) continue;
    const int64_t before = row - (in_block(row) % run + 1) * step;
    const Rows to = advanced_to(monoid, spare, row * lanes);
    worker.combine(advanced(monoid, spare, before * lanes), advanced(monoid, to, 0), to,
                   std::min(step, size - row) * lanes);
  }
  if (needs_ends_ && size > step) {
    const int64_t last = (size - 1) / step * step - step;
    for (int64_t row = last; row >= 0; row -= step) {
      if (in_block(row) == block_ - 1 || in_block(row) % run == run - 1) continue;
      const int64_t some = std::min(step, size - row - step) * lanes;
      const Rows to = advanced_to(monoid, rows, row * lanes);
      worker.combine(advanced(monoid, to, 0), advanced(monoid, rows, (row + step) * lanes), to, some);
    }
    for (int64_t row = last; run < block_ && row >= 0; row -= step) {
      const int64_t ahead = run - in_block(row) % run;
      const int64_t after = row + ahead * step;
      if (in_block(row) + ahead >= block_ || after >= size) continue;
      const Rows to = advanced_to(monoid, rows, row * lanes);
      worker.combine(advanced(monoid, to, 0), advanced(monoid, rows, after * lanes), to,
                     std::min(step, size - after) * lanes);
    }
  }
  for (const Piece& piece : pieces_) {
    const Rows to = advanced_to(monoid, windows, piece.window * lanes);
    const int64_t some = piece.count * lanes;
    if (piece.row < 0) {
      copy_rows(monoid, advanced(monoid, spare, piece.last * lanes), to, some);
    } else if (piece.last < 0) {
      copy_rows(monoid, advanced(monoid, rows, piece.row * lanes), to, some);
    } else {
      worker.combine(advanced(monoid, rows, piece.row * lanes), advanced(monoid, spare, piece.last * lanes), to, some);
    }
  }
}

}  // namespace meshd::kernels
