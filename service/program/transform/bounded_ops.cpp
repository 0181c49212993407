#include "service/program/transform/bounded_ops.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <utility>
#include <variant>

#include "service/core/error.h"
#include "service/ops/linalg/convolution_dims.h"
#include "service/ops/linalg/dot.h"
#include "service/ops/movement/gather_scatter.h"
#include "service/ops/op_def.h"
#include "service/ops/pointwise/pointwise.h"
#include "service/ops/scalar_facts.h"

namespace meshd::program {
namespace {

using ir::kNoValue;
using ir::Type;
using ir::ValueId;
using ops::BoundedForm;
using ops::Structural;
using tensor::Dims;
using tensor::DType;
using tensor::kDynamicDim;

using Results = std::optional<std::vector<BoundedValue>>;

bool has(const std::vector<int64_t>& list, int64_t value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

/// One op. A method for each kind.
class OpWriter {
 public:
  OpWriter(const ir::Op& op, const std::vector<BoundedValue>& operands, ops::Writer& writer)
      : op_(op),
        def_(ops::op(op.code)),
        in_(operands),
        writer_(writer),
        w_(writer),
        operand_types_(padded_types()),
        result_types_(writer.function().types_of(op.results)) {
    view_ = {operand_types_, result_types_, &op.attributes, op.regions, &writer.function(), &op.location};
    view_.op = &op;
  }

  Results write() {
    switch (def_.bounded) {
      case BoundedForm::kByBody:
        return by_body();
      case BoundedForm::kPointwise:
      case BoundedForm::kBroadcasting:
        return pointwise();
      case BoundedForm::kGetSize:
        return get_size();
      case BoundedForm::kSetSize:
        return set_size();
      case BoundedForm::kReduce:
        return reduce();
      case BoundedForm::kReduceWindow:
        return reduce_window();
      case BoundedForm::kDot:
        return dot(ops::dot_dims(view_));
      case BoundedForm::kDotGeneral:
        return dot(ops::dot_general_dims(view_));
      case BoundedForm::kConvolution:
        return convolution();
      case BoundedForm::kDynamicConvolution:
        return dynamic_convolution();
      case BoundedForm::kTranspose:
        return transpose();
      case BoundedForm::kBroadcast:
        return broadcast();
      case BoundedForm::kDynamicBroadcast:
        return dynamic_broadcast();
      case BoundedForm::kReshape:
        return reshape();
      case BoundedForm::kDynamicReshape:
        return dynamic_reshape();
      case BoundedForm::kDynamicIota:
        return dynamic_iota();
      case BoundedForm::kReverse:
        return reverse();
      case BoundedForm::kSlice:
        return slice();
      case BoundedForm::kRealDynamicSlice:
        return real_dynamic_slice();
      case BoundedForm::kDynamicSlice:
        return dynamic_slice();
      case BoundedForm::kDynamicUpdateSlice:
        return dynamic_update_slice();
      case BoundedForm::kConcatenate:
        return concatenate();
      case BoundedForm::kPad:
        return pad();
      case BoundedForm::kDynamicPad:
        return dynamic_pad();
      case BoundedForm::kGather:
        return gather();
      case BoundedForm::kDynamicGather:
        return dynamic_gather();
      case BoundedForm::kScatter:
        return scatter();
      case BoundedForm::kSort:
        return sort();
    }
    return std::nullopt;
  }

 private:
  std::vector<Type> padded_types() const {
    std::vector<Type> out;
    for (const BoundedValue& each : in_) out.push_back(writer_.type(each.padded));
    return out;
  }

  Results by_body() {
    const auto role = ops::role_of(def_.body);
    if (role == Structural::kOptimizationBarrier || role == Structural::kShardingConstraint ||
        role == Structural::kPropagationBarrier) {
      return one_to_one();
    }
    const bool is_pointwise =
        def_.rule == ops::pointwise_rule || std::holds_alternative<ops::ScalarMath>(ops::body_of(def_, view_));
    return is_pointwise ? pointwise() : std::nullopt;
  }

  [[nodiscard]] const Dims& dims(size_t operand) const { return operand_types_[operand].dims(); }
  [[nodiscard]] const Type& result_type(size_t i = 0) const { return result_types_[i]; }
  [[nodiscard]] std::vector<int64_t> ints(std::string_view name) const { return ir::ints(op_.attributes, name); }
  [[nodiscard]] std::vector<int64_t> ints(std::string_view name, size_t count, int64_t otherwise) const {
    return ir::ints_or(op_.attributes, name, std::vector<int64_t>(count, otherwise));
  }

  /// Dimension `d` of a result: what its type says, a bound or a size; `otherwise` where it has neither.
  int64_t bound_of(const Type& type, size_t d, int64_t otherwise = kDynamicDim) const {
    int64_t out = type.dims()[d];
    if (out == kDynamicDim && type.is_bounded()) out = type.bounds[d];
    if (out == kDynamicDim) out = otherwise;
    if (out != kDynamicDim) return out;
    ir::fail("unsupported_type", op_.location,
             fmt::format("dimension {} of what '{}' gives has a size that depends on data and no bound: give its type "
                         "one, such as tensor<?xf32, #stablehlo.bounds<8>>",
                         d, op_.name));
  }
  static bool is_dynamic(const Type& type, size_t d) { return type.dims()[d] == kDynamicDim; }

  /// The op on padded operands, its result types inferred.
  std::vector<ValueId> same_op(std::vector<ValueId> operands, const std::vector<Type>& types = {}) {
    return writer_.add(op_.name, std::move(operands), op_.attributes, types, op_.regions);
  }
  ValueId same_op_with(std::vector<ValueId> operands, std::string_view name, std::vector<int64_t> values) {
    ir::AttributeList attributes = op_.attributes;
    ir::set(attributes, name, ir::int_array_attr(std::move(values)));
    return writer_.add(op_.name, std::move(operands), std::move(attributes), {}, op_.regions).at(0);
  }
  std::vector<ValueId> padded() const {
    std::vector<ValueId> out;
    for (const BoundedValue& each : in_) out.push_back(each.padded);
    return out;
  }
  static Results one(ValueId padded, std::vector<ValueId> sizes) {
    return std::vector{BoundedValue{padded, std::move(sizes)}};
  }

  // Sizes pass along

  Results one_to_one() {
    if (op_.operands.size() != op_.results.size()) return std::nullopt;
    const std::vector<ValueId> made = writer_.create(op_.name, padded(), operand_types_, op_.attributes, op_.regions);
    std::vector<BoundedValue> out = in_;
    for (size_t i = 0; i < made.size(); ++i) out[i].padded = made[i];
    return out;
  }

  Results pointwise() {
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

  Results transpose() {
    std::vector<ValueId> sizes;
    for (const int64_t d : ints("permutation")) sizes.push_back(in_[0].sizes[static_cast<size_t>(d)]);
    return one(same_op(padded())[0], sizes);
  }

  Results broadcast() {
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

  // Sizes

  Results get_size() {
    const auto d = static_cast<size_t>(ir::int_or(op_.attributes, "dimension", 0));
    return one(w_.size(in_[0], d), {});
  }

  Results set_size() {
    const auto d = static_cast<size_t>(ir::int_or(op_.attributes, "dimension", 0));
    BoundedValue out = in_[0];
    const int64_t all = dims(0)[d];
    const auto known = writer_.known(in_[1].padded);
    if (known && (*known)[0] == all) {
      out.sizes[d] = kNoValue;
      return std::vector{out};
    }
    if (!is_dynamic(result_type(), d)) {
      ir::fail(
          "unsupported_type", op_.location,
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

  /// Sizes of a result whose shape is operand `shape`; `bounds` gets its padded dimensions.
  std::vector<ValueId> sizes_from(size_t shape, Dims& bounds) {
    std::vector<ValueId> sizes;
    const auto known = writer_.known(in_[shape].padded);
    for (size_t d = 0; d < static_cast<size_t>(result_type().rank()); ++d) {
      if (known) {
        bounds.push_back((*known)[d]);
        sizes.push_back(kNoValue);
        continue;
      }
      bounds.push_back(bound_of(result_type(), d));
      const bool is_open = is_dynamic(result_type(), d);
      sizes.push_back(is_open ? w_.clamped(w_.element(in_[shape].padded, static_cast<int64_t>(d)), bounds[d])
                              : kNoValue);
    }
    return sizes;
  }

  Results dynamic_iota() {
    Dims bounds;
    std::vector<ValueId> sizes = sizes_from(0, bounds);
    return one(writer_.add("stablehlo.iota", {}, op_.attributes, Type::of({result_type().dtype(), bounds})),
               std::move(sizes));
  }

  Results dynamic_reshape() {
    Dims bounds;
    std::vector<ValueId> sizes = sizes_from(1, bounds);
    return std::vector{w_.reshaped(in_[0], bounds, std::move(sizes))};
  }

  Results dynamic_broadcast() {
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

  Results reshape() {
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
      for (size_t d = 0; d < rank; ++d)
        bounds.push_back(d == open[0] ? bound_of(type, d, all / fixed) : type.dims()[d]);
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

  // Parts

  Results reverse() {
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

  Results slice() {
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

  Results real_dynamic_slice() {
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

  /// An index along dimension `d` of operand 0 such that `count` elements from there on are real.
  ValueId start_within(ValueId index, size_t d, ValueId count) {
    const DType dtype = w_.type(index).dtype();
    const ValueId wide = w_.convert(index, DType::kInt64);
    const ValueId room =
        w_.convert(w_.binary("maximum", w_.binary("subtract", w_.size(in_[0], d), count), w_.number(0)), DType::kInt64);
    const ValueId held = w_.binary("minimum", w_.binary("maximum", wide, w_.number(0, DType::kInt64)), room);
    return w_.convert(held, dtype);
  }

  Results dynamic_slice() {
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

  Results dynamic_update_slice() {
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

  [[nodiscard]] std::vector<int64_t> all_dims(size_t operand) const {
    std::vector<int64_t> out;
    for (size_t d = 0; d < dims(operand).size(); ++d) out.push_back(static_cast<int64_t>(d));
    return out;
  }

  Results concatenate() {
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

  Results pad() {
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

  /// Places from the first of `count` elements to behind the last where they stand `apart`.
  ValueId spaced_size(ValueId count, int64_t apart) {
    if (apart == 1) return count;
    const ValueId one = w_.number(1);
    const ValueId last = w_.binary("multiply", w_.binary("subtract", count, one), w_.number(apart));
    return w_.select(w_.compare("GT", count, w_.number(0)), w_.binary("add", last, one), w_.number(0));
  }

  Results dynamic_pad() {
    BoundedValue value = in_[0];
    for (size_t d = 0; d < dims(0).size(); ++d) {
      const auto at = static_cast<int64_t>(d);
      value = w_.padded_along(value, d, in_[1].padded, w_.element(in_[2].padded, at), w_.element(in_[3].padded, at),
                              w_.element(in_[4].padded, at), bound_of(result_type(), d));
      if (!is_dynamic(result_type(), d)) value.sizes[d] = kNoValue;
    }
    return std::vector{value};
  }

  // Reductions and products

  /// What changes no result with the initial value: zero or one for sums and products, else the initial value, which
  /// StableHLO lets an implementation use any number of times.
  ValueId filling(ops::Neutral neutral, ValueId init) {
    const Type type = w_.type(init);
    if (neutral == ops::Neutral::kZero) return writer_.zero(type.tensor);
    if (neutral == ops::Neutral::kOne) return writer_.splat(type, 1);
    return init;
  }

  Results reduce() {
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

  /// Inputs of one shape may have come to different bounds.
  std::vector<ValueId> unified(size_t count) {
    Dims shape = dims(0);
    for (size_t i = 1; i < count; ++i) {
      for (size_t d = 0; d < shape.size(); ++d) shape[d] = std::max(shape[d], dims(i)[d]);
    }
    std::vector<ValueId> out = padded();
    for (size_t i = 0; i < count; ++i) out[i] = w_.resized(out[i], shape);
    return out;
  }
  [[nodiscard]] ValueId size_among(size_t count, size_t d) const {
    for (size_t i = 0; i < count; ++i) {
      if (in_[i].sizes[d] != kNoValue) return in_[i].sizes[d];
    }
    return kNoValue;
  }
  void mask_inputs(std::vector<ValueId>& operands, size_t count, const std::vector<int64_t>& which) {
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

  /// How many windows there are over so many elements.
  ValueId window_count(ValueId count, int64_t window, int64_t stride, int64_t window_dilation, int64_t base_dilation,
                       ValueId padding) {
    const ValueId base = w_.binary("add", spaced_size(count, base_dilation), padding);
    const ValueId beyond = w_.binary("subtract", base, w_.number((window - 1) * window_dilation + 1));
    const ValueId places = w_.binary("add", w_.binary("divide", beyond, w_.number(stride)), w_.number(1));
    return w_.select(w_.compare("GE", beyond, w_.number(0)), places, w_.number(0));
  }

  Results reduce_window() {
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

  Results dot(const ops::DotDims& pairs) {
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

  std::vector<Type> infer(const std::vector<ValueId>& operands) {
    const std::vector<Type> types = writer_.function().types_of(operands);
    ops::OpView view = view_;
    view.operands = types;
    view.results = {};
    return def_.infer(view);
  }

  Results convolution() { return convolution_of(in_[0], op_.attributes); }

  Results convolution_of(const BoundedValue& lhs, const ir::AttributeList& attributes) {
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

  /// The input with its padding and holes first, as long as the result's bounds need it, then windows without either.
  Results dynamic_convolution() {
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
      const int64_t bound = std::max<int64_t>(places - 1, 0) * strides[i] + (window - 1) * apart[i] + 1;
      const auto at = static_cast<int64_t>(2 * i);
      lhs = w_.padded_along(lhs, static_cast<size_t>(roles.lhs.spatial[i]), zero, w_.element(flat, at),
                            w_.element(flat, at + 1), w_.number(base[i] - 1), bound);
    }
    ir::AttributeList attributes = op_.attributes;
    std::erase_if(attributes, [](const ir::NamedAttribute& entry) { return entry.name == "padding"; });
    ir::set(attributes, "lhs_dilation", ir::int_array_attr(std::vector<int64_t>(count, 1)));
    return convolution_of(lhs, attributes);
  }

  // Indices

  /// Index tuples held to where windows of these sizes are whole within what is real of the operand.
  ValueId held_indices(const ops::WindowDims& numbers, const std::vector<ValueId>& window_sizes) {
    const Type& indices = operand_types_[1];
    const bool has_tuples = numbers.index_vector_dim < indices.rank();
    std::vector<ValueId> highest;
    for (const int64_t each : numbers.index_map) {
      const auto d = static_cast<size_t>(each);
      const ValueId room =
          w_.binary("maximum", w_.binary("subtract", w_.size(in_[0], d), window_sizes[d]), w_.number(0));
      highest.push_back(writer_.reshape(w_.convert(room, DType::kInt64), {1}));
    }
    if (highest.empty()) return in_[1].padded;
    const ValueId line = highest.size() == 1
                             ? highest[0]
                             : writer_.add("stablehlo.concatenate", highest, {{"dimension", ir::integer_attr(0)}});
    const ValueId limits = has_tuples ? writer_.broadcast(line, indices.dims(), {numbers.index_vector_dim})
                                      : w_.spread(writer_.reshape(line, {}), indices.dims());
    const ValueId wide = w_.convert(in_[1].padded, DType::kInt64);
    const ValueId zeros = w_.spread(w_.number(0, DType::kInt64), indices.dims());
    return w_.convert(w_.binary("minimum", w_.binary("maximum", wide, zeros), limits), indices.dtype());
  }

  Results gather() {
    return gather_of(ints("slice_sizes"), std::vector<ValueId>(dims(0).size(), kNoValue), op_.attributes);
  }

  /// `real`: the windows' sizes where they depend on data.
  Results gather_of(const std::vector<int64_t>& windows, std::vector<ValueId> real, ir::AttributeList attributes) {
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
      if (real[d] != kNoValue) room[d] += windows[d];  // a window's padding may be beyond the operand's end
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

  Results dynamic_gather() {
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

  Results scatter() {
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
      for (size_t i = 0; i < own.size(); ++i)
        wanted[static_cast<size_t>(outer[i])] = shape[static_cast<size_t>(own[i])];
      operands[count + 1 + k] = w_.resized(operands[count + 1 + k], wanted);
    }
    if (indices.is_bounded()) {
      // Tuples of the padding point outside, where a scatter writes nothing.
      indices.padded = w_.convert(indices.padded, DType::kInt64);
      operands[count] = w_.masked(indices, all_of(shape), w_.number(-1, DType::kInt64));
    }
    std::vector<BoundedValue> out;
    const std::vector<ValueId> made = same_op(std::move(operands));
    for (size_t i = 0; i < made.size(); ++i) out.push_back({made[i], in_[i].sizes});
    return out;
  }

  static std::vector<int64_t> all_of(const Dims& shape) {
    std::vector<int64_t> out;
    for (size_t d = 0; d < shape.size(); ++d) out.push_back(static_cast<int64_t>(d));
    return out;
  }

  /// Padding is sorted behind everything else: its places are one more input, which the comparator looks at first.
  Results sort() {
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

  const ir::Op& op_;
  const ops::OpDef& def_;
  const std::vector<BoundedValue>& in_;
  ops::Writer& writer_;
  BoundedWriter w_;
  std::vector<Type> operand_types_;
  std::vector<Type> result_types_;
  ops::OpView view_;
};

}  // namespace

std::optional<std::vector<BoundedValue>> write_bounded(const ir::Op& op, const std::vector<BoundedValue>& operands,
                                                       ops::Writer& writer) {
  return OpWriter(op, operands, writer).write();
}

}  // namespace meshd::program
