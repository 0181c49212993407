#include "service/kernels/tile/tile_rows.h"

#include "service/core/checked_math.h"
#include "service/kernels/elementwise/lanes/lane_loop.h"
#include "service/kernels/tile/prefetch.h"
#include "service/kernels/tile/tile_code.h"

namespace meshd::kernels {

void run_tile_rows(const TileCode& code, TileScratch& scratch, const RowsOfTile& rows,
                   std::span<const MemoryRange> soon) {
  for (int64_t row = 0; row < rows.count; ++row) {
    for (const MemoryRange& range : soon) prefetch_part(range, row, rows.count);
    // The code only reads its inputs.
    for (const RowElement& element : rows.elements)
      scratch.bind(element.reg, const_cast<std::byte*>(element.first) + row * element.stride_bytes);
    const int64_t begin = row * rows.lanes;
    const int64_t end = begin + rows.lanes;
    if (rows.streams) {
      code.run_streaming(scratch.pointers(), begin, end);
    } else if (row + 1 < rows.count) {
      // What it writes behind the row, the next one overwrites.
      code.run(scratch.pointers(), begin, begin + core::round_up(rows.lanes, kBlockLanes));
    } else {
      const int64_t rest = rows.lanes % kBlockLanes;
      code.run(scratch.pointers(), begin, end - rest);
      if (rest > 0) code.run(scratch.pointers(), end - kBlockLanes, end);
    }
  }
}

}  // namespace meshd::kernels
