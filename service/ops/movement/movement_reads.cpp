// How fused chains read through movement ops: index maps from the result to the operand.
#include "service/ops/checks.h"
#include "service/ops/movement/movement.h"

namespace meshd::ops {

IndexingMap read_reshape(const OpView&) { return {.dims = {}, .same_bytes = true}; }

IndexingMap read_broadcast_in_dim(const OpView& local) {
  const std::vector<int64_t> dims = ir::ints(attributes_of(local), "broadcast_dimensions");
  IndexingMap map;
  for (size_t d = 0; d < dims.size(); ++d) {
    const bool repeats = local.operands[0].dims()[d] == 1;
    map.dims.push_back({.result_dim = repeats ? -1 : static_cast<int>(dims[d])});
  }
  return map;
}

IndexingMap read_slice(const OpView& local) {
  const std::vector<int64_t> starts = ir::ints(attributes_of(local), "start_indices");
  const std::vector<int64_t> strides = ir::ints(attributes_of(local), "strides");
  IndexingMap map;
  for (size_t d = 0; d < starts.size(); ++d) map.dims.push_back({static_cast<int>(d), starts[d], strides[d]});
  return map;
}

IndexingMap read_reverse(const OpView& local) {
  const tensor::Dims& dims = local.results[0].dims();
  IndexingMap map;
  for (size_t d = 0; d < dims.size(); ++d) map.dims.push_back({.result_dim = static_cast<int>(d)});
  for (const int64_t reversed : ir::ints(attributes_of(local), "dimensions")) {
    const auto d = static_cast<size_t>(reversed);
    map.dims[d].start = dims[d] - 1;
    map.dims[d].step = -1;
  }
  return map;
}

int64_t iota_dim(const OpView& local) { return ir::int_or(attributes_of(local), "iota_dimension", 0); }

}  // namespace meshd::ops
