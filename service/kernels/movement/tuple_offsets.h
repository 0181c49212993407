// Offsets of the tuples of one row, a vector of tuples at a time: what gathers and scatters of small windows spend most
// of their time on. They are 32 bits wide, twice as many to a vector as IndexRun's. Sizes, strides and offsets in
// elements.
#pragma once

#include <cstddef>
#include <cstdint>

#include "service/kernels/movement/index_table.h"

namespace meshd::kernels {

/// Tuples that are the same distance apart in the indices and, where a dim is a batching one, in the operand.
struct TupleRow {
  const std::byte* first = nullptr;  ///< first number of the first tuple
  int64_t index_stride = 0;
  int64_t operand_stride = 0;
  int64_t count = 0;
};

/// The offset of a window that is out of bounds.
inline constexpr uint32_t kOutside = UINT32_MAX;

/// Whether 32 bits hold all offsets of a table's windows, and each dim has room for a window. The functions below need
/// both.
bool has_narrow_offsets(const IndexTable& table);

/// Offsets of the row's windows from the one of tuple 0 at index 0, starts clamped as IndexRun::read_clamped does.
/// Example: operand 10x16 and tuples of two numbers, (3, 5) and (12, -1): 53, 144.
void clamped_offsets(const IndexTable& table, const TupleRow& row, uint32_t* offsets);

/// Same, but windows out of bounds are kOutside; `shifts` as IndexRun::read_checked takes them.
void checked_offsets(const IndexTable& table, const TupleRow& row, const int64_t* shifts, uint32_t* offsets);

}  // namespace meshd::kernels
