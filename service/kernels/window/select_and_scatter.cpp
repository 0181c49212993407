#include "service/kernels/window/select_and_scatter.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

#include "service/core/checked_math.h"
#include "service/core/error.h"
#include "service/kernels/elementwise/lanes/choose_lanes.h"
#include "service/kernels/movement/movement.h"
#include "service/tensor/shape.h"

namespace meshd::kernels {
namespace {

using tensor::Dims;

constexpr int64_t kNoOffset = -1;  ///< offset that no lane of a window has chosen

constexpr int64_t kOffsetsBetweenCheckpoints = 64;
constexpr int64_t kMostComparedOffsets = 1024;  ///< of a window: each has two pointers, which no plan counts

int64_t modulo(int64_t value, int64_t by) { return (value % by + by) % by; }

}  // namespace

int64_t SelectDim::source_step() const { return !part_rows || *part_rows % windows.stride == 0 ? windows.stride : 1; }

int64_t SelectDim::first_place() const {
  if (!part_rows) return -windows.pad_low;
  const int64_t earliest = 1 - windows.window;
  return earliest + modulo(-windows.pad_low - earliest, source_step());
}

int64_t SelectDim::source_rows() const {
  return part_rows ? (*part_rows - 1 - first_place()) / source_step() + 1 : windows.output_size();
}

int64_t SelectDim::operand_rows() const {
  return part_rows ? (source_rows() - 1) * source_step() + windows.window : windows.size;
}

SelectAndScatter::SelectAndScatter(TileProgram select, std::shared_ptr<const Monoid> scatter, tensor::DType dtype,
                                   const std::vector<SelectDim>& dims)
    : select_(std::move(select)), layout_(select_), scatter_(std::move(scatter)), elem_(tensor::size_bytes(dtype)) {
  double windows_met = 1;
  size_t last = dims.size();
  while (first_dim_ < last && dims[first_dim_].windows.is_trivial()) lead_ *= dims[first_dim_++].windows.size;
  while (last > first_dim_ && dims[last - 1].windows.is_trivial()) inner_ *= dims[--last].windows.size;
  dims_.assign(dims.begin() + static_cast<int64_t>(first_dim_), dims.begin() + static_cast<int64_t>(last));
  for (const SelectDim& dim : dims_) {
    const WindowDim& windows = dim.windows;
    window_sizes_.push_back(windows.window);
    operand_rows_ = core::checked_mul(operand_rows_, dim.operand_rows());
    source_rows_ = core::checked_mul(source_rows_, dim.source_rows());
    result_rows_ *= dim.result_rows();
    windows_met *= static_cast<double>(dim.source_rows() * dim.source_step()) / static_cast<double>(windows.stride);
    offset_count_ = core::checked_mul(offset_count_, windows.window);
    is_part_ = is_part_ || dim.part_rows.has_value();
    is_apart_ = is_apart_ && windows.stride >= windows.window;
    // A part's last rows may be padding, where no window is.
    covers_all_ = covers_all_ && !dim.part_rows && windows.stride == windows.window && windows.pad_low >= 0 &&
                  windows.output_size() * windows.window - windows.pad_low >= windows.size;
  }
  if (offset_count_ > INT32_MAX)
    throw core::Error("unsupported_op", "a window of more than 2^31 elements is not supported");
  if (is_apart_ && offset_count_ <= kMostComparedOffsets && scatter_->result_bytes(0) == elem_)
    select_apart_ = select_apart(select_);
  if (lead_ * inner_ * result_rows_ == 0) return;
  block_ = WindowLanes::of(lead_, inner_);
  lanes_ = core::round_up(block_.count(), 64);
  work_count_ = core::ceil_div(lead_, block_.lead) * core::ceil_div(inner_, block_.inner);
  // Operand and result of a block, its sums and which of them have any; source, and what the windows have chosen.
  scratch_bytes_ = core::checked_mul(core::checked_mul(lanes_, operand_rows_), elem_);
  scratch_bytes_ = core::checked_add(
      scratch_bytes_, core::checked_mul(lanes_ * result_rows_, scatter_->result_bytes(0) + scatter_->sum_bytes(0) + 1));
  scratch_bytes_ = core::checked_add(
      scratch_bytes_, core::checked_mul(core::checked_mul(lanes_, std::max<int64_t>(source_rows_, 1)), elem_ + 4));
  flops_ = static_cast<double>(lead_) * static_cast<double>(inner_) * windows_met *
           static_cast<double>(offset_count_ * static_cast<int64_t>(select_.instructions.size() + 1));
}

/// One block of lanes, through all windows. One thread.
class SelectAndScatter::WorkItem {
 public:
  WorkItem(const SelectAndScatter& op, const SelectAndScatterCall& call)
      : op_(op),
        call_(call),
        scratch_(op.select_, op.layout_, WindowLanes::kMost),
        worker_(*op.scatter_, call.checkpoint) {
    std::byte* place = call.scratch;
    const auto array = [&place](int64_t bytes) { return std::exchange(place, place + bytes); };
    operand_ = array(op.lanes_ * op.operand_rows_ * op.elem_);
    result_ = array(op.lanes_ * op.result_rows_ * op.scatter_->result_bytes(0));
    sums_ = array(op.lanes_ * op.result_rows_ * op.scatter_->sum_bytes(0));
    source_ = array(op.lanes_ * op.source_rows_ * op.elem_);
    choices_ = reinterpret_cast<int32_t*>(array(op.lanes_ * op.source_rows_ * 4));
    has_sum_ = reinterpret_cast<bool*>(array(op.lanes_ * op.result_rows_));
    for (size_t d = 0; d < op.dims_.size(); ++d) {
      lines_.push_back(line_of(op.dims_[d], call.offsets == nullptr ? 0 : call.offsets[op.first_dim_ + d]));
      counts_.push_back(static_cast<int64_t>(lines_.back().windows.size()));
    }
    kept_.resize(static_cast<size_t>(WindowLanes::kMost * op.elem_));
    keeps_ = std::make_unique<bool[]>(static_cast<size_t>(WindowLanes::kMost));
    if (op.select_apart_ != nullptr) {
      elements_.resize(static_cast<size_t>(op.offset_count_));
      places_.resize(static_cast<size_t>(op.offset_count_));
    }
    const auto sum_bytes = static_cast<size_t>(WindowLanes::kMost * op.scatter_->sum_bytes(0));
    loaded_.resize(sum_bytes);
    combined_.resize(sum_bytes);
  }

  void run(int64_t lead, int64_t lead_count, int64_t inner, int64_t inner_count) {
    lanes_ = lead_count * inner_count;
    const Dims dense = {lanes_, inner_count, 1};
    const auto strides = [&](int64_t rows) { return Dims{op_.inner_, rows * op_.inner_, 1}; };
    const auto extent = [&](int64_t rows) { return Dims{rows, lead_count, inner_count}; };
    const auto start = [&](int64_t rows) { return lead * rows * op_.inner_ + inner; };
    const int64_t rows = op_.result_rows_;
    const auto bring = [&](std::byte* to, const std::byte* from, int64_t count) {
      StridedCopy(extent(count), dense, strides(count), op_.elem_).run(to, from + start(count) * op_.elem_);
    };
    bring(operand_, call_.operand, op_.operand_rows_);
    bring(source_, call_.source, op_.source_rows_);
    const int64_t bytes = op_.scatter_->result_bytes(0);
    combined_.resize(std::max(combined_.size(), static_cast<size_t>(lanes_ * bytes)));
    if (op_.is_apart_)
      run_apart(rows, bytes);
    else
      run_overlapping(rows, bytes);
    StridedCopy(extent(rows), strides(rows), dense, bytes).run(call_.result + start(rows) * bytes, result_);
  }

 private:
  // One dimension of the call.
  struct Window {
    int64_t source_row = 0;
    int64_t first_row = 0;  // counted from the result's first
  };
  struct Line {
    std::vector<Window> windows;
    int64_t begin = 0;  // rows that there are, counted alike
    int64_t end = 0;
    int64_t operand_begin = 0;
    int64_t operand_rows = 0;
    int64_t source_rows = 0;
    int64_t result_rows = 0;
  };

  static Line line_of(const SelectDim& dim, int64_t offset) {
    const WindowDim& windows = dim.windows;
    Line line;
    line.operand_begin = dim.operand_begin();
    line.operand_rows = dim.operand_rows();
    line.source_rows = dim.source_rows();
    line.result_rows = dim.result_rows();
    line.begin = std::max(line.operand_begin, -offset);
    line.end = std::min(line.operand_begin + line.operand_rows, windows.size - offset);
    const int64_t first_place = dim.first_place();
    const int64_t step = dim.source_step();
    const int64_t count = windows.output_size();
    for (int64_t row = 0; row < line.source_rows; ++row) {
      const int64_t first = first_place + row * step;
      const int64_t place = offset + first + windows.pad_low;
      if (place >= 0 && place % windows.stride == 0 && place / windows.stride < count)
        line.windows.push_back({row, first});
    }
    return line;
  }

  void run_overlapping(int64_t rows, int64_t bytes) {
    std::memset(has_sum_, 0, static_cast<size_t>(rows * lanes_));
    std::memset(sums_, 0, static_cast<size_t>(rows * lanes_ * op_.scatter_->sum_bytes(0)));
    for_each(counts_, [&](const Dims& window, int64_t number) { select(window, choices_ + number * lanes_); });
    for_each(counts_, [&](const Dims& window, int64_t number) { scatter(window, number); });
    worker_.finish({call_.init}, {sums_}, {result_}, rows * lanes_);
    restore_untouched(rows, bytes);
  }

  // At most one window writes each place: window by window, without sums.
  void run_apart(int64_t rows, int64_t bytes) {
    const auto row_bytes = static_cast<size_t>(lanes_ * bytes);
    worker_.fill({call_.init}, {combined_.data()}, lanes_);
    for (int64_t row = 0; !op_.covers_all_ && row < rows; ++row)
      std::memcpy(result_ + row * lanes_ * bytes, combined_.data(), row_bytes);
    arrived_.resize(row_bytes);
    for_each(counts_, [&](const Dims& window, int64_t /*number*/) {
      worker_.load({source_of(window)}, {loaded_.data()}, lanes_);
      worker_.finish({call_.init}, {loaded_.data()}, {arrived_.data()}, lanes_);
      if (op_.select_apart_ != nullptr)
        place_by_comparison(window, bytes);
      else
        place_by_body(window, bytes);
    });
  }

  void place_by_body(const Dims& window, int64_t bytes) {
    select(window, choices_);
    for_each(op_.window_sizes_, [&](const Dims& offset, int64_t offset_number) {
      if (offset_number % kOffsetsBetweenCheckpoints == 0) core::pass(call_.checkpoint);
      const int64_t row = result_row(window, offset);
      if (row < 0) return;
      std::byte* const result = result_ + row * lanes_ * bytes;
      const bool any = lanes_equal(choices_, static_cast<int32_t>(offset_number), keeps_.get(), lanes_);
      std::memcpy(result, any ? arrived_.data() : combined_.data(), static_cast<size_t>(lanes_ * bytes));
      if (any) keep_lanes(keeps_.get(), combined_.data(), result, bytes, lanes_);
    });
  }

  void place_by_comparison(const Dims& window, int64_t bytes) {
    for_each(op_.window_sizes_, [&](const Dims& offset, int64_t offset_number) {
      if (offset_number % kOffsetsBetweenCheckpoints == 0) core::pass(call_.checkpoint);
      const auto at = static_cast<size_t>(offset_number);
      const int64_t from = operand_row(window, offset);
      const int64_t to = result_row(window, offset);
      elements_[at] = from < 0 ? nullptr : operand_ + from * lanes_ * op_.elem_;
      places_[at] = to < 0 ? nullptr : result_ + to * lanes_ * bytes;
    });
    op_.select_apart_({elements_.data(), places_.data(), op_.offset_count_, arrived_.data(), combined_.data(), lanes_});
  }

  template <typename Visit>
  static void for_each(const std::vector<int64_t>& sizes, Visit&& visit) {
    if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) return;
    Dims index(sizes.size(), 0);
    for (int64_t number = 0;; ++number) {
      visit(index, number);
      size_t d = sizes.size();
      while (d > 0 && ++index[d - 1] == sizes[d - 1]) index[--d] = 0;
      if (d == 0) return;
    }
  }

  /// Row of the operand that a window's element is, or -1 where that is padding.
  [[nodiscard]] int64_t operand_row(const Dims& window, const Dims& offset) const {
    int64_t row = 0;
    for (size_t d = 0; d < lines_.size(); ++d) {
      const Line& line = lines_[d];
      const int64_t at = element_row(d, window, offset);
      if (at < line.begin || at >= line.end) return -1;
      row = row * line.operand_rows + at - line.operand_begin;
    }
    return row;
  }

  /// Row of the result of a window's element, or -1 where the result has none.
  [[nodiscard]] int64_t result_row(const Dims& window, const Dims& offset) const {
    int64_t row = 0;
    for (size_t d = 0; d < lines_.size(); ++d) {
      const int64_t rows = lines_[d].result_rows;
      const int64_t at = element_row(d, window, offset);
      if (at < 0 || at >= rows) return -1;
      row = row * rows + at;
    }
    return row;
  }

  [[nodiscard]] int64_t element_row(size_t d, const Dims& window, const Dims& offset) const {
    return lines_[d].windows[static_cast<size_t>(window[d])].first_row + offset[d];
  }

  [[nodiscard]] const std::byte* source_of(const Dims& window) const {
    int64_t row = 0;
    for (size_t d = 0; d < lines_.size(); ++d)
      row = row * lines_[d].source_rows + lines_[d].windows[static_cast<size_t>(window[d])].source_row;
    return source_ + row * lanes_ * op_.elem_;
  }

  void select(const Dims& window, int32_t* choices) {
    std::fill_n(choices, lanes_, static_cast<int32_t>(kNoOffset));
    bool has_any = false;
    for_each(op_.window_sizes_, [&](const Dims& offset, int64_t offset_number) {
      if (offset_number % kOffsetsBetweenCheckpoints == 0) core::pass(call_.checkpoint);
      const int64_t row = operand_row(window, offset);
      if (row < 0) return;
      const std::byte* const next = operand_ + row * lanes_ * op_.elem_;
      if (!has_any) {
        has_any = true;
        std::memcpy(kept_.data(), next, static_cast<size_t>(lanes_ * op_.elem_));
        std::fill_n(choices, lanes_, static_cast<int32_t>(offset_number));
        return;
      }
      scratch_.bind(0, kept_.data());
      scratch_.bind(1, const_cast<std::byte*>(next));
      run_tile(op_.select_, scratch_, lanes_);
      // A returned argument or constant is in its own register.
      std::memcpy(keeps_.get(), scratch_.reg(op_.select_.outputs[0]), static_cast<size_t>(lanes_));
      choose_lanes(keeps_.get(), next, kept_.data(), op_.elem_, choices, static_cast<int32_t>(offset_number), lanes_);
    });
  }

  void scatter(const Dims& window, int64_t number) {
    const int32_t* const choices = choices_ + number * lanes_;
    worker_.load({source_of(window)}, {loaded_.data()}, lanes_);
    for_each(op_.window_sizes_, [&](const Dims& offset, int64_t offset_number) {
      if (offset_number % kOffsetsBetweenCheckpoints == 0) core::pass(call_.checkpoint);
      const int64_t row = result_row(window, offset);
      if (row < 0 || !lanes_equal(choices, static_cast<int32_t>(offset_number), keeps_.get(), lanes_)) return;
      // All lanes are combined; those that chose another place keep what they had.
      const int64_t bytes = op_.scatter_->sum_bytes(0);
      std::byte* const sums = sums_ + row * lanes_ * bytes;
      worker_.combine({sums}, {loaded_.data()}, {combined_.data()}, lanes_);
      put_lanes(keeps_.get(), combined_.data(), loaded_.data(), sums, has_sum_ + row * lanes_, bytes, lanes_);
    });
  }

  /// Places that nothing was scattered to are the initial value, whatever the body makes of it.
  void restore_untouched(int64_t rows, int64_t bytes) {
    worker_.fill({call_.init}, {combined_.data()}, lanes_);
    for (int64_t row = 0; row < rows; ++row) {
      keep_lanes(has_sum_ + row * lanes_, combined_.data(), result_ + row * lanes_ * bytes, bytes, lanes_);
    }
  }

  const SelectAndScatter& op_;
  const SelectAndScatterCall& call_;
  TileScratch scratch_;
  Monoid::Worker worker_;
  std::vector<Line> lines_;      ///< by dimension
  std::vector<int64_t> counts_;  ///< windows along each
  int64_t lanes_ = 0;
  std::byte* operand_ = nullptr;  ///< (rows, lanes)
  std::byte* result_ = nullptr;
  std::byte* sums_ = nullptr;
  std::byte* source_ = nullptr;  ///< (windows, lanes)
  int32_t* choices_ = nullptr;
  bool* has_sum_ = nullptr;
  std::vector<std::byte> kept_;
  std::unique_ptr<bool[]> keeps_;
  std::vector<std::byte> loaded_;    ///< a window's source, as accumulators
  std::vector<std::byte> combined_;  ///< with what is there already; the initial value, where windows are disjoint
  std::vector<std::byte> arrived_;   ///< a window's source as it leaves
  std::vector<const std::byte*> elements_;  ///< of a window, by offset
  std::vector<std::byte*> places_;
};

void SelectAndScatter::run(const SelectAndScatterCall& call) const {
  WorkItem work_item(*this, call);
  const int64_t inners = core::ceil_div(inner_, block_.inner);
  for (int64_t number = call.begin; number < call.end; ++number) {
    const int64_t inner = number % inners * block_.inner;
    const int64_t lead = number / inners * block_.lead;
    work_item.run(lead, std::min(block_.lead, lead_ - lead), inner, std::min(block_.inner, inner_ - inner));
  }
}

}  // namespace meshd::kernels
