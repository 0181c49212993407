#include "service/program/transform/bounded/shape_forms.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "service/core/error.h"
#include "service/ops/linalg/lapack_calls.h"
#include "service/ops/pointwise/pointwise.h"

namespace meshd::program {

using ir::kNoValue;
using ir::Type;
using ir::ValueId;
using ops::BoundedForm;
using ops::Structural;
using tensor::Dims;
using tensor::DType;

BoundedResults ShapeForms::by_body() {
  const auto role = ops::role_of(def_.body);
  if (role == Structural::kOptimizationBarrier || role == Structural::kShardingConstraint ||
      role == Structural::kPropagationBarrier) {
    return one_to_one();
  }
  const bool is_pointwise =
      def_.rule == ops::pointwise_rule || std::holds_alternative<ops::ScalarMath>(ops::body_of(def_, view_));
  return is_pointwise ? pointwise() : std::nullopt;
}

BoundedResults ShapeForms::one_to_one() {
  if (op_.operands.size() != op_.results.size()) return std::nullopt;
  const std::vector<ValueId> made = writer_.create(op_.name, padded(), operand_types_, op_.attributes, op_.regions);
  std::vector<BoundedValue> out = in_;
  for (size_t i = 0; i < made.size(); ++i) out[i].padded = made[i];
  return out;
}

BoundedResults ShapeForms::pointwise() {
  if (op_.results.size() != 1) return std::nullopt;
  const auto rank = static_cast<size_t>(result_type().rank());
  const bool may_broadcast = def_.bounded == BoundedForm::kBroadcasting;
  Dims shape(rank, 0);
  std::vector<ValueId> sizes(rank, kNoValue);
  for (size_t i = 0; i < in_.size(); ++i) {
    if (dims(i).empty() && rank > 0) continue;
    if (dims(i).size() != rank) return std::nullopt;
    for (size_t d = 0; d < rank; ++d) {
      shape[d] = std::max(shape[d], dims(i)[d]);
      if (sizes[d] == kNoValue) sizes[d] = in_[i].sizes[d];
    }
  }
  std::vector<ValueId> operands;
  for (size_t i = 0; i < in_.size(); ++i) {
    if (dims(i).empty()) {
      operands.push_back(in_[i].padded);
      continue;
    }
    Dims wanted = shape;
    for (size_t d = 0; may_broadcast && d < rank; ++d) {
      if (dims(i)[d] == 1 && in_[i].sizes[d] == kNoValue) wanted[d] = 1;  // the op itself repeats it
    }
    operands.push_back(w_.resized(in_[i].padded, wanted));
  }
  const Type type = Type::of({result_type().dtype(), shape});
  return one(writer_.create(op_.name, std::move(operands), {type}, op_.attributes, op_.regions)[0], sizes);
}

BoundedResults ShapeForms::transpose() {
  std::vector<ValueId> sizes;
  for (const int64_t d : ints("permutation")) sizes.push_back(in_[0].sizes[static_cast<size_t>(d)]);
  return one(same_op(padded())[0], sizes);
}

BoundedResults ShapeForms::transform() { return of_batch(dims(0).size() - ints("fft_length").size()); }

BoundedResults ShapeForms::matrices() { return of_batch(dims(0).size() - 2); }

BoundedResults ShapeForms::lapack_call() { return of_batch(static_cast<size_t>(ops::lapack_batch_rank(view_))); }

BoundedResults ShapeForms::of_batch(size_t batch_rank) {
  Dims batch(batch_rank, 0);
  std::vector<ValueId> sizes;
  for (size_t i = 0; i < in_.size(); ++i) {
    if (dims(i).size() < batch_rank) return std::nullopt;  // the factor of an older call
  }
  for (size_t d = 0; d < batch_rank; ++d) {
    sizes.push_back(size_among(in_.size(), d));
    for (size_t i = 0; i < in_.size(); ++i) batch[d] = std::max(batch[d], dims(i)[d]);
  }
  std::vector<ValueId> operands;
  for (size_t i = 0; i < in_.size(); ++i) {
    for (size_t d = batch_rank; d < dims(i).size(); ++d) {
      if (in_[i].sizes[d] != kNoValue) return std::nullopt;
    }
    Dims shape = dims(i);
    std::copy(batch.begin(), batch.end(), shape.begin());
    operands.push_back(w_.resized(w_.zeroed(in_[i], all_dims(i)), shape));
  }
  std::vector<Type> types = result_types();
  for (Type& type : types) {
    for (size_t d = batch_rank; d < type.dims().size(); ++d) {
      if (is_dynamic(type, d)) return std::nullopt;
    }
    std::copy(batch.begin(), batch.end(), type.tensor.dims.begin());
    type.bounds.clear();
  }
  std::vector<BoundedValue> out;
  for (const ValueId id : writer_.create(op_.name, std::move(operands), types, op_.attributes)) {
    out.push_back(w_.whole(id));
    std::copy(sizes.begin(), sizes.end(), out.back().sizes.begin());
  }
  return out;
}

BoundedResults ShapeForms::broadcast() {
  const std::vector<int64_t> into = ints("broadcast_dimensions");
  const Type& type = result_type();
  Dims shape;
  std::vector<ValueId> sizes(static_cast<size_t>(type.rank()), kNoValue);
  for (size_t d = 0; d < sizes.size(); ++d) {
    const auto from = std::find(into.begin(), into.end(), static_cast<int64_t>(d));
    if (from == into.end()) {
      shape.push_back(bound_of(type, d));
      continue;
    }
    const auto i = static_cast<size_t>(from - into.begin());
    sizes[d] = in_[0].sizes[i];
    shape.push_back(sizes[d] == kNoValue && dims(0)[i] == 1 ? bound_of(type, d, 1) : dims(0)[i]);
  }
  return one(writer_.broadcast(in_[0].padded, shape, into), sizes);
}

BoundedResults ShapeForms::get_size() {
  const auto d = static_cast<size_t>(ir::int_or(op_.attributes, "dimension", 0));
  return one(w_.size(in_[0], d), {});
}

BoundedResults ShapeForms::set_size() {
  const auto d = static_cast<size_t>(ir::int_or(op_.attributes, "dimension", 0));
  BoundedValue out = in_[0];
  const int64_t all = dims(0)[d];
  const auto known = writer_.known(in_[1].padded);
  if (known && (*known)[0] == all) {
    out.sizes[d] = kNoValue;
    return std::vector{out};
  }
  if (!is_dynamic(result_type(), d)) {
    ir::fail("unsupported_type", op_.location,
             fmt::format("set_dimension_size with a size that depends on data gives a dimension of {} elements by its "
                         "type: write '?' and a bound, such as tensor<?xf32, #stablehlo.bounds<{}>>",
                         result_type().dims()[d], all));
  }
  const int64_t bound = std::min(bound_of(result_type(), d, all), all);
  out.sizes[d] = w_.size_of_number(in_[1].padded, bound);
  Dims shape = dims(0);
  shape[d] = bound;
  out.padded = w_.resized(out.padded, shape);
  return std::vector{out};
}

BoundedResults ShapeForms::pad_to_static() {
  const size_t rank = dims(0).size();
  if (in_.size() != 1 || op_.results.size() != rank + 1) return std::nullopt;
  std::vector<BoundedValue> out{w_.whole(w_.zeroed(in_[0], all_dims(0)))};
  for (size_t d = 0; d < rank; ++d) out.push_back({w_.size(in_[0], d), {}});
  return out;
}

BoundedResults ShapeForms::slice_to_dynamic() {
  BoundedValue out = in_[0];
  if (in_.size() != out.sizes.size() + 1 || op_.results.size() != 1) return std::nullopt;
  for (size_t d = 0; d < out.sizes.size(); ++d) {
    if (!is_dynamic(result_type(), d)) continue;
    out.sizes[d] = w_.size_of_number(in_[d + 1].padded, dims(0)[d]);
  }
  return std::vector{out};
}

std::vector<ValueId> ShapeForms::sizes_from(size_t shape, Dims& bounds) {
  std::vector<ValueId> sizes;
  const auto known = writer_.known(in_[shape].padded);
  for (size_t d = 0; d < static_cast<size_t>(result_type().rank()); ++d) {
    if (known) {
      if ((*known)[d] < 0) {
        ir::fail("invalid_program", op_.location,
                 fmt::format("'{}': dimension {} would have {} elements", op_.name, d, (*known)[d]));
      }
      bounds.push_back((*known)[d]);
      sizes.push_back(kNoValue);
      continue;
    }
    bounds.push_back(bound_of(result_type(), d));
    const bool is_open = is_dynamic(result_type(), d);
    sizes.push_back(is_open ? w_.clamped(w_.element(in_[shape].padded, static_cast<int64_t>(d)), bounds[d]) : kNoValue);
  }
  return sizes;
}

BoundedResults ShapeForms::dynamic_iota() {
  Dims bounds;
  std::vector<ValueId> sizes = sizes_from(0, bounds);
  return one(writer_.add("stablehlo.iota", {}, op_.attributes, Type::of({result_type().dtype(), bounds})),
             std::move(sizes));
}

BoundedResults ShapeForms::dynamic_reshape() {
  Dims bounds;
  std::vector<ValueId> sizes = sizes_from(1, bounds);
  return std::vector{w_.reshaped(in_[0], bounds, std::move(sizes))};
}

BoundedResults ShapeForms::dynamic_broadcast() {
  const std::vector<int64_t> into = ints("broadcast_dimensions");
  const std::vector<int64_t> never = ir::ints_or(op_.attributes, "known_nonexpanding_dimensions", {});
  Dims bounds;
  std::vector<ValueId> sizes = sizes_from(1, bounds);
  ValueId value = in_[0].padded;
  Dims fitting = dims(0);
  std::vector<std::pair<ValueId, size_t>> may_expand;
  for (size_t i = 0; i < into.size(); ++i) {
    const int64_t wanted = bounds[static_cast<size_t>(into[i])];
    const bool has_size = in_[0].sizes[i] != kNoValue;
    if (!has_size && fitting[i] == 1) continue;
    if (has_size && !has(never, static_cast<int64_t>(i)))
      may_expand.emplace_back(w_.compare("EQ", in_[0].sizes[i], w_.number(1)), i);
    fitting[i] = wanted;
  }
  value = w_.resized(value, fitting);
  for (const auto& [is_one, i] : may_expand) {
    if (fitting[i] <= 1) continue;
    // The first element in all places, where there is one alone.
    const ValueId first = w_.take(value, i, w_.spread(w_.number(0), {fitting[i]}));
    value = w_.select(w_.spread(is_one, fitting), first, value);
  }
  return one(writer_.broadcast(value, bounds, into), std::move(sizes));
}

BoundedResults ShapeForms::reshape() {
  const Type& type = result_type();
  const auto rank = static_cast<size_t>(type.rank());
  std::vector<ValueId> sizes(rank, kNoValue);
  Dims bounds;
  int64_t fixed = 1;
  std::vector<size_t> open;
  for (size_t d = 0; d < rank; ++d) {
    if (is_dynamic(type, d)) {
      open.push_back(d);
    } else {
      fixed *= type.dims()[d];
    }
  }
  if (open.size() == 1) {
    ValueId total = w_.number(1);
    int64_t all = 1;
    for (size_t d = 0; d < dims(0).size(); ++d) {
      total = w_.binary("multiply", total, w_.size(in_[0], d));
      all *= dims(0)[d];
    }
    fixed = std::max<int64_t>(fixed, 1);
    for (size_t d = 0; d < rank; ++d) bounds.push_back(d == open[0] ? bound_of(type, d, all / fixed) : type.dims()[d]);
    sizes[open[0]] = w_.clamped(w_.binary("divide", total, w_.number(fixed)), bounds[open[0]]);
    return std::vector{w_.reshaped(in_[0], bounds, sizes)};
  }
  for (size_t d = 0; d < rank; ++d) bounds.push_back(bound_of(type, d));
  const auto groups = reshape_groups(dims(0), bounds);
  if (!groups) return std::nullopt;
  for (const ReshapeGroup& group : *groups) {
    ValueId total = w_.number(1);
    for (size_t d = group.from; d < group.from_end; ++d) total = w_.binary("multiply", total, w_.size(in_[0], d));
    int64_t others = 1, of_group = 0;
    size_t which = 0;
    for (size_t d = group.to; d < group.to_end; ++d) {
      if (is_dynamic(type, d)) {
        ++of_group;
        which = d;
      } else {
        others *= bounds[d];
      }
    }
    if (of_group > 1) return std::nullopt;  // nothing says which size is which
    if (of_group == 1) sizes[which] = w_.binary("divide", total, w_.number(std::max<int64_t>(others, 1)));
  }
  return std::vector{w_.reshaped(in_[0], bounds, sizes)};
}

}  // namespace meshd::program
