#include "service/kernels/window/short_windows.h"

#include <algorithm>
#include <array>

#include "service/core/checked_math.h"

namespace meshd::kernels {
namespace {

constexpr int64_t kLeastLanesOfRow = 8;
constexpr int64_t kMostWindowDown = 16;             // rows that become one
constexpr int64_t kMostScratchBytes = 512 << 10;    // for the rows of a window
constexpr int64_t kWindowsOfPiece = 4096;           // of a row that is too long to stay in the first level cache
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
  if (windows.rows_.window > kMostWindowDown) return std::nullopt;
  windows.windows_down_ = windows.rows_.output_size();
  const int64_t element_bytes = tensor::size_bytes(dtype);
  windows.row_bytes_ = columns.size * inner * element_bytes;
  windows.piece_windows_ = windows_across;
  if (inner == 1 && windows.rows_.is_trivial() && windows_across > kWindowsOfPiece) {
    windows.piece_windows_ = kWindowsOfPiece;
    windows.pieces_ = core::ceil_div(windows_across, kWindowsOfPiece);
  }
  windows.accumulator_row_bytes_ =
      core::round_up(windows.piece_windows_ * inner * windows.loops_.accumulator_bytes, 64);
  const int64_t read_bytes =
      windows.pieces_ > 1 ? kWindowsOfPiece * columns.stride * element_bytes : windows.row_bytes_;
  if (std::max(read_bytes, windows.accumulator_row_bytes_) > kMostRowBytes) return std::nullopt;
  if (windows.scratch_bytes() > kMostScratchBytes) return std::nullopt;
  windows.result_row_bytes_ = windows_across * inner * element_bytes;
  windows.result_rows_ = lead * windows.windows_down_ * windows.pieces_;
  const int64_t read = std::min(windows.rows_.stride, windows.rows_.size) * read_bytes;
  windows.rows_per_work_item_ = std::max<int64_t>(1, kItemBytesOfWindows / read);
  windows.work_count_ = core::ceil_div(windows.result_rows_, windows.rows_per_work_item_);
  return windows;
}

ShortWindows::Piece ShortWindows::piece(int64_t number) const {
  const int64_t element_bytes = row_bytes_ / across_.size;
  const int64_t first = number * piece_windows_;
  const int64_t at = first * across_.stride - across_.pad_low;  // the first element of its first window
  const int64_t begin = std::max<int64_t>(at, 0);
  WindowsAcross part = across_;
  part.windows = std::min(piece_windows_, across_.windows - first);
  part.pad_low = begin - at;
  part.size = across_.size - begin;
  return {part, begin * element_bytes, first * element_bytes};
}

void ShortWindows::run(const ShortWindowsCall& call) const {
  const int64_t first = call.begin * rows_per_work_item_;
  const int64_t last = std::min(result_rows_, call.end * rows_per_work_item_);
  std::array<const std::byte*, kMostWindowDown> rows;
  int64_t done = 0;  // rows of this lead index that have been combined across
  for (int64_t result_row = first; result_row < last; ++result_row) {
    core::pass(call.checkpoint);
    if (pieces_ > 1) {
      const Piece part = piece(result_row % pieces_);
      const int64_t row = result_row / pieces_;
      loops_.across(part.across, call.input + row * row_bytes_ + part.from, call.scratch);
      rows[0] = call.scratch;
      loops_.down({call.init, rows.data(), 1, part.across.windows}, call.result + row * result_row_bytes_ + part.to);
      continue;
    }
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
