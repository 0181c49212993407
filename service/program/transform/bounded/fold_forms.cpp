#include "service/program/transform/bounded/fold_forms.h"

#include <algorithm>
#include <utility>

#include "service/core/checked_math.h"
#include "service/ops/linalg/convolution_dims.h"

namespace meshd::program {

using ir::kNoValue;
using ir::Type;
using ir::ValueId;
using tensor::Dims;

BoundedResults FoldForms::reduce() {
  const std::vector<int64_t> reduced = ints("dimensions");
  const size_t count = in_.size() / 2;
  std::vector<ValueId> operands = unified(count);
  std::vector<ValueId> sizes;
  for (size_t d = 0; d < dims(0).size(); ++d) {
    if (!has(reduced, static_cast<int64_t>(d))) sizes.push_back(size_among(count, d));
  }
  mask_inputs(operands, count, reduced);
  std::vector<BoundedValue> out;
  for (const ValueId made : same_op(std::move(operands))) out.push_back({made, sizes});
  return out;
}

BoundedResults FoldForms::reduce_window() {
  const size_t rank = dims(0).size(), count = in_.size() / 2;
  const std::vector<int64_t> window = ints("window_dimensions");
  const std::vector<int64_t> strides = ints("window_strides", rank, 1), base = ints("base_dilations", rank, 1);
  const std::vector<int64_t> apart = ints("window_dilations", rank, 1), padding = ints("padding", 2 * rank, 0);
  std::vector<ValueId> operands = unified(count);
  mask_inputs(operands, count, all_dims(0));
  const std::vector<ValueId> made = same_op(std::move(operands));
  std::vector<ValueId> sizes(rank, kNoValue);
  for (size_t d = 0; d < rank; ++d) {
    const ValueId size = size_among(count, d);
    if (size == kNoValue) continue;
    sizes[d] = w_.clamped(
        window_count(size, window[d], strides[d], apart[d], base[d], w_.number(padding[2 * d] + padding[2 * d + 1])),
        w_.dims(made[0])[d]);
  }
  std::vector<BoundedValue> out;
  for (const ValueId each : made) out.push_back({each, sizes});
  return out;
}

BoundedResults FoldForms::product(const ops::DotDims& pairs) {
  // Both sides of a pair have one size; the bounds may differ.
  Dims left = dims(0), right = dims(1);
  BoundedValue lhs = in_[0], rhs = in_[1];
  const auto pair_up = [&](const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
    for (size_t i = 0; i < a.size(); ++i) {
      const auto l = static_cast<size_t>(a[i]), r = static_cast<size_t>(b[i]);
      left[l] = right[r] = std::max(left[l], right[r]);
      const ValueId size = lhs.sizes[l] == kNoValue ? rhs.sizes[r] : lhs.sizes[l];
      lhs.sizes[l] = rhs.sizes[r] = size;
    }
  };
  pair_up(pairs.lhs_batch, pairs.rhs_batch);
  pair_up(pairs.lhs_contract, pairs.rhs_contract);
  lhs.padded = w_.resized(lhs.padded, left);
  rhs.padded = w_.resized(rhs.padded, right);
  std::vector<ValueId> sizes;
  for (const int64_t d : pairs.lhs_batch) sizes.push_back(lhs.sizes[static_cast<size_t>(d)]);
  for (const int64_t d : ops::free_dims(operand_types_[0].rank(), pairs.lhs_batch, pairs.lhs_contract))
    sizes.push_back(lhs.sizes[static_cast<size_t>(d)]);
  for (const int64_t d : ops::free_dims(operand_types_[1].rank(), pairs.rhs_batch, pairs.rhs_contract))
    sizes.push_back(rhs.sizes[static_cast<size_t>(d)]);
  std::vector<ValueId> operands{w_.zeroed(lhs, pairs.lhs_contract), w_.zeroed(rhs, pairs.rhs_contract)};
  // The result's element type is the text's.
  const std::vector<Type> inferred = infer(operands);
  const Type type = Type::of({result_type().dtype(), inferred[0].dims()});
  return one(same_op(std::move(operands), {type})[0], sizes);
}

BoundedResults FoldForms::convolution() { return convolution_of(in_[0], op_.attributes); }

BoundedResults FoldForms::convolution_of(const BoundedValue& lhs, const ir::AttributeList& attributes) {
  ops::OpView view = view_;
  view.attributes = &attributes;
  const ops::ConvolutionDims roles = ops::convolution_dims(view);
  const size_t count = roles.lhs.spatial.size();
  const BoundedValue& rhs = in_[1];
  const auto size_at = [](const BoundedValue& value, int64_t d) { return value.sizes[static_cast<size_t>(d)]; };
  const bool has_groups = roles.feature_groups > 1 || roles.batch_groups > 1;
  if (has_groups && (size_at(lhs, roles.lhs.major) != kNoValue || size_at(lhs, roles.lhs.minor) != kNoValue ||
                     size_at(rhs, roles.rhs.major) != kNoValue || size_at(rhs, roles.rhs.minor) != kNoValue)) {
    return std::nullopt;
  }
  for (const int64_t d : roles.rhs.spatial) {
    if (size_at(rhs, d) != kNoValue) return std::nullopt;
  }
  std::vector<int64_t> summed = roles.lhs.spatial;
  summed.push_back(roles.lhs.minor);
  const ValueId left = w_.zeroed(lhs, summed);
  const ValueId right = w_.zeroed(rhs, {roles.rhs.minor});
  const std::vector<Type> types = writer_.function().types_of({left, right});
  view.operands = types;
  view.results = {};
  const ops::OpDef& def = *ops::find_op("stablehlo.convolution");
  const Type type = Type::of({result_type().dtype(), def.infer(view)[0].dims()});
  const ValueId made = writer_.add("stablehlo.convolution", {left, right}, attributes, type);
  std::vector<ValueId> sizes(static_cast<size_t>(type.rank()), kNoValue);
  sizes[static_cast<size_t>(roles.out.major)] = size_at(lhs, roles.lhs.major);
  sizes[static_cast<size_t>(roles.out.minor)] = size_at(rhs, roles.rhs.major);
  const auto windows = ops::convolution_windows(view, roles);
  for (size_t i = 0; i < count; ++i) {
    const ValueId size = size_at(lhs, roles.lhs.spatial[i]);
    if (size == kNoValue) continue;
    const auto d = static_cast<size_t>(roles.out.spatial[i]);
    sizes[d] = w_.clamped(window_count(size, windows[i].window, windows[i].stride, windows[i].window_dilation,
                                       windows[i].base_dilation, w_.number(windows[i].pad_low + windows[i].pad_high)),
                          type.dims()[d]);
  }
  return one(made, sizes);
}

BoundedResults FoldForms::dynamic_convolution() {
  const ops::ConvolutionDims roles = ops::convolution_dims(view_);
  const size_t count = roles.lhs.spatial.size();
  const std::vector<int64_t> strides = ints("window_strides", count, 1), base = ints("lhs_dilation", count, 1);
  const std::vector<int64_t> apart = ints("rhs_dilation", count, 1);
  BoundedValue lhs = in_[0];
  const ValueId zero = writer_.zero({operand_types_[0].dtype(), {}});
  const ValueId flat = writer_.reshape(in_[2].padded, {static_cast<int64_t>(2 * count)});
  for (size_t i = 0; i < count; ++i) {
    const int64_t window = dims(1)[static_cast<size_t>(roles.rhs.spatial[i])];
    const int64_t places = bound_of(result_type(), static_cast<size_t>(roles.out.spatial[i]));
    const int64_t last = core::checked_mul(std::max<int64_t>(places - 1, 0), strides[i]);
    const int64_t bound = core::checked_add(last, core::checked_add(core::checked_mul(window - 1, apart[i]), 1));
    const auto at = static_cast<int64_t>(2 * i);
    lhs = w_.padded_along(lhs, static_cast<size_t>(roles.lhs.spatial[i]), zero, w_.element(flat, at),
                          w_.element(flat, at + 1), w_.number(base[i] - 1), bound);
  }
  ir::AttributeList attributes = op_.attributes;
  std::erase_if(attributes, [](const ir::NamedAttribute& entry) { return entry.name == "padding"; });
  ir::set(attributes, "lhs_dilation", ir::int_array_attr(std::vector<int64_t>(count, 1)));
  return convolution_of(lhs, attributes);
}

}  // namespace meshd::program
