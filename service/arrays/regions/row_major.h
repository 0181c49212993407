// Column-major values that are too large for memory, in row-major order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "service/tensor/shape.h"
#include "storage/blobs/blob_store.h"

namespace meshd::arrays {

/// Gives `out` the elements of a column-major value (Fortran order, first index fastest), which `columns` has, in
/// row-major order, in pieces of at most `most_in_piece` bytes, or an element; as much again is in memory beside a
/// piece. A page of `columns` is read for each piece that has something of it. Example: int8[2, 3], columns 1 4 2 5 3
/// 6: 1 2 3 4 5 6.
void write_row_major(const tensor::TensorType& type, const std::shared_ptr<const storage::BlobReader>& columns,
                     const std::function<void(std::span<const std::byte>)>& out,
                     int64_t most_in_piece = int64_t{16} << 20);

}  // namespace meshd::arrays
