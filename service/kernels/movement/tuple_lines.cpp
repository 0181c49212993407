#include "service/kernels/movement/tuple_lines.h"

#include <utility>

#include "service/core/checked_math.h"

namespace meshd::kernels {

TupleLines::TupleLines(IndexTable table, size_t row, const LineWindow& window, int64_t elem_size, int64_t part_tuples)
    : table_(std::move(table)), elem_size_(elem_size) {
  const size_t rank = table_.batch.size();
  if (rank > 0) {
    row_tuples_ = table_.batch[row];
    slice_stride_ = table_.slice_strides[row] * elem_size;
    array_stride_ = table_.operand_strides[row];
    index_stride_ = table_.batch_strides[row];
  }
  part_tuples_ = std::min(row_tuples_, part_tuples);
  const int64_t index_bytes = tensor::size_bytes(table_.dtype);
  for (size_t d = 0; d < rank; ++d) {
    if (d == row) continue;
    add_loop({table_.batch[d], table_.slice_strides[d] * elem_size, table_.operand_strides[d] * elem_size,
              table_.batch_strides[d] * index_bytes});
  }
  part_loop_ = loops_.size();
  add_loop({core::ceil_div(row_tuples_, part_tuples_), part_tuples_ * slice_stride_,
            part_tuples_ * array_stride_ * elem_size, part_tuples_ * index_stride_ * index_bytes});
  tuple_loops_ = loops_.size();
  for (size_t d = 0; d < window.dims.size(); ++d)
    add_loop({window.dims[d], window.slice_strides[d] * elem_size, window.array_strides[d] * elem_size, 0});
}

void TupleLines::add_loop(const Loop& loop) {
  if (loop.extent == 1) return;
  loops_.push_back(loop);
  line_count_ *= loop.extent;
}

}  // namespace meshd::kernels
