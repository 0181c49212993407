#include "service/ops/movement/small_movement.h"

#include <functional>
#include <utility>
#include <vector>

#include "service/kernels/elementwise/lanes/lane_loop.h"

namespace meshd::ops {
namespace {

using kernels::Shuffle;
using kernels::SmallStep;
using tensor::Dims;

/// A shuffle to the result's elements in row-major order; `source` says of each index what it is.
std::shared_ptr<const SmallStep> shuffle(const ir::Type& to, const std::function<Shuffle::Lane(const Dims&)>& source) {
  const Dims& dims = to.dims();
  const int64_t count = tensor::element_count(dims);
  if (count == 0 || count > kernels::kBlockLanes) return nullptr;
  Shuffle made;
  made.dtype = to.dtype();
  Dims index(dims.size(), 0);
  for (int64_t lane = 0; lane < count; ++lane) {
    made.lanes.push_back(source(index));
    for (size_t d = dims.size(); d-- > 0;) {
      if (++index[d] < dims[d]) break;
      index[d] = 0;
    }
  }
  return std::make_shared<const SmallStep>(std::move(made));
}

}  // namespace

std::shared_ptr<const SmallStep> small_copy(const ir::Type& to, const Dims& strides, int64_t offset) {
  return shuffle(to, [&](const Dims& index) {
    int64_t element = offset;
    for (size_t d = 0; d < index.size(); ++d) element += strides[d] * index[d];
    return Shuffle::Lane{0, element};
  });
}

std::shared_ptr<const SmallStep> small_concatenate(const OpView& local, const std::vector<StridedView>& views,
                                                   size_t dim) {
  return shuffle(local.results[0], [&](Dims index) {
    size_t operand = 0;
    while (index[dim] >= local.operands[operand].dims()[dim]) index[dim] -= local.operands[operand++].dims()[dim];
    int64_t element = views[operand].offset;
    for (size_t d = 0; d < index.size(); ++d) element += views[operand].strides[d] * index[d];
    return Shuffle::Lane{static_cast<int32_t>(operand), element};
  });
}

std::shared_ptr<const SmallStep> small_pad(const OpView& local) {
  const Dims& from = local.operands[0].dims();
  const Dims strides = tensor::row_major_strides(from);
  const std::vector<int64_t> low = ir::ints(attributes_of(local), "edge_padding_low");
  const std::vector<int64_t> interior = ir::ints(attributes_of(local), "interior_padding");
  return shuffle(local.results[0], [&](const Dims& index) {
    int64_t element = 0;
    for (size_t d = 0; d < index.size(); ++d) {
      const int64_t apart = interior[d] + 1;
      const int64_t at = index[d] - low[d];
      if (at < 0 || at % apart != 0 || at / apart >= from[d]) return Shuffle::Lane{1, 0};
      element += at / apart * strides[d];
    }
    return Shuffle::Lane{0, element};
  });
}

std::shared_ptr<const SmallStep> small_row(kernels::DynamicRow row, const Dims& dims, const Dims& window) {
  row.lanes = tensor::element_count(window);
  if (row.lanes == 0 || row.lanes > kernels::kMostWhileLanes) return nullptr;
  const Dims strides = tensor::row_major_strides(dims);
  int64_t inside = 1;  // elements of the window that are further in
  for (size_t d = dims.size(); d-- > 0;) {
    // Elements follow each other where all that is further in is whole.
    if (window[d] != 1 && inside != strides[d]) return nullptr;
    inside *= window[d];
  }
  return std::make_shared<const SmallStep>(std::move(row));
}

std::vector<kernels::DynamicRow::Index> starts_of_window(const Dims& dims, const Dims& window, int first) {
  const Dims strides = tensor::row_major_strides(dims);
  std::vector<kernels::DynamicRow::Index> starts;
  for (size_t d = 0; d < dims.size(); ++d)
    starts.push_back({first + static_cast<int>(d), 0, dims[d] - window[d], strides[d]});
  return starts;
}

}  // namespace meshd::ops
