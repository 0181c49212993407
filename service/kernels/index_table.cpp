#include "service/kernels/index_table.h"

#include <algorithm>

#include "service/kernels/index_value.h"

namespace meshd::kernels {
namespace {

// Calls visit(i, number) for one component of every tuple of the run, with the element type known in the loop.
template <typename Visit>
void read_component(tensor::DType dtype, const std::byte* indices, const std::vector<int64_t>& positions,
                    int64_t offset, Visit&& visit) {
  with_index_type(dtype, [&]<typename T>(T) {
    const auto count = static_cast<int64_t>(positions.size());
    for (int64_t i = 0; i < count; ++i) {
      visit(i, index_as<T>(indices + (positions[static_cast<size_t>(i)] + offset) * static_cast<int64_t>(sizeof(T))));
    }
  });
}

}  // namespace

void IndexRun::place(const IndexTable& table, int64_t first, int64_t count) {
  positions.resize(static_cast<size_t>(count));
  operand.resize(static_cast<size_t>(count));
  slice.resize(static_cast<size_t>(count));
  const size_t rank = table.batch.size();
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
    read_component(table.dtype, indices, positions, static_cast<int64_t>(c) * table.component_stride,
                   [&](int64_t i, int64_t number) {
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
    read_component(table.dtype, indices, positions, static_cast<int64_t>(c) * table.component_stride,
                   [&](int64_t i, int64_t number) {
                     const bool is_inside = number >= shift && number - shift <= component.last_start;
                     int64_t& offset = operand[static_cast<size_t>(i)];
                     offset = is_inside && offset >= 0 ? offset + (number - shift) * component.stride : kSkip;
                   });
  }
}

}  // namespace meshd::kernels
