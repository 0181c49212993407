// One dimension of a halo exchange: the rows of an operand that one part of a result reads, in numbers that are the
// same for every device; a device's part is an input. Pure.
#pragma once

#include <cstdint>

namespace meshd::partition {

/// Row j of part p has place start + p * part_step + j * row_step. Operand row r has place r * spread; rows outside of
/// [begin, end) are not read. Example, windows of 3 over 16 rows sharded over x=4, padding 1: parts of 6 places, start
/// -1, part_step 4; part 0 reads places -1 to 4, which are rows 0 to 4.
struct HaloDim {
  int64_t start = 0;
  int64_t part_step = 0;
  int64_t row_step = 1;  ///< not 0
  int64_t spread = 1;
  int64_t begin = 0;
  int64_t end = 0;
};

/// Rows of a part that are rows of the operand: row to + t * to_step is operand row from + t * from_step, for t <
/// count.
struct HaloRows {
  int64_t to = 0;
  int64_t to_step = 1;
  int64_t from = 0;
  int64_t from_step = 1;
  int64_t count = 0;

  /// Operand rows from the least to behind the greatest; empty where count is 0.
  [[nodiscard]] int64_t first() const { return from_step > 0 ? from : from + (count - 1) * from_step; }
  [[nodiscard]] int64_t last() const { return from_step > 0 ? from + (count - 1) * from_step : from; }
  /// Those of operand rows [low, high).
  [[nodiscard]] HaloRows within(int64_t low, int64_t high) const;
};

/// Of `rows` rows of part `part`.
HaloRows rows_read(const HaloDim& dim, int64_t part, int64_t rows);

}  // namespace meshd::partition
