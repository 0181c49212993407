#include "service/ops/reduction/reduction_batch.h"

#include "service/ops/checks.h"

namespace meshd::ops {
namespace {

/// Operands from number `first` on as they are, those in front of it batched; nothing where one of them is batched.
Batched inputs_batched(const Batching& b, size_t first) {
  if (b.any_batched(first)) return std::nullopt;
  std::vector<ir::ValueId> out;
  for (size_t i = 0; i < b.operands.size(); ++i) out.push_back(i < first ? b.batched(i) : b.operands[i]);
  return out;
}

/// Attributes of windows with one more dimension in front, along which they have one element.
ir::AttributeList window_attributes(const Batching& b) {
  ir::AttributeList out;
  for (const ir::NamedAttribute& entry : b.op.attributes) {
    if (entry.name == "padding") {
      std::vector<int64_t> padding = ir::ints(b.op.attributes, entry.name);
      padding.insert(padding.begin(), {0, 0});
      const auto rank = static_cast<int64_t>(padding.size() / 2);
      out.push_back({entry.name, ir::Attribute{ir::dense_integers_attr(padding, {rank, 2})}});
    } else if (entry.name.starts_with("window_") || entry.name == "base_dilations") {
      out.push_back({entry.name, ir::int_array_attr(with_front(1, ir::ints(b.op.attributes, entry.name)))});
    } else {
      out.push_back(entry);
    }
  }
  return out;
}

}  // namespace

Batched batch_reduce(const Batching& b) {
  auto operands = inputs_batched(b, input_count(b.view));
  if (!operands) return std::nullopt;
  ir::AttributeList attributes = b.attributes_without({"dimensions"});
  attributes.push_back({"dimensions", ir::int_array_attr(shifted(ir::ints(b.op.attributes, "dimensions")))});
  return b.rewritten(std::move(*operands), std::move(attributes));
}

Batched batch_reduce_window(const Batching& b) {
  auto operands = inputs_batched(b, input_count(b.view));
  if (!operands) return std::nullopt;
  return b.rewritten(std::move(*operands), window_attributes(b));
}

Batched batch_select_and_scatter(const Batching& b) {
  auto operands = inputs_batched(b, 2);
  if (!operands) return std::nullopt;
  return b.rewritten(std::move(*operands), window_attributes(b));
}

Batched batch_sort(const Batching& b) {
  // Negative dimensions are counted from behind.
  const int64_t dimension = ir::int_or(b.op.attributes, "dimension", -1);
  ir::AttributeList attributes = b.attributes_without({"dimension"});
  attributes.push_back({"dimension", ir::integer_attr(dimension < 0 ? dimension : dimension + 1)});
  return b.rewritten(b.all_batched(), std::move(attributes));
}

}  // namespace meshd::ops
