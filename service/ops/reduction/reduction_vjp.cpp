#include "service/ops/reduction/reduction_vjp.h"

#include <algorithm>

#include "service/kernels/elementwise/scalar_op.h"
#include "service/ops/checks.h"
#include "service/ops/reduction/top_k_rules.h"
#include "service/ops/reduction/windows.h"
#include "service/ops/rewrites/lifted_region.h"

namespace meshd::ops {
namespace {

using kernels::ScalarOp;
using tensor::Dims;
using Ints = std::vector<int64_t>;

// A result of a reduction repeated along the dimensions that it lacks.
Term repeated(Term reduced, const Dims& dims, const Ints& reduced_dims) {
  Ints into;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (!contains(reduced_dims, static_cast<int64_t>(d))) into.push_back(static_cast<int64_t>(d));
  }
  return {reduced.writer, reduced.writer->broadcast(reduced.id, dims, into)};
}

Ints reduced_dims_of(const Vjp& v) { return ir::ints(attributes_of(v.view), "dimensions"); }

Term ones_where(Term where, Term like) { return select(where, like.number(1), like.number(0)); }

Term vjp_extremes(const Vjp& v, size_t i) {
  const Ints dims = reduced_dims_of(v);
  const Term is_extreme = ones_where(compare(v.x(i), "EQ", repeated(v.y(i), v.x(i).dims(), dims)), v.x(i));
  return is_extreme * repeated(v.ct(i) / summed_over(is_extreme, dims), v.x(i).dims(), dims);
}

// Products of all elements in front of each along dimension 1 (behind it: `after`), without itself.
Term exclusive_products(Term rows, bool after) {
  Writer& writer = *rows.writer;
  const int64_t length = rows.dims()[1];
  const ir::Type scalar = with_dims(rows.type(), {});
  std::vector<ir::Region> regions;
  regions.push_back(writer.reducer("stablehlo.multiply", scalar));
  // A window of as many elements as a row, of which padding leaves those on one side.
  const Ints padding = after ? Ints{0, 0, -1, length} : Ints{0, 0, length, -1};
  return {&writer, writer
                       .add("stablehlo.reduce_window", {rows.id, writer.splat(scalar, 1)},
                            {{"window_dimensions", ir::int_array_attr({1, length})},
                             {"padding", ir::Attribute{ir::dense_integers_attr(padding, {2, 2})}}},
                            {}, std::move(regions))
                       .at(0)};
}

// The product of the others, without a division: elements may be zero.
Term vjp_products(const Vjp& v, size_t i) {
  const Ints dims = reduced_dims_of(v);
  const Dims& shape = v.x(i).dims();
  Ints order;
  int64_t rows = 1;
  int64_t length = 1;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (contains(dims, static_cast<int64_t>(d))) continue;
    order.push_back(static_cast<int64_t>(d));
    rows *= shape[d];
  }
  for (size_t d = 0; d < shape.size(); ++d) {
    if (!contains(dims, static_cast<int64_t>(d))) continue;
    order.push_back(static_cast<int64_t>(d));
    length *= shape[d];
  }
  if (rows * length == 0) return v.x(i).number(0);
  const Term by_rows = v.value(v.writer.transpose(v.x(i).id, order));
  const Term flat = v.value(v.writer.reshape(by_rows.id, {rows, length}));
  const Term others = exclusive_products(flat, false) * exclusive_products(flat, true);
  Ints back(order.size());
  for (size_t d = 0; d < order.size(); ++d) back[static_cast<size_t>(order[d])] = static_cast<int64_t>(d);
  const Term shaped = v.value(v.writer.reshape(others.id, by_rows.dims()));
  return repeated(v.ct(i), shape, dims) * v.value(v.writer.transpose(shaped.id, back));
}

[[noreturn]] void refuse(const Vjp& v, const std::string& which) {
  reject(v.view, "unsupported_op", "'" + v.op.name + "' has a derivative where its body is " + which);
}

// Each element gets the cotangents of the windows that it is in: a sum over windows of the cotangents, which stand as
// far apart as the windows do.
Term vjp_window_sum(const Vjp& v, const std::vector<kernels::WindowDim>& windows, size_t i) {
  const size_t rank = windows.size();
  Ints low(rank), high(rank), interior(rank), window(rank), dilation(rank), start(rank, 0), limit(rank), stride(rank);
  for (size_t d = 0; d < rank; ++d) {
    const kernels::WindowDim& dim = windows[d];
    const int64_t places = dilated_size(dim.size, dim.base_dilation);
    low[d] = dim.span() - 1 - dim.pad_low;
    interior[d] = dim.stride - 1;
    high[d] = places + dim.span() - 1 - low[d] - dilated_size(dim.output_size(), dim.stride);
    window[d] = dim.window;
    dilation[d] = dim.window_dilation;
    limit[d] = places;
    stride[d] = dim.base_dilation;
  }
  const ir::Type scalar = with_dims(v.ct(i).type(), {});
  std::vector<ir::Region> regions;
  regions.push_back(v.writer.reducer("stablehlo.add", scalar));
  const ir::ValueId sums =
      v.writer
          .add("stablehlo.reduce_window", {padded(v.ct(i), low, high, interior).id, v.writer.splat(scalar, 0)},
               {{"window_dimensions", ir::int_array_attr(window)}, {"window_dilations", ir::int_array_attr(dilation)}},
               {}, std::move(regions))
          .at(0);
  return v.value(v.writer.slice(sums, start, limit, stride));
}

// Those of the op's attributes that it has.
ir::AttributeList attributes_named(const Vjp& v, std::initializer_list<std::string_view> names) {
  ir::AttributeList out;
  for (const std::string_view name : names) {
    if (const ir::Attribute* attribute = ir::find(attributes_of(v.view), name))
      out.push_back({std::string(name), *attribute});
  }
  return out;
}

Term vjp_window_extreme(const Vjp& v, const std::vector<kernels::WindowDim>& windows, size_t i, bool is_maximum) {
  Ints padding;
  for (const kernels::WindowDim& dim : windows) {
    if (dim.base_dilation != 1 || dim.window_dilation != 1)
      refuse(v, "a maximum or minimum of windows without dilation");
    padding.insert(padding.end(), {dim.pad_low, dim.pad_high});
  }
  ir::AttributeList attributes = attributes_named(v, {"window_dimensions", "window_strides"});
  attributes.push_back(
      {"padding", ir::Attribute{ir::dense_integers_attr(padding, {static_cast<int64_t>(windows.size()), 2})}});
  const ir::Type scalar = with_dims(v.x(i).type(), {});
  std::vector<ir::Region> regions;
  regions.push_back(v.writer.region({scalar, scalar}, [&](const auto& arguments) {
    const Term chosen = compare(v.value(arguments[0]), is_maximum ? "GE" : "LE", v.value(arguments[1]));
    v.writer.create("stablehlo.return", {chosen.id}, {});
  }));
  regions.push_back(v.writer.reducer("stablehlo.add", scalar));
  return v.value(v.writer
                     .add("stablehlo.select_and_scatter", {v.x(i).id, v.ct(i).id, v.writer.splat(scalar, 0)},
                          std::move(attributes), {}, std::move(regions))
                     .at(0));
}

// The op's first region with two more arguments, which it does not read.
ir::Region with_place_arguments(const Vjp& v, const ir::Type& place) {
  Writer& writer = v.writer;
  ir::Region out;
  std::unordered_map<ir::ValueId, ir::ValueId> fresh;
  const auto renew = [&](ir::ValueId id) { return fresh[id] = writer.function().add_value(ir::Type(writer.type(id))); };
  for (const ir::ValueId id : v.op.regions[0].arguments) out.arguments.push_back(renew(id));
  for (int i = 0; i < 2; ++i) out.arguments.push_back(writer.function().add_value(place));
  out.ops = v.op.regions[0].ops;
  for (ir::Op& op : out.ops) {
    for (const ir::ValueId id : op.results) renew(id);
    ir::rename_values(op, fresh);
  }
  return out;
}

// The cotangent of operand `i`, whose elements at `places` along dimension `dim` the op gives.
Term from_places(const Vjp& v, size_t i, int64_t dim, ir::ValueId places) {
  Ints batch;
  for (int64_t d = 0; d < v.x(i).rank(); ++d) {
    if (d != dim) batch.push_back(d);
  }
  std::vector<ir::Region> regions;
  regions.push_back(v.writer.reducer("stablehlo.add", with_dims(v.ct(i).type(), {})));
  ir::AttributeList numbers = {{"input_batching_dims", ir::int_array_attr(batch)},
                               {"scatter_indices_batching_dims", ir::int_array_attr(batch)},
                               {"update_window_dims", ir::int_array_attr({})},
                               {"inserted_window_dims", ir::int_array_attr({dim})},
                               {"scatter_dims_to_operand_dims", ir::int_array_attr({dim})},
                               {"index_vector_dim", ir::integer_attr(v.x(i).rank())}};
  return v.value(
      v.writer
          .add("stablehlo.scatter", {v.x(i).number(0).id, places, v.ct(i).id},
               {{"scatter_dimension_numbers", ir::Attribute{ir::DictAttr{"stablehlo.scatter", std::move(numbers)}}}},
               {}, std::move(regions))
          .at(0));
}

}  // namespace

Contributions vjp_reduce(const Vjp& v) {
  const size_t count = input_count(v.view);
  const std::vector<ScalarOp> body = combining_ops(v.view, count);
  if (body.empty()) refuse(v, "one of add, maximum, minimum and multiply");
  Contributions out(2 * count);
  for (size_t i = 0; i < count; ++i) {
    if (v.cotangents[i] == ir::kNoValue) continue;
    switch (body[i]) {
      case ScalarOp::kAdd:
        out[i] = converted(repeated(v.ct(i), v.x(i).dims(), reduced_dims_of(v)), v.x(i).dtype());
        if (v.wanted[count + i]) out[count + i] = sum_of_all(v.ct(i));
        break;
      case ScalarOp::kMaximum:
      case ScalarOp::kMinimum:
        out[i] = vjp_extremes(v, i);
        break;
      case ScalarOp::kMultiply:
        out[i] = vjp_products(v, i);
        break;
      default:
        refuse(v, "one of add, maximum, minimum and multiply");
    }
  }
  return out;
}

Contributions vjp_reduce_window(const Vjp& v) {
  const size_t count = input_count(v.view);
  const std::vector<ScalarOp> body = combining_ops(v.view, count);
  const std::vector<kernels::WindowDim> windows = reduce_window_dims(v.view);
  Contributions out(2 * count);
  for (size_t i = 0; i < count; ++i) {
    if (v.cotangents[i] == ir::kNoValue) continue;
    const ScalarOp op = body.empty() ? ScalarOp::kCopy : body[i];
    if (op == ScalarOp::kAdd) {
      out[i] = vjp_window_sum(v, windows, i);
    } else if (op == ScalarOp::kMaximum || op == ScalarOp::kMinimum) {
      out[i] = vjp_window_extreme(v, windows, i, op == ScalarOp::kMaximum);
    } else {
      refuse(v, "add, maximum or minimum");
    }
  }
  return out;
}

Contributions vjp_select_and_scatter(const Vjp& v) {
  const ir::Type scalar = with_dims(v.x().type(), {});
  OpView scatter = v.view;
  scatter.regions = scatter.regions.subspan(1);
  if (!combines_by(scatter, 1, {ScalarOp::kAdd})) refuse(v, "add");
  // Windows of an element of the operand, its cotangent, and whether it is one: padding is none.
  const ir::Type boolean = ir::Type::of({tensor::DType::kBool, {}});
  const ir::Region& selects = v.op.regions[0];
  std::vector<ir::Region> regions;
  regions.push_back(v.writer.region(
      {scalar, scalar, boolean, scalar, scalar, boolean}, [&](const std::vector<ir::ValueId>& arguments) {
        const auto at = [&](size_t i) { return v.value(arguments[i]); };
        const Term selected = v.value(lifted_region(selects, {arguments[0], arguments[3]}, {}, v.writer).at(0));
        const Term neither = apply("stablehlo.or", selected, at(5).apply("stablehlo.not"));
        const Term first = apply("stablehlo.and", at(2), neither);
        v.writer.create(
            "stablehlo.return",
            {select(first, at(0), at(3)).id, select(first, at(1), at(4)).id, apply("stablehlo.or", at(2), at(5)).id},
            {});
      }));
  const ir::ValueId zero = v.writer.splat(scalar, 0);
  const ir::ValueId is_element = v.writer.splat(with_dims(boolean, v.x().dims()), 1);
  const std::vector<ir::ValueId> windows =
      v.writer.add("stablehlo.reduce_window", {v.x().id, v.ct().id, is_element, zero, zero, v.writer.splat(boolean, 0)},
                   attributes_named(v, {"window_dimensions", "window_strides", "padding"}), {}, std::move(regions));
  Contributions out(3);
  out[1] = v.value(windows[1]);
  if (v.wanted[2]) out[2] = sum_of_all(v.ct());
  return out;
}

Contributions vjp_sort(const Vjp& v) {
  const size_t count = v.op.operands.size();
  const ir::Type& first = v.view.operands[0];
  int64_t along = ir::int_or(attributes_of(v.view), "dimension", -1);
  if (along < 0) along += first.rank();
  const ir::Type places = ir::Type::of({tensor::DType::kInt32, first.dims()});
  const ir::ValueId iota = v.writer.iota(places.tensor, along);
  const ir::AttributeList order = {{"dimension", ir::integer_attr(along)},
                                   {"is_stable", ir::Attribute{ir::IntegerAttr{1, "i1"}}}};
  std::vector<ir::ValueId> operands = v.op.operands;
  operands.push_back(iota);
  std::vector<ir::Region> by_value;
  by_value.push_back(with_place_arguments(v, with_dims(places, {})));
  const ir::ValueId from = v.writer.add("stablehlo.sort", operands, order, {}, std::move(by_value)).back();

  std::vector<ir::ValueId> moved = {from};
  std::vector<ir::Type> scalars(2, with_dims(places, {}));
  std::vector<size_t> which;
  for (size_t i = 0; i < count; ++i) {
    if (v.cotangents[i] == ir::kNoValue) continue;
    which.push_back(i);
    moved.push_back(v.cotangents[i]);
    scalars.insert(scalars.end(), 2, with_dims(v.view.results[i], {}));
  }
  std::vector<ir::Region> by_place;
  by_place.push_back(v.writer.region(scalars, [&](const auto& arguments) {
    const Term before = compare(v.value(arguments[0]), "LT", v.value(arguments[1]));
    v.writer.create("stablehlo.return", {before.id}, {});
  }));
  const std::vector<ir::ValueId> back = v.writer.add("stablehlo.sort", moved, order, {}, std::move(by_place));
  Contributions out(count);
  for (size_t k = 0; k < which.size(); ++k) out[which[k]] = v.value(back[k + 1]);
  return out;
}

Contributions vjp_top_k(const Vjp& v) { return {from_places(v, 0, v.x().rank() - 1, v.op.results[1])}; }

Contributions vjp_approx_top_k(const Vjp& v) {
  const size_t count = v.op.results.size();
  if (v.op.regions.size() != 1) refuse(v, "one of its called computations");
  const auto dim = static_cast<int64_t>(approx_reduced_dim(v.view));
  const ir::Type places = ir::Type::of({tensor::DType::kInt32, v.x().dims()});
  std::vector<ir::ValueId> operands(v.op.operands.begin(), v.op.operands.end());
  operands.insert(operands.begin() + static_cast<std::ptrdiff_t>(count), v.writer.iota(places.tensor, dim));
  operands.push_back(v.writer.splat(with_dims(places, {}), -1));
  std::vector<ir::Type> types(v.view.results.begin(), v.view.results.end());
  types.push_back(with_dims(places, types[0].dims()));
  std::vector<ir::Region> regions;
  regions.push_back(with_place_arguments(v, with_dims(places, {})));
  const ir::ValueId from =
      v.writer
          .create(v.op.name, operands, types, attributes_named(v, {"call_target_name", "mhlo.backend_config"}),
                  std::move(regions))
          .back();
  Contributions out(v.op.operands.size());
  for (size_t i = 0; i < count; ++i) {
    if (v.cotangents[i] != ir::kNoValue && v.wanted[i]) out[i] = from_places(v, i, dim, from);
  }
  return out;
}

namespace {

// The feature's values repeated over the operand.
Term by_feature(const Vjp& v, Term value) {
  const int64_t feature = ir::int_or(attributes_of(v.view), "feature_index", 0);
  return v.value(v.writer.broadcast(value.id, v.x().dims(), {feature}));
}

Term sum_by_feature(const Vjp& v, Term value) {
  const int64_t feature = ir::int_or(attributes_of(v.view), "feature_index", 0);
  Ints others;
  for (int64_t d = 0; d < v.x().rank(); ++d) {
    if (d != feature) others.push_back(d);
  }
  return summed_over(value, others);
}

}  // namespace

Contributions vjp_batch_norm_training(const Vjp& v) {
  const std::vector<ir::ValueId> made =
      v.writer.add("stablehlo.batch_norm_grad", {v.x(0).id, v.x(1).id, v.op.results[1], v.op.results[2], v.ct(0).id},
                   attributes_of(v.view), {}, {});
  const double count = static_cast<double>(tensor::element_count(v.x().dims())) /
                       static_cast<double>(std::max<int64_t>(tensor::element_count(v.y(1).dims()), 1));
  Term operand = v.value(made[0]);
  if (v.cotangents[1] != ir::kNoValue) operand = operand + by_feature(v, v.ct(1) / count);
  if (v.cotangents[2] != ir::kNoValue)
    operand = operand + by_feature(v, v.ct(2) * v.ct(2).number(2.0 / count)) * (v.x() - by_feature(v, v.y(1)));
  return {operand, v.value(made[1]), v.value(made[2])};
}

Contributions vjp_batch_norm_inference(const Vjp& v) {
  // operand, scale, offset, mean, variance
  const Term distance = v.x(0) - by_feature(v, v.x(3));
  const Term inverse =
      (v.x(4) + ir::find(attributes_of(v.view), "epsilon")->as<ir::FloatAttr>()->value).apply("stablehlo.rsqrt");
  const Term along = sum_by_feature(v, v.ct() * distance);
  const Term operand = v.ct() * by_feature(v, v.x(1) * inverse);
  const Term variance = -0.5 * (along * v.x(1) * inverse * inverse * inverse);
  return {operand, along * inverse, sum_by_feature(v, v.ct()), -sum_by_feature(v, operand), variance};
}

}  // namespace meshd::ops
