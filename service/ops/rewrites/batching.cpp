#include "service/ops/rewrites/batching.h"

#include <algorithm>
#include <numeric>

#include "service/ops/checks.h"

namespace meshd::ops {

ir::ValueId Batching::batched(size_t operand) const {
  const ir::ValueId id = operands.at(operand);
  return is_batched.at(operand) ? id : repeated_over_batch(writer, id, size);
}

std::vector<ir::ValueId> Batching::all_batched() const {
  std::vector<ir::ValueId> out;
  for (size_t i = 0; i < operands.size(); ++i) out.push_back(batched(i));
  return out;
}

bool Batching::any_batched(size_t first) const {
  return std::find(is_batched.begin() + static_cast<int64_t>(std::min(first, is_batched.size())), is_batched.end(),
                   true) != is_batched.end();
}

ir::Type Batching::batch_of(const ir::Type& type) const { return with_dims(type, with_front(size, type.dims())); }

std::vector<ir::ValueId> Batching::rewritten(std::vector<ir::ValueId> batched_operands,
                                             ir::AttributeList attributes) const {
  std::vector<ir::Type> types;
  for (const ir::Type& type : view.results) types.push_back(batch_of(type));
  return writer.create(op.name, std::move(batched_operands), types, std::move(attributes), op.regions);
}

ir::AttributeList Batching::attributes_without(std::initializer_list<std::string_view> names) const {
  ir::AttributeList out = op.attributes;
  std::erase_if(out, [&](const ir::NamedAttribute& entry) {
    return std::find(names.begin(), names.end(), entry.name) != names.end();
  });
  return out;
}

std::vector<int64_t> shifted(std::vector<int64_t> dims) {
  for (int64_t& dim : dims) ++dim;
  return dims;
}

std::vector<int64_t> with_front(int64_t front, std::vector<int64_t> by_dimension) {
  by_dimension.insert(by_dimension.begin(), front);
  return by_dimension;
}

ir::ValueId repeated_over_batch(Writer& writer, ir::ValueId id, int64_t size) {
  const tensor::Dims dims = writer.type(id).dims();
  std::vector<int64_t> into(dims.size());
  std::iota(into.begin(), into.end(), 1);
  return writer.broadcast(id, with_front(size, dims), into);
}

Batched batch_leading(const Batching& b) { return b.rewritten(b.all_batched(), b.op.attributes); }

Batched batch_pointwise(const Batching& b) {
  const int64_t rank = b.view.results[0].rank();
  std::vector<ir::ValueId> operands;
  for (size_t i = 0; i < b.operands.size(); ++i) {
    if (b.view.operands[i].rank() == rank) {
      operands.push_back(b.batched(i));
      continue;
    }
    const std::vector<int64_t> into = b.is_batched[i] ? std::vector<int64_t>{0} : std::vector<int64_t>{};
    operands.push_back(b.writer.broadcast(b.operands[i], b.batch_of(b.view.results[0]).dims(), into));
  }
  return b.rewritten(std::move(operands), b.op.attributes);
}

}  // namespace meshd::ops
