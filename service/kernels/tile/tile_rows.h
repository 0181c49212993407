// Code of a tile program over a tile of several rows, where some inputs have one element for each row: it reads the
// element, where other tiles have it on all lanes of the row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "service/kernels/tile/tile_program.h"

namespace meshd::kernels {

class TileCode;

/// An input register of TileCode::Options::elements: the element of row r is at `first` + r * `stride_bytes`.
struct RowElement {
  uint16_t reg = 0;
  const std::byte* first = nullptr;
  int64_t stride_bytes = 0;
};

/// The rows of one tile.
struct RowsOfTile {
  int64_t lanes = 0;  ///< of a row: a block or more
  int64_t count = 0;
  std::span<const RowElement> elements;
  bool streams = false;  ///< by TileCode::run_streaming: rows are whole blocks
};

/// Runs the code row by row; meanwhile the memory of `soon` is prefetched. All other registers hold the whole tile.
/// Where rows end within a block, lanes behind a row are computed with it, and of the last row some lanes twice: so
/// results are not in an input's memory.
void run_tile_rows(const TileCode& code, TileScratch& scratch, const RowsOfTile& rows,
                   std::span<const MemoryRange> soon);

/// The sums of the rows' lanes by TileCode::sum, which reads inputs alone.
void sum_tile_rows(const TileCode& code, TileScratch& scratch, const RowsOfTile& rows, double* totals);

}  // namespace meshd::kernels
