#include "service/ops/movement/movement_batch.h"

#include "service/ops/checks.h"

namespace meshd::ops {
namespace {

using BatchInts = std::vector<int64_t>;

BatchInts ints_of(const Batching& b, std::string_view name) { return ir::ints(attributes_of(b.view), name); }

/// The op on all operands batched, with `name` among its attributes replaced.
Batched with_attribute(const Batching& b, std::string_view name, ir::Attribute attribute) {
  ir::AttributeList attributes = b.attributes_without({name});
  attributes.push_back({std::string(name), std::move(attribute)});
  return b.rewritten(b.all_batched(), std::move(attributes));
}

}  // namespace

Batched batch_transpose(const Batching& b) {
  return with_attribute(b, "permutation", ir::int_array_attr(with_front(0, shifted(ints_of(b, "permutation")))));
}

Batched batch_broadcast_in_dim(const Batching& b) {
  return with_attribute(b, "broadcast_dimensions",
                        ir::int_array_attr(with_front(0, shifted(ints_of(b, "broadcast_dimensions")))));
}

Batched batch_slice(const Batching& b) {
  const auto rank = static_cast<size_t>(b.view.operands[0].rank());
  BatchInts strides = ints_of(b, "strides");
  if (strides.empty()) strides.assign(rank, 1);
  ir::AttributeList attributes = b.attributes_without({"start_indices", "limit_indices", "strides"});
  attributes.push_back({"limit_indices", ir::int_array_attr(with_front(b.size, ints_of(b, "limit_indices")))});
  attributes.push_back({"start_indices", ir::int_array_attr(with_front(0, ints_of(b, "start_indices")))});
  attributes.push_back({"strides", ir::int_array_attr(with_front(1, std::move(strides)))});
  return b.rewritten(b.all_batched(), std::move(attributes));
}

Batched batch_pad(const Batching& b) {
  if (b.is_batched[1]) return std::nullopt;
  ir::AttributeList attributes;
  for (const char* name : {"edge_padding_high", "edge_padding_low", "interior_padding"})
    attributes.push_back({name, ir::int_array_attr(with_front(0, ints_of(b, name)))});
  return b.rewritten({b.batched(0), b.operands[1]}, std::move(attributes));
}

Batched batch_concatenate(const Batching& b) {
  return with_attribute(b, "dimension", ir::integer_attr(ir::int_or(attributes_of(b.view), "dimension", 0) + 1));
}

Batched batch_reverse(const Batching& b) {
  return with_attribute(b, "dimensions", ir::int_array_attr(shifted(ints_of(b, "dimensions"))));
}

}  // namespace meshd::ops
