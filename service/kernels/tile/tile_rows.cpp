#include "service/kernels/tile/tile_rows.h"

#include <algorithm>
#include <array>

#include "service/core/checked_math.h"
#include "service/kernels/elementwise/lanes/lane_loop.h"
#include "service/kernels/tile/prefetch.h"
#include "service/kernels/tile/tile_code.h"

namespace meshd::kernels {
namespace {

constexpr int64_t kLanesBetweenPrefetches = 512;

using Strides = std::array<int64_t, kMostWalked>;

/// As CodeRows has them. (Code that walks has no more of them.)
Strides strides_of(const RowsOfTile& rows) {
  Strides strides{};
  for (size_t k = 0; k < std::min(rows.registers.size(), strides.size()); ++k)
    strides[k] = rows.registers[k].stride_bytes;
  return strides;
}

void bind_row(TileScratch& scratch, const RowsOfTile& rows, int64_t row) {
  // The code only reads its inputs.
  for (const RowRegister& moved : rows.registers)
    scratch.bind(moved.reg, const_cast<std::byte*>(moved.first) + row * moved.stride_bytes);
}

}  // namespace

void run_tile_rows(const TileCode& code, TileScratch& scratch, const RowsOfTile& rows,
                   std::span<const MemoryRange> soon) {
  const bool walks = code.walks() && !rows.streams;
  const int64_t step = !walks ? 1 : soon.empty() ? rows.count : core::ceil_div(kLanesBetweenPrefetches, rows.lanes);
  const Strides strides = strides_of(rows);
  for (int64_t row = 0; row < rows.count; row += step) {
    const int64_t count = std::min(step, rows.count - row);
    for (const MemoryRange& range : soon) prefetch_parts(range, rows.first + row, count, rows.of_tile);
    bind_row(scratch, rows, row);
    const int64_t begin = (rows.first + row) * rows.lanes;
    const int64_t end = begin + rows.lanes;
    const int64_t rest = rows.lanes % kBlockLanes;
    if (walks) {
      code.run_rows(
          scratch.pointers(),
          {.begin = begin, .lanes = rows.lanes, .count = count, .strides = strides.data(), .totals = nullptr});
    } else if (rows.streams) {
      code.run_streaming(scratch.pointers(), begin, end);
    } else {
      code.run(scratch.pointers(), begin, end - rest);
      if (rest > 0) code.run(scratch.pointers(), end - kBlockLanes, end);
    }
  }
}

void sum_tile_rows(const TileCode& code, TileScratch& scratch, const RowsOfTile& rows, double* totals) {
  bind_row(scratch, rows, 0);
  const Strides strides = strides_of(rows);
  code.sum_rows(scratch.pointers(), {.begin = rows.first * rows.lanes,
                                     .lanes = rows.lanes,
                                     .count = rows.count,
                                     .strides = strides.data(),
                                     .totals = totals});
}

}  // namespace meshd::kernels
