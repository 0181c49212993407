// Code of a tile program over a tile of several rows, of which some inputs have one element each, that is read as such,
// or lanes that do not follow those of the row before: rows of a longer one, or one row for all. So may results.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "service/kernels/tile/tile_program.h"

namespace meshd::kernels {

class TileCode;

/// A register that is bound anew for each row: to `first` + r * `stride_bytes` for row r. One of
/// TileCode::Options::elements has its element there; of another the row's lanes begin as many lanes behind it as there
/// are in the rows of the tile before.
struct RowRegister {
  uint16_t reg = 0;
  const std::byte* first = nullptr;
  int64_t stride_bytes = 0;
};

/// Rows of one tile whose registers have one stride.
struct RowsOfTile {
  int64_t lanes = 0;  ///< of a row
  int64_t count = 0;
  int64_t first = 0;                       ///< of the tile's rows
  int64_t of_tile = 0;                     ///< rows of the tile
  std::span<const RowRegister> registers;  ///< in the order of CodeRows::strides
  bool streams = false;                    ///< by TileCode::run_streaming: rows are whole blocks
};

/// Runs the code over the rows; meanwhile their part of the memory of `soon` is prefetched. All other registers hold
/// the whole tile. Where rows end within a block, some lanes are computed twice, so results are not in an input's
/// memory.
void run_tile_rows(const TileCode& code, TileScratch& scratch, const RowsOfTile& rows,
                   std::span<const MemoryRange> soon);

/// The sums of the rows' lanes by TileCode::sum_rows, which reads inputs alone.
void sum_tile_rows(const TileCode& code, TileScratch& scratch, const RowsOfTile& rows, double* totals);

}  // namespace meshd::kernels
