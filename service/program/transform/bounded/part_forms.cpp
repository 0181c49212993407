#include "service/program/transform/bounded/part_forms.h"

#include <algorithm>
#include <utility>

namespace meshd::program {

using ir::kNoValue;
using ir::Type;
using ir::ValueId;
using tensor::Dims;
using tensor::DType;

BoundedResults PartForms::reverse() {
  const std::vector<int64_t> which = ints("dimensions");
  std::vector<int64_t> whole;
  ValueId value = in_[0].padded;
  for (const int64_t each : which) {
    const auto d = static_cast<size_t>(each);
    if (in_[0].sizes[d] == kNoValue) {
      whole.push_back(each);
      continue;
    }
    const Dims line{dims(0)[d]};
    const ValueId last = w_.binary("subtract", in_[0].sizes[d], w_.number(1));
    value = w_.take(value, d, w_.binary("subtract", w_.spread(last, line), w_.iota(line, 0)));
  }
  if (!whole.empty()) value = same_op_with({value}, "dimensions", whole);
  return one(value, in_[0].sizes);
}

BoundedResults PartForms::slice() {
  const std::vector<int64_t> starts = ints("start_indices"), limits = ints("limit_indices");
  const std::vector<int64_t> strides = ints("strides", starts.size(), 1);
  std::vector<ValueId> sizes = in_[0].sizes;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == kNoValue) continue;
    if (!is_dynamic(result_type(), d)) {
      sizes[d] = kNoValue;  // the text says that so many are there
      continue;
    }
    const ValueId end = w_.binary("minimum", sizes[d], w_.number(limits[d]));
    const ValueId count = w_.binary("maximum", w_.binary("subtract", end, w_.number(starts[d])), w_.number(0));
    sizes[d] = w_.ceil_div(count, w_.number(strides[d]));
  }
  return one(same_op(padded())[0], sizes);
}

BoundedResults PartForms::real_dynamic_slice() {
  BoundedValue out = in_[0];
  for (size_t d = 0; d < dims(0).size(); ++d) {
    const auto at = static_cast<int64_t>(d);
    const ValueId all = w_.size(in_[0], d);
    const ValueId zero = w_.number(0);
    const ValueId start = w_.binary("minimum", w_.binary("maximum", w_.element(in_[1].padded, at), zero), all);
    const ValueId limit = w_.binary("minimum", w_.element(in_[2].padded, at), all);
    const ValueId stride = w_.binary("maximum", w_.element(in_[3].padded, at), w_.number(1));
    const int64_t bound = bound_of(result_type(), d, dims(0)[d]);
    const ValueId count = w_.ceil_div(w_.binary("maximum", w_.binary("subtract", limit, start), zero), stride);
    out.sizes[d] = is_dynamic(result_type(), d) ? w_.clamped(count, bound) : kNoValue;
    const Dims line{bound};
    const ValueId index =
        w_.binary("add", w_.spread(start, line), w_.binary("multiply", w_.iota(line, 0), w_.spread(stride, line)));
    if (dims(0)[d] == 0) {
      Dims shape = w_.dims(out.padded);
      shape[d] = bound;
      out.padded = w_.resized(out.padded, shape);
    } else {
      out.padded = w_.take(out.padded, d, index);
    }
  }
  return std::vector{out};
}

ValueId PartForms::start_within(ValueId index, size_t d, ValueId count) {
  const DType dtype = w_.type(index).dtype();
  const ValueId wide = w_.convert(index, DType::kInt64);
  const ValueId room =
      w_.convert(w_.binary("maximum", w_.binary("subtract", w_.size(in_[0], d), count), w_.number(0)), DType::kInt64);
  const ValueId held = w_.binary("minimum", w_.binary("maximum", wide, w_.number(0, DType::kInt64)), room);
  return w_.convert(held, dtype);
}

BoundedResults PartForms::dynamic_slice() {
  const std::vector<int64_t> sizes = ints("slice_sizes");
  std::vector<ValueId> operands = padded();
  std::vector<ValueId> out(sizes.size(), kNoValue);
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (in_[0].sizes[d] == kNoValue) continue;
    if (is_dynamic(result_type(), d)) {
      // As many as there are, where the slice is longer.
      out[d] = w_.binary("minimum", in_[0].sizes[d], w_.number(sizes[d]));
    }
    operands[d + 1] = start_within(operands[d + 1], d, out[d] == kNoValue ? w_.number(sizes[d]) : out[d]);
  }
  return one(same_op(std::move(operands))[0], out);
}

BoundedResults PartForms::dynamic_update_slice() {
  const BoundedValue& update = in_[1];
  std::vector<ValueId> operands = padded();
  Dims room = dims(0);
  for (size_t d = 0; d < room.size(); ++d) {
    if (in_[0].sizes[d] == kNoValue && update.sizes[d] == kNoValue) continue;
    operands[d + 2] = start_within(operands[d + 2], d, w_.size(update, d));
    room[d] += dims(1)[d];  // padding of the update may be beyond the operand's end
  }
  operands[0] = w_.resized(operands[0], room);
  if (update.is_bounded()) {
    std::vector<ValueId> read{operands[0]};
    read.insert(read.end(), operands.begin() + 2, operands.end());
    const ValueId there =
        writer_.add("stablehlo.dynamic_slice", std::move(read), {{"slice_sizes", ir::int_array_attr(dims(1))}});
    operands[1] = w_.select(w_.inside(update, all_dims(1)), update.padded, there);
  }
  const ValueId made = same_op(std::move(operands))[0];
  return one(w_.resized(made, dims(0)), in_[0].sizes);
}

BoundedResults PartForms::concatenate() {
  const auto along = static_cast<size_t>(ir::int_or(op_.attributes, "dimension", 0));
  Dims shape = dims(0);
  std::vector<ValueId> sizes(shape.size(), kNoValue);
  int64_t total = 0;
  bool moves = false;
  for (size_t i = 0; i < in_.size(); ++i) {
    for (size_t d = 0; d < shape.size(); ++d) {
      shape[d] = std::max(shape[d], dims(i)[d]);
      if (d != along && sizes[d] == kNoValue) sizes[d] = in_[i].sizes[d];
    }
    total += dims(i)[along];
    moves = moves || in_[i].sizes[along] != kNoValue;
  }
  std::vector<ValueId> parts;
  for (size_t i = 0; i < in_.size(); ++i) {
    shape[along] = dims(i)[along];
    parts.push_back(w_.resized(in_[i].padded, shape));
  }
  if (!moves) return one(same_op(std::move(parts))[0], sizes);
  shape[along] = total;
  ValueId out = writer_.zero({operand_types_[0].dtype(), shape});
  ValueId at = w_.number(0);
  for (size_t i = 0; i < in_.size(); ++i) {
    // Each part begins where the one before it ends, and covers its padding.
    std::vector<ValueId> operands{out, parts[i]};
    for (size_t d = 0; d < shape.size(); ++d) operands.push_back(d == along ? at : w_.number(0));
    out = writer_.add("stablehlo.dynamic_update_slice", std::move(operands));
    at = w_.binary("add", at, w_.size(in_[i], along));
  }
  sizes[along] = at;
  return one(out, sizes);
}

BoundedResults PartForms::pad() {
  const std::vector<int64_t> low = ints("edge_padding_low"), high = ints("edge_padding_high");
  const std::vector<int64_t> interior = ints("interior_padding", low.size(), 0);
  std::vector<ValueId> operands = padded();
  operands[0] = w_.masked(in_[0], all_dims(0), in_[1].padded);
  std::vector<ValueId> sizes = in_[0].sizes;
  const ValueId made = same_op(std::move(operands))[0];
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == kNoValue) continue;
    const ValueId spaced = spaced_size(sizes[d], interior[d] + 1);
    sizes[d] = w_.clamped(w_.binary("add", spaced, w_.number(low[d] + high[d])), w_.dims(made)[d]);
  }
  return one(made, sizes);
}

BoundedResults PartForms::dynamic_pad() {
  BoundedValue value = in_[0];
  for (size_t d = 0; d < dims(0).size(); ++d) {
    const auto at = static_cast<int64_t>(d);
    value = w_.padded_along(value, d, in_[1].padded, w_.element(in_[2].padded, at), w_.element(in_[3].padded, at),
                            w_.element(in_[4].padded, at), bound_of(result_type(), d));
    if (!is_dynamic(result_type(), d)) value.sizes[d] = kNoValue;
  }
  return std::vector{value};
}

}  // namespace meshd::program
