#include "service/kernels/window/short_windows.h"

#include <algorithm>
#include <array>

#include "service/core/checked_math.h"

namespace meshd::kernels {
namespace {

constexpr int64_t kLeastLanesOfRow = 8;
constexpr int64_t kMostRowBytes = 128 << 10;        // of accumulators: those of a window stay in the second level cache
constexpr int64_t kItemBytesOfWindows = 128 << 10;  // that a work item reads, about

// Whether each window is short, dense and has an element.
bool is_short(const WindowDim& dim) {
  const int64_t windows = dim.output_size();
  const int64_t last = (windows - 1) * dim.stride - dim.pad_low;
  return dim.size > 0 && dim.window <= kMostShortWindow && dim.window_dilation == 1 && dim.base_dilation == 1 &&
         windows > 0 && dim.pad_low >= 0 && dim.pad_low < dim.window && last < dim.size;
}

}  // namespace

std::optional<ShortWindows> ShortWindows::make(ScalarOp op, tensor::DType dtype, const std::vector<WindowDim>& dims,
                                               int64_t lead, int64_t inner) {
  if (dims.empty() || dims.size() > 2 || !std::all_of(dims.begin(), dims.end(), is_short)) return std::nullopt;
  ShortWindows windows;
  windows.loops_ = short_window_loops(op, dtype);
  if (windows.loops_.across == nullptr) return std::nullopt;
  // One dimension: it is the columns where no lanes are behind it.
  const bool has_both = dims.size() == 2;
  windows.rows_ = has_both || inner > 1 ? dims[0] : WindowDim{.size = 1};
  const WindowDim columns = has_both || inner == 1 ? dims.back() : WindowDim{.size = 1};
  const int64_t windows_across = columns.output_size();
  if (inner > 1 ? inner < kLeastLanesOfRow : windows_across < kLeastLanesOfRow) return std::nullopt;
  windows.across_ = {windows_across, columns.window, columns.stride, columns.pad_low, columns.size, inner};
  windows.reads_rows_ = columns.is_trivial() && windows.loops_.elements_are_accumulators;
  windows.windows_down_ = windows.rows_.output_size();
  const int64_t element_bytes = tensor::size_bytes(dtype);
  windows.row_bytes_ = columns.size * inner * element_bytes;
  windows.accumulator_row_bytes_ = core::round_up(windows_across * inner * windows.loops_.accumulator_bytes, 64);
  if (std::max(windows.row_bytes_, windows.accumulator_row_bytes_) > kMostRowBytes) return std::nullopt;
  windows.result_row_bytes_ = windows_across * inner * element_bytes;
  windows.result_rows_ = lead * windows.windows_down_;
  const int64_t read = std::min(windows.rows_.stride, windows.rows_.size) * windows.row_bytes_;
  windows.rows_per_work_item_ = std::max<int64_t>(1, kItemBytesOfWindows / read);
  windows.work_count_ = core::ceil_div(windows.result_rows_, windows.rows_per_work_item_);
  return windows;
}

void ShortWindows::run(const ShortWindowsCall& call) const {
  const int64_t first = call.begin * rows_per_work_item_;
  const int64_t last = std::min(result_rows_, call.end * rows_per_work_item_);
  std::array<const std::byte*, kMostShortWindow> rows;
  int64_t done = 0;  // rows of this lead index that have been combined across
  for (int64_t result_row = first; result_row < last; ++result_row) {
    core::pass(call.checkpoint);
    const int64_t lead = result_row / windows_down_;
    const int64_t at = (result_row - lead * windows_down_) * rows_.stride - rows_.pad_low;
    if (result_row == first || at == -rows_.pad_low) done = 0;
    const int64_t begin = std::max<int64_t>(at, 0);
    const int64_t end = std::min(at + rows_.window, rows_.size);
    const std::byte* const input = call.input + lead * rows_.size * row_bytes_;
    for (int64_t row = begin; row < end; ++row) {
      const std::byte* const from = input + row * row_bytes_;
      // A row's place is free again when no window has it any more.
      std::byte* const place = call.scratch + row % rows_.window * accumulator_row_bytes_;
      if (!reads_rows_ && row >= done) loops_.across(across_, from, place);
      rows[static_cast<size_t>(row - begin)] = reads_rows_ ? from : place;
    }
    done = std::max(done, end);
    loops_.down({call.init, rows.data(), end - begin, across_.windows * across_.inner},
                call.result + result_row * result_row_bytes_);
  }
}

}  // namespace meshd::kernels
