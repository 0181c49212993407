#include "service/program/transform/bounded/index_forms.h"

#include <algorithm>
#include <utility>

#include "service/core/checked_math.h"

namespace meshd::program {

using ir::kNoValue;
using ir::Type;
using ir::ValueId;
using tensor::Dims;
using tensor::DType;

ValueId IndexForms::held_indices(const ops::WindowDims& numbers, const std::vector<ValueId>& window_sizes) {
  const Type& indices = operand_types_[1];
  const bool has_tuples = numbers.index_vector_dim < indices.rank();
  std::vector<ValueId> highest;
  for (const int64_t each : numbers.index_map) {
    const auto d = static_cast<size_t>(each);
    const ValueId room = w_.binary("maximum", w_.binary("subtract", w_.size(in_[0], d), window_sizes[d]), w_.number(0));
    highest.push_back(writer_.reshape(w_.convert(room, DType::kInt64), {1}));
  }
  if (highest.empty()) return in_[1].padded;
  const ValueId line = writer_.concatenate(highest, 0);
  const ValueId limits = has_tuples ? writer_.broadcast(line, indices.dims(), {numbers.index_vector_dim})
                                    : w_.spread(writer_.reshape(line, {}), indices.dims());
  const ValueId wide = w_.convert(in_[1].padded, DType::kInt64);
  const ValueId zeros = w_.spread(w_.number(0, DType::kInt64), indices.dims());
  return w_.convert(w_.binary("minimum", w_.binary("maximum", wide, zeros), limits), indices.dtype());
}

BoundedResults IndexForms::gather() {
  return gather_of(ints("slice_sizes"), std::vector<ValueId>(dims(0).size(), kNoValue), op_.attributes);
}

BoundedResults IndexForms::gather_of(const std::vector<int64_t>& windows, std::vector<ValueId> real,
                                     ir::AttributeList attributes) {
  const ops::WindowDims numbers = ops::gather_dims(view_);
  for (const int64_t d : numbers.operand_batching) {
    if (in_[0].sizes[static_cast<size_t>(d)] != kNoValue) return std::nullopt;
  }
  const std::vector<int64_t> kept = ops::window_dims(numbers, operand_types_[0].rank());
  Dims room = dims(0);
  std::vector<ValueId> held(room.size());
  for (size_t d = 0; d < room.size(); ++d) {
    const auto at = std::find(kept.begin(), kept.end(), static_cast<int64_t>(d));
    if (at != kept.end() && in_[0].sizes[d] != kNoValue && real[d] == kNoValue) {
      const auto out = static_cast<size_t>(numbers.offset.at(static_cast<size_t>(at - kept.begin())));
      // As many as there are, where the window is longer.
      if (is_dynamic(result_type(), out)) real[d] = w_.binary("minimum", in_[0].sizes[d], w_.number(windows[d]));
    }
    held[d] = real[d] == kNoValue ? w_.number(windows[d]) : real[d];
    if (real[d] != kNoValue)
      room[d] = core::checked_add(room[d], windows[d]);  // a window's padding may be beyond the operand's end
  }
  const ValueId operand = w_.resized(in_[0].padded, room);
  const ValueId indices = held_indices(numbers, held);
  ir::set(attributes, "slice_sizes", ir::int_array_attr(windows));
  const ValueId made = writer_.add("stablehlo.gather", {operand, indices}, std::move(attributes));
  std::vector<ValueId> sizes(w_.dims(made).size(), kNoValue);
  for (size_t i = 0; i < kept.size(); ++i)
    sizes[static_cast<size_t>(numbers.offset[i])] = real[static_cast<size_t>(kept[i])];
  const std::vector<int64_t> outer = ops::batch_dims(numbers, static_cast<int64_t>(sizes.size()));
  const std::vector<int64_t> tuples = ops::tuple_dims(numbers, operand_types_[1].rank());
  for (size_t i = 0; i < outer.size(); ++i)
    sizes[static_cast<size_t>(outer[i])] = in_[1].sizes[static_cast<size_t>(tuples[i])];
  return one(made, sizes);
}

BoundedResults IndexForms::dynamic_gather() {
  const ops::WindowDims numbers = ops::gather_dims(view_);
  const std::vector<int64_t> kept = ops::window_dims(numbers, operand_types_[0].rank());
  std::vector<int64_t> windows(dims(0).size(), 1);
  std::vector<ValueId> real(windows.size(), kNoValue);
  for (size_t i = 0; i < kept.size(); ++i) {
    const auto d = static_cast<size_t>(kept[i]), out = static_cast<size_t>(numbers.offset.at(i));
    windows[d] = std::min(bound_of(result_type(), out, dims(0)[d]), dims(0)[d]);
    if (is_dynamic(result_type(), out)) real[d] = w_.clamped(w_.element(in_[2].padded, kept[i]), windows[d]);
  }
  return gather_of(windows, std::move(real), op_.attributes);
}

BoundedResults IndexForms::scatter() {
  const size_t count = ops::scatter_count(view_);
  const ops::WindowDims numbers = ops::scatter_dims(view_);
  const BoundedValue& tuples = in_[count];
  std::vector<ValueId> operands = padded();
  for (size_t i = 0; i < count; ++i) {
    if (w_.dims(operands[i]) != dims(0)) return std::nullopt;
    // A window of the updates that has padding would write it.
    for (const int64_t d : numbers.offset) {
      if (in_[count + 1 + i].sizes[static_cast<size_t>(d)] != kNoValue) return std::nullopt;
    }
  }
  const std::vector<int64_t> outer = ops::batch_dims(numbers, operand_types_[count + 1].rank());
  const std::vector<int64_t> own = ops::tuple_dims(numbers, operand_types_[count].rank());
  BoundedValue indices = tuples;
  Dims shape = dims(count);
  for (size_t i = 0; i < own.size(); ++i) {
    const auto d = static_cast<size_t>(own[i]), u = static_cast<size_t>(outer[i]);
    for (size_t k = 0; k < count; ++k) {
      const BoundedValue& updates = in_[count + 1 + k];
      shape[d] = std::max(shape[d], dims(count + 1 + k)[u]);
      if (indices.sizes[d] == kNoValue) indices.sizes[d] = updates.sizes[u];
    }
  }
  indices.padded = w_.resized(indices.padded, shape);
  for (size_t k = 0; k < count; ++k) {
    Dims wanted = dims(count + 1 + k);
    for (size_t i = 0; i < own.size(); ++i) wanted[static_cast<size_t>(outer[i])] = shape[static_cast<size_t>(own[i])];
    operands[count + 1 + k] = w_.resized(operands[count + 1 + k], wanted);
  }
  if (indices.is_bounded()) {
    // Tuples of the padding point outside, where a scatter writes nothing.
    indices.padded = w_.convert(indices.padded, DType::kInt64);
    operands[count] = w_.masked(indices, all_dims(count), w_.number(-1, DType::kInt64));
  }
  std::vector<BoundedValue> out;
  const std::vector<ValueId> made = same_op(std::move(operands));
  for (size_t i = 0; i < made.size(); ++i) out.push_back({made[i], in_[i].sizes});
  return out;
}

BoundedResults IndexForms::sort() {
  const size_t count = in_.size();
  const int64_t rank = operand_types_[0].rank();
  int64_t along = ir::int_or(op_.attributes, "dimension", -1);
  if (along < 0) along += rank;
  std::vector<ValueId> operands = unified(count);
  const Dims shape = w_.dims(operands[0]);
  BoundedValue first{operands[0], {}};
  for (size_t d = 0; d < shape.size(); ++d) first.sizes.push_back(size_among(count, d));
  std::vector<BoundedValue> out;
  if (first.sizes[static_cast<size_t>(along)] == kNoValue) {
    for (const ValueId made : same_op(std::move(operands))) out.push_back({made, first.sizes});
    return out;
  }
  operands.push_back(w_.inside(first, {along}));
  ir::Region body = op_.regions[0];
  const Type flag = Type::of({DType::kBool, {}});
  const ValueId a = writer_.function().add_value(flag), b = writer_.function().add_value(flag);
  body.arguments.push_back(a);
  body.arguments.push_back(b);
  ir::Op end = std::move(body.ops.back());
  body.ops.pop_back();
  {
    const ir::OpBuilder::InsertionGuard inside(writer_, body.ops);
    const ValueId differ = w_.binary("xor", a, b);
    end.operands[0] = w_.select(differ, a, end.operands[0]);
    writer_.insert(std::move(end));
  }
  std::vector<Type> types = writer_.function().types_of(operands);
  std::vector<ir::Region> regions;
  regions.push_back(std::move(body));
  const std::vector<ValueId> made =
      writer_.add(op_.name, std::move(operands), op_.attributes, std::move(types), std::move(regions));
  for (size_t i = 0; i < count; ++i) out.push_back({made[i], first.sizes});
  return out;
}

}  // namespace meshd::program
