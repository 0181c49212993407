#include "service/kernels/tile/tile_rows.h"

#include <array>

#include "service/core/checked_math.h"
#include "service/kernels/elementwise/lanes/lane_loop.h"
#include "service/kernels/tile/prefetch.h"
#include "service/kernels/tile/tile_code.h"

namespace meshd::kernels {
namespace {

void bind_row(TileScratch& scratch, const RowsOfTile& rows, int64_t row) {
  // The code only reads its inputs.
  for (const RowInput& input : rows.inputs)
    scratch.bind(input.reg, const_cast<std::byte*>(input.first) + row * input.stride_bytes);
}

}  // namespace

void run_tile_rows(const TileCode& code, TileScratch& scratch, const RowsOfTile& rows,
                   std::span<const MemoryRange> soon) {
  for (int64_t row = 0; row < rows.count; ++row) {
    for (const MemoryRange& range : soon) prefetch_part(range, row, rows.count);
    bind_row(scratch, rows, row);
    const int64_t begin = row * rows.lanes;
    const int64_t end = begin + rows.lanes;
    if (rows.streams) {
      code.run_streaming(scratch.pointers(), begin, end);
    } else if (row + 1 < rows.count && !rows.is_apart) {
      // What it writes behind the row, the next one overwrites.
      code.run(scratch.pointers(), begin, begin + core::round_up(rows.lanes, kBlockLanes));
    } else {
      const int64_t rest = rows.lanes % kBlockLanes;
      code.run(scratch.pointers(), begin, end - rest);
      if (rest > 0) code.run(scratch.pointers(), end - kBlockLanes, end);
    }
  }
}

void sum_tile_rows(const TileCode& code, TileScratch& scratch, const RowsOfTile& rows, double* totals) {
  bind_row(scratch, rows, 0);
  std::array<int64_t, kMostSummedElements> strides{};
  for (size_t k = 0; k < rows.inputs.size(); ++k) strides[k] = rows.inputs[k].stride_bytes;
  code.sum(scratch.pointers(), {.lanes = rows.lanes, .count = rows.count, .strides = strides.data(), .totals = totals});
}

}  // namespace meshd::kernels
