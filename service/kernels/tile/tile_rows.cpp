#include "service/kernels/tile/tile_rows.h"

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
    if (rows.streams)
      code.run_streaming(scratch.pointers(), begin, begin + rows.lanes);
    else
      code.run(scratch.pointers(), begin, begin + rows.lanes);
  }
}

}  // namespace meshd::kernels
