#include "service/ops/linalg/linalg_batch.h"

#include "service/ops/checks.h"
#include "service/ops/linalg/dot.h"
#include "service/ops/linalg/lapack_calls.h"
#include "service/ops/linalg/linalg_terms.h"

namespace meshd::ops {

Batched batch_dot_general(const Batching& b) {
  DotDims dims = dot_general_dims(b.view);
  const size_t batch_count = dims.lhs_batch.size();
  const size_t lhs_free = b.view.operands[0].dims().size() - batch_count - dims.lhs_contract.size();
  if (b.is_batched[0]) {
    dims.lhs_batch = shifted(std::move(dims.lhs_batch));
    dims.lhs_contract = shifted(std::move(dims.lhs_contract));
  }
  if (b.is_batched[1]) {
    dims.rhs_batch = shifted(std::move(dims.rhs_batch));
    dims.rhs_contract = shifted(std::move(dims.rhs_contract));
  }
  const bool both = b.is_batched[0] && b.is_batched[1];
  if (both) {
    dims.lhs_batch = with_front(0, std::move(dims.lhs_batch));
    dims.rhs_batch = with_front(0, std::move(dims.rhs_batch));
  }
  // Where the batch is a free dimension, it is the first of its side's in the result.
  const size_t at = both ? 0 : b.is_batched[0] ? batch_count : batch_count + lhs_free;
  const tensor::Dims before = b.batch_of(b.view.results[0]).dims();
  tensor::Dims made(before.begin() + 1, before.end());
  made.insert(made.begin() + static_cast<int64_t>(at), b.size);
  ir::AttributeList attributes = b.attributes_without({"dot_dimension_numbers"});
  attributes.push_back({"dot_dimension_numbers", dot_numbers(dims)});
  const ir::ValueId product =
      b.writer.add("stablehlo.dot_general", b.operands, std::move(attributes), with_dims(b.view.results[0], made));
  if (at == 0) return std::vector<ir::ValueId>{product};
  std::vector<int64_t> order{static_cast<int64_t>(at)};
  for (size_t d = 0; d < made.size(); ++d) {
    if (d != at) order.push_back(static_cast<int64_t>(d));
  }
  return std::vector<ir::ValueId>{b.writer.transpose(product, order)};
}

Batched batch_lapack_call(const Batching& b) {
  std::vector<ir::ValueId> operands = b.all_batched();
  std::vector<ir::Type> operand_types;
  for (const ir::ValueId id : operands) operand_types.push_back(b.writer.type(id));
  std::vector<ir::Type> result_types;
  for (const ir::Type& type : b.view.results) result_types.push_back(b.batch_of(type));
  const int64_t batch_rank = lapack_batch_rank(b.view) + 1;
  ir::AttributeList attributes = b.op.attributes;
  for (ir::NamedAttribute& entry : attributes) {
    if (entry.name == "operand_layouts") entry.value = lapack_layouts(operand_types, batch_rank);
    if (entry.name == "result_layouts") entry.value = lapack_layouts(result_types, batch_rank);
  }
  return b.rewritten(std::move(operands), std::move(attributes));
}

}  // namespace meshd::ops
