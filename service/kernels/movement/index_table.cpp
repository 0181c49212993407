#include "service/kernels/movement/index_table.h"

#include <fmt/core.h>

#include <algorithm>

#include "service/core/error.h"
#include "service/kernels/movement/index_value.h"

namespace meshd::kernels {

void refuse_index_type(tensor::DType dtype) {
  throw core::Error("unsupported_dtype", fmt::format("an index must be an integer, got {}", tensor::name(dtype)));
}

void IndexTable::merge_batch() {
  for (size_t d = batch.size(); d-- > 1;) {
    const int64_t size = batch[d];
    const bool is_alike = batch_strides[d - 1] == batch_strides[d] * size &&
                          operand_strides[d - 1] == operand_strides[d] * size &&
                          slice_strides[d - 1] == slice_strides[d] * size;
    if (!is_alike && batch[d - 1] != 1 && size != 1) continue;
    const size_t gone = !is_alike && size == 1 ? d : d - 1;  // of a pair with a dim of one, that one
    if (is_alike) batch[d] *= batch[d - 1];
    for (tensor::Dims* dims : {&batch, &batch_strides, &operand_strides, &slice_strides}) {
      dims->erase(dims->begin() + static_cast<std::ptrdiff_t>(gone));
    }
  }
}

// Calls visit(i, number) for one component of every tuple of the run, with the element type known in the loop.
template <typename Visit>
void IndexRun::visit_component(const IndexTable& table, const std::byte* indices, size_t component,
                               Visit&& visit) const {
  const auto count = static_cast<int64_t>(operand.size());
  const int64_t offset = static_cast<int64_t>(component) * table.component_stride;
  with_index_type(table.dtype, [&]<typename T>(T) {
    constexpr auto kSize = static_cast<int64_t>(sizeof(T));
    if (is_row_) {
      const std::byte* at = indices + (row_start_ + offset) * kSize;
      for (int64_t i = 0; i < count; ++i) visit(i, index_as<T>(at + i * row_stride_ * kSize));
      return;
    }
    for (int64_t i = 0; i < count; ++i)
      visit(i, index_as<T>(indices + (positions[static_cast<size_t>(i)] + offset) * kSize));
  });
}

void IndexRun::place(const IndexTable& table, int64_t first, int64_t count) {
  operand.resize(static_cast<size_t>(count));
  slice.resize(static_cast<size_t>(count));
  const size_t rank = table.batch.size();
  is_row_ = rank <= 1;
  if (is_row_) {
    row_stride_ = rank == 0 ? 0 : table.batch_strides[0];
    row_start_ = first * row_stride_;
    const int64_t in_operand = rank == 0 ? 0 : table.operand_strides[0];
    const int64_t in_slice = rank == 0 ? 0 : table.slice_strides[0];
    for (int64_t i = 0; i < count; ++i) {
      operand[static_cast<size_t>(i)] = (first + i) * in_operand;
      slice[static_cast<size_t>(i)] = (first + i) * in_slice;
    }
    return;
  }
  positions.resize(static_cast<size_t>(count));
  tensor::Dims index(rank);
  int64_t rest = first;
  int64_t position = 0;
  int64_t in_operand = 0;
  int64_t in_slice = 0;
  for (size_t d = rank; d-- > 0;) {
    index[d] = rest % table.batch[d];
    rest /= table.batch[d];
    position += index[d] * table.batch_strides[d];
    in_operand += index[d] * table.operand_strides[d];
    in_slice += index[d] * table.slice_strides[d];
  }
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    positions[i] = position;
    operand[i] = in_operand;
    slice[i] = in_slice;
    for (size_t d = rank; d-- > 0;) {
      position += table.batch_strides[d];
      in_operand += table.operand_strides[d];
      in_slice += table.slice_strides[d];
      if (++index[d] < table.batch[d]) break;
      position -= table.batch_strides[d] * table.batch[d];
      in_operand -= table.operand_strides[d] * table.batch[d];
      in_slice -= table.slice_strides[d] * table.batch[d];
      index[d] = 0;
    }
  }
}

void IndexRun::read_clamped(const IndexTable& table, const std::byte* indices, int64_t first, int64_t count) {
  place(table, first, count);
  for (size_t c = 0; c < table.components.size(); ++c) {
    const IndexComponent component = table.components[c];
    visit_component(table, indices, c, [&](int64_t i, int64_t number) {
      operand[static_cast<size_t>(i)] +=
          std::min(std::max<int64_t>(number, 0), component.last_start) * component.stride;
    });
  }
}

void IndexRun::read_checked(const IndexTable& table, const std::byte* indices, int64_t first, int64_t count,
                            const int64_t* shifts) {
  constexpr int64_t kSkip = INT64_MIN / 2;  // stays negative whatever is added
  place(table, first, count);
  for (size_t c = 0; c < table.components.size(); ++c) {
    const IndexComponent component = table.components[c];
    const int64_t shift = shifts != nullptr ? shifts[c] : 0;
    visit_component(table, indices, c, [&](int64_t i, int64_t number) {
      const bool is_inside = number >= shift && number - shift <= component.last_start;
      int64_t& offset = operand[static_cast<size_t>(i)];
      offset = is_inside && offset >= 0 ? offset + (number - shift) * component.stride : kSkip;
    });
  }
}

}  // namespace meshd::kernels
