#include "service/program/transform/bounded/bounded_op.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "service/core/error.h"

namespace meshd::program {

using ir::kNoValue;
using ir::Type;
using ir::ValueId;
using tensor::Dims;
using tensor::kDynamicDim;

BoundedOp::BoundedOp(const ir::Op& op, const std::vector<BoundedValue>& operands, ops::Writer& writer)
    : op_(op),
      def_(ops::op(op.code)),
      in_(operands),
      writer_(writer),
      w_(writer),
      result_types_(writer.function().types_of(op.results)) {
  for (const BoundedValue& each : in_) operand_types_.push_back(writer_.type(each.padded));
  view_ = {operand_types_, result_types_, &op.attributes, op.regions, &writer.function(), &op.location};
  view_.op = &op;
}

bool BoundedOp::has(const std::vector<int64_t>& list, int64_t value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

int64_t BoundedOp::bound_of(const Type& type, size_t d, int64_t otherwise) const {
  int64_t out = type.dims()[d];
  if (out == kDynamicDim && type.is_bounded()) out = type.bounds[d];
  if (out == kDynamicDim) out = otherwise;
  if (out != kDynamicDim) return out;
  ir::fail("unsupported_type", op_.location,
           fmt::format("dimension {} of what '{}' gives has a size that depends on data and no bound: give its type "
                       "one, such as tensor<?xf32, #stablehlo.bounds<8>>",
                       d, op_.name));
}

std::vector<ValueId> BoundedOp::same_op(std::vector<ValueId> operands, const std::vector<Type>& types) {
  return writer_.add(op_.name, std::move(operands), op_.attributes, types, op_.regions);
}

ValueId BoundedOp::same_op_with(std::vector<ValueId> operands, std::string_view name, std::vector<int64_t> values) {
  ir::AttributeList attributes = op_.attributes;
  ir::set(attributes, name, ir::int_array_attr(std::move(values)));
  return writer_.add(op_.name, std::move(operands), std::move(attributes), {}, op_.regions).at(0);
}

std::vector<ValueId> BoundedOp::padded() const {
  std::vector<ValueId> out;
  for (const BoundedValue& each : in_) out.push_back(each.padded);
  return out;
}

BoundedResults BoundedOp::one(ValueId padded, std::vector<ValueId> sizes) {
  return std::vector{BoundedValue{padded, std::move(sizes)}};
}

std::vector<int64_t> BoundedOp::all_dims(size_t operand) const {
  std::vector<int64_t> out;
  for (size_t d = 0; d < dims(operand).size(); ++d) out.push_back(static_cast<int64_t>(d));
  return out;
}

ValueId BoundedOp::spaced_size(ValueId count, int64_t apart) {
  if (apart == 1) return count;
  const ValueId one = w_.number(1);
  const ValueId last = w_.binary("multiply", w_.binary("subtract", count, one), w_.number(apart));
  return w_.select(w_.compare("GT", count, w_.number(0)), w_.binary("add", last, one), w_.number(0));
}

std::vector<ValueId> BoundedOp::unified(size_t count) {
  Dims shape = dims(0);
  for (size_t i = 1; i < count; ++i) {
    for (size_t d = 0; d < shape.size(); ++d) shape[d] = std::max(shape[d], dims(i)[d]);
  }
  std::vector<ValueId> out = padded();
  for (size_t i = 0; i < count; ++i) out[i] = w_.resized(out[i], shape);
  return out;
}

ValueId BoundedOp::size_among(size_t count, size_t d) const {
  for (size_t i = 0; i < count; ++i) {
    if (in_[i].sizes[d] != kNoValue) return in_[i].sizes[d];
  }
  return kNoValue;
}

ValueId BoundedOp::filling(ops::Neutral neutral, ValueId init) {
  const Type type = w_.type(init);
  if (neutral == ops::Neutral::kZero) return writer_.zero(type.tensor);
  if (neutral == ops::Neutral::kOne) return writer_.splat(type, 1);
  return init;
}

void BoundedOp::mask_inputs(std::vector<ValueId>& operands, size_t count, const std::vector<int64_t>& which) {
  const std::vector<ops::Neutral> neutral = ops::neutral_elements(view_, count);
  for (size_t i = 0; i < count; ++i) {
    BoundedValue input{operands[i], {}};
    bool is_padded = false;
    for (size_t d = 0; d < dims(0).size(); ++d) {
      input.sizes.push_back(size_among(count, d));
      is_padded = is_padded || (has(which, static_cast<int64_t>(d)) && input.sizes[d] != kNoValue);
    }
    if (!is_padded) continue;
    const ops::Neutral fill = neutral.empty() ? ops::Neutral::kOther : neutral[i];
    operands[i] = w_.masked(input, which, filling(fill, in_[count + i].padded));
  }
}

ValueId BoundedOp::window_count(ValueId count, int64_t window, int64_t stride, int64_t window_dilation,
                                int64_t base_dilation, ValueId padding) {
  const ValueId base = w_.binary("add", spaced_size(count, base_dilation), padding);
  const ValueId beyond = w_.binary("subtract", base, w_.number((window - 1) * window_dilation + 1));
  const ValueId places = w_.binary("add", w_.binary("divide", beyond, w_.number(stride)), w_.number(1));
  return w_.select(w_.compare("GE", beyond, w_.number(0)), places, w_.number(0));
}

std::vector<Type> BoundedOp::infer(const std::vector<ValueId>& operands) {
  const std::vector<Type> types = writer_.function().types_of(operands);
  ops::OpView view = view_;
  view.operands = types;
  view.results = {};
  return def_.infer(view);
}

}  // namespace meshd::program
