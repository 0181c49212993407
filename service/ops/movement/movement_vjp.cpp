// Reverse-mode derivatives of ops that move elements: their transposes.
#include <algorithm>

#include "service/ops/checks.h"
#include "service/ops/movement/movement.h"
#include "service/ops/rewrites/derivative.h"

namespace meshd::ops {
namespace {

using tensor::Dims;
using Ints = std::vector<int64_t>;

Ints zeros(const Dims& dims) { return Ints(dims.size(), 0); }

std::vector<ir::ValueId> rest(const Vjp& v, size_t first) {
  return {v.op.operands.begin() + static_cast<std::ptrdiff_t>(first), v.op.operands.end()};
}

Term window_of(const Vjp& v, Term value, const Dims& sizes, const std::vector<ir::ValueId>& starts) {
  std::vector<ir::ValueId> operands = {value.id};
  operands.insert(operands.end(), starts.begin(), starts.end());
  return v.value(
      v.writer.add("stablehlo.dynamic_slice", std::move(operands), {{"slice_sizes", ir::int_array_attr(sizes)}}));
}

Term with_window(const Vjp& v, Term value, Term window, const std::vector<ir::ValueId>& starts) {
  std::vector<ir::ValueId> operands = {value.id, window.id};
  operands.insert(operands.end(), starts.begin(), starts.end());
  return v.value(v.writer.add("stablehlo.dynamic_update_slice", std::move(operands)));
}

}  // namespace

Contributions vjp_broadcast_in_dim(const Vjp& v) {
  const Ints into = ir::ints(attributes_of(v.view), "broadcast_dimensions");
  const Dims& from = v.x().dims();
  Ints repeated;
  for (int64_t d = 0; d < v.y().rank(); ++d) {
    const auto found = std::find(into.begin(), into.end(), d);
    const bool is_kept =
        found != into.end() && from[static_cast<size_t>(found - into.begin())] == v.y().dims()[static_cast<size_t>(d)];
    if (!is_kept) repeated.push_back(d);
  }
  return {v.value(v.writer.reshape(summed_over(v.ct(), repeated).id, from))};
}

Contributions vjp_concatenate(const Vjp& v) {
  const auto along = static_cast<size_t>(ir::int_or(attributes_of(v.view), "dimension", 0));
  Contributions out;
  Ints start = zeros(v.y().dims());
  Ints limit = v.y().dims();
  for (size_t i = 0; i < v.op.operands.size(); ++i) {
    limit[along] = start[along] + v.x(i).dims()[along];
    out.emplace_back(sliced(v.ct(), start, limit));
    start[along] = limit[along];
  }
  return out;
}

Contributions vjp_dynamic_slice(const Vjp& v) {
  const std::vector<ir::ValueId> starts = rest(v, 1);
  if (v.sums[0] == ir::kNoValue) return {with_window(v, v.x().number(0), v.ct(), starts)};
  // Only the window of the sum changes: in a loop over windows that costs the windows alone.
  const Term sum = v.value(v.sums[0]);
  const Term window = window_of(v, sum, v.y().dims(), starts) + v.ct();
  return {Contribution::sum(with_window(v, sum, window, starts))};
}

Contributions vjp_dynamic_update_slice(const Vjp& v) {
  const std::vector<ir::ValueId> starts = rest(v, 2);
  return {with_window(v, v.ct(), v.x(1).number(0), starts), window_of(v, v.ct(), v.x(1).dims(), starts)};
}

Contributions vjp_pad(const Vjp& v) {
  const ir::AttributeList& attributes = attributes_of(v.view);
  Ints low = ir::ints(attributes, "edge_padding_low");
  Ints high = ir::ints(attributes, "edge_padding_high");
  const Ints interior = ir::ints(attributes, "interior_padding");
  const Dims& dims = v.x().dims();
  if (std::count(dims.begin(), dims.end(), 0) != 0) return {Contribution(), sum_of_all(v.ct())};
  Ints strides = interior;
  for (int64_t& stride : strides) ++stride;
  for (int64_t& edge : low) edge = -edge;
  for (int64_t& edge : high) edge = -edge;
  const Term inner = padded(v.ct(), low, high, zeros(dims));
  const Term operand = sliced(inner, zeros(dims), inner.dims(), strides);
  if (!v.wanted[1]) return {operand};
  return {operand, sum_of_all(v.ct()) - sum_of_all(operand)};
}

Contributions vjp_reshape(const Vjp& v) { return {v.value(v.writer.reshape(v.ct().id, v.x().dims()))}; }

Contributions vjp_reverse(const Vjp& v) { return {v.value(v.writer.add(v.op.name, {v.ct().id}, v.op.attributes))}; }

Contributions vjp_slice(const Vjp& v) {
  const Ints start = ir::ints(attributes_of(v.view), "start_indices");
  Ints interior = ir::ints(attributes_of(v.view), "strides");
  const Dims& from = v.x().dims();
  const Dims& to = v.y().dims();
  Ints high(from.size());
  for (size_t d = 0; d < from.size(); ++d) {
    const int64_t spread = to[d] == 0 ? 0 : (to[d] - 1) * interior[d] + 1;
    high[d] = from[d] - start[d] - spread;
    --interior[d];
  }
  return {padded(v.ct(), start, high, interior)};
}

Contributions vjp_transpose(const Vjp& v) {
  const Ints permutation = ir::ints(attributes_of(v.view), "permutation");
  Ints inverse(permutation.size());
  for (size_t d = 0; d < permutation.size(); ++d)
    inverse[static_cast<size_t>(permutation[d])] = static_cast<int64_t>(d);
  return {v.value(v.writer.transpose(v.ct().id, inverse))};
}

}  // namespace meshd::ops
