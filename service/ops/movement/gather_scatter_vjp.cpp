// Reverse-mode derivatives of gather and scatter, which are each other's transposes but for what lies outside: a gather
// clamps its windows into the operand, a scatter skips such updates.
#include <algorithm>

#include "service/kernels/elementwise/scalar_op.h"
#include "service/ops/checks.h"
#include "service/ops/movement/gather_scatter.h"
#include "service/ops/rewrites/derivative.h"

namespace meshd::ops {
namespace {

using kernels::ScalarOp;
using tensor::Dims;
using Ints = std::vector<int64_t>;

Term scattered(const WindowDims& dims, Term into, Term indices, Term updates, bool replaces) {
  Writer& writer = *into.writer;
  const ir::Type scalar = with_dims(into.type(), {});
  std::vector<ir::Region> regions;
  if (replaces) {
    regions.push_back(writer.region(
        {scalar, scalar}, [&](const auto& arguments) { writer.create("stablehlo.return", {arguments[1]}, {}); }));
  } else {
    regions.push_back(writer.reducer("stablehlo.add", scalar));
  }
  return {&writer, writer
                       .add("stablehlo.scatter", {into.id, indices.id, updates.id}, scatter_attributes(dims), {},
                            std::move(regions))
                       .at(0)};
}

// What the components of the index tuples may be at most so that windows of these sizes lie inside, in the shape of the
// indices.
Term most_indices(const WindowDims& dims, const Dims& operand, const Ints& sizes, Term indices) {
  Writer& writer = *indices.writer;
  Ints most;
  for (const int64_t d : dims.index_map)
    most.push_back(operand[static_cast<size_t>(d)] - sizes[static_cast<size_t>(d)]);
  const bool has_vector = dims.index_vector_dim < indices.rank();
  const auto count = static_cast<int64_t>(most.size());
  const Term values{&writer, writer.constant(ir::dense_integers_attr(most, has_vector ? Dims{count} : Dims{}))};
  const Term same = converted(values, indices.dtype());
  return {&writer, writer.broadcast(same.id, indices.dims(), has_vector ? Ints{dims.index_vector_dim} : Ints{})};
}

Term clamped_to(Term indices, Term most) {
  return {indices.writer, indices.writer->add("stablehlo.clamp", {indices.number(0).id, indices.id, most.id})};
}

// Sizes of the windows of a scatter, by dimension of the operand.
Ints window_extents(const WindowDims& dims, const Dims& operand, const Dims& updates) {
  Ints sizes(operand.size(), 1);
  const Ints windows = window_dims(dims, static_cast<int64_t>(operand.size()));
  for (size_t i = 0; i < windows.size(); ++i)
    sizes[static_cast<size_t>(windows[i])] = updates[static_cast<size_t>(dims.offset[i])];
  return sizes;
}

// For each element of `like` (the updates), whether its window lies inside of the operand.
Term is_inside(const WindowDims& dims, Term indices, Term most, Term like) {
  Writer& writer = *indices.writer;
  Term within = compare(indices, "EQ", clamped_to(indices, most));
  if (dims.index_vector_dim < indices.rank()) {
    const ir::Type boolean = ir::Type::of({tensor::DType::kBool, {}});
    std::vector<ir::Region> regions;
    regions.push_back(writer.reducer("stablehlo.and", boolean));
    within = {&writer, writer
                           .add("stablehlo.reduce", {within.id, writer.splat(boolean, 1)},
                                {{"dimensions", ir::int_array_attr({dims.index_vector_dim})}}, {}, std::move(regions))
                           .at(0)};
  }
  return {&writer, writer.broadcast(within.id, like.dims(), batch_dims(dims, like.rank()))};
}

// 1, 2, 3, ... in the shape of `like`.
Term numbers_of(Term like) {
  Writer& writer = *like.writer;
  const Dims& dims = like.dims();
  const int64_t count = tensor::element_count(dims);
  const Term iota{&writer, writer.add("stablehlo.iota", {}, {{"iota_dimension", ir::integer_attr(0)}},
                                      ir::Type::of({tensor::DType::kInt64, {count}}))};
  return {&writer, writer.reshape((iota + 1.0).id, dims)};
}

// One input of a scatter with its updates, and how large their windows are.
struct ScatterPart {
  Term updates;
  Dims operand;
  Ints sizes;
};

ScatterPart part_of(const Vjp& v, const WindowDims& dims, size_t i) {
  const Term updates = v.x(scatter_count(v.view) + 1 + i);
  const Dims operand = v.x(i).dims();
  return {updates, operand, window_extents(dims, operand, updates.dims())};
}

Term gathered(const WindowDims& dims, Term from, Term indices, const Ints& sizes) {
  return {from.writer, from.writer->add("stablehlo.gather", {from.id, indices.id}, gather_attributes(dims, sizes))};
}

Contributions vjp_adding_scatter(const Vjp& v, const WindowDims& dims) {
  const size_t count = scatter_count(v.view);
  const Term indices = v.x(count);
  Contributions out(v.op.operands.size());
  for (size_t i = 0; i < count; ++i) {
    const ScatterPart part = part_of(v, dims, i);
    const Term most = most_indices(dims, part.operand, part.sizes, indices);
    out[i] = v.ct(i);
    out[count + 1 + i] =
        masked(is_inside(dims, indices, most, part.updates), gathered(dims, v.ct(i), indices, part.sizes));
  }
  return out;
}

// Which update an element has in the end is not told for indices that occur twice: numbers are scattered in the same
// way, and each update looks whether its own number is there.
Contributions vjp_replacing_scatter(const Vjp& v, const WindowDims& dims) {
  const size_t count = scatter_count(v.view);
  const Term indices = v.x(count);
  Contributions out(v.op.operands.size());
  for (size_t i = 0; i < count; ++i) {
    const ScatterPart part = part_of(v, dims, i);
    const Term numbers = numbers_of(part.updates);
    const Term none{&v.writer, v.writer.splat(ir::Type::of({tensor::DType::kInt64, part.operand}), 0)};
    const Term winners = scattered(dims, none, indices, numbers, true);
    out[i] = masked(compare(winners, "EQ", none), v.ct(i));
    out[count + 1 + i] = masked(compare(gathered(dims, winners, indices, part.sizes), "EQ", numbers),
                                gathered(dims, v.ct(i), indices, part.sizes));
  }
  return out;
}

// As JAX: an element's cotangent goes in equal parts to what has its value in the end, the operand and updates. With
// G, the gather at the indices, and S, the scatter that adds:
// tangent = operand's + S(G(operand's) * of_operand + updates' * of_updates)
Contributions vjp_extreme_scatter(const Vjp& v, const WindowDims& dims) {
  const size_t count = scatter_count(v.view);
  const Term indices = v.x(count);
  Contributions out(v.op.operands.size());
  for (size_t i = 0; i < count; ++i) {
    const ScatterPart part = part_of(v, dims, i);
    const Term zeros = v.x(i).number(0);
    const auto at_indices = [&](Term from) { return gathered(dims, from, indices, part.sizes); };
    const auto counted = [&](Term updates) { return at_indices(scattered(dims, zeros, indices, updates, false)); };
    const Term target = at_indices(v.y(i));
    const Term is_target = compare(part.updates, "EQ", target);
    const Term is_kept = compare(at_indices(v.x(i)), "EQ", target);
    const Term updates = counted(select(is_target, target.number(1), target.number(0)));
    const Term share = 1.0 / select(is_kept, updates + 1.0, updates);
    const Term of_operand = (masked(is_kept, share) - 1.0) / counted(target.number(1));
    const Term inside = is_inside(dims, indices, most_indices(dims, part.operand, part.sizes, indices), part.updates);
    const Term ct = masked(inside, at_indices(v.ct(i)));
    out[i] = v.ct(i) + scattered(dims, zeros, indices, ct * of_operand, false);
    out[count + 1 + i] = masked(is_target, ct * share);
  }
  return out;
}

// Of updates where the text says that no two go to the same element.
Contributions vjp_multiplying_scatter(const Vjp& v, const WindowDims& dims) {
  const size_t count = scatter_count(v.view);
  const Term indices = v.x(count);
  Contributions out(v.op.operands.size());
  for (size_t i = 0; i < count; ++i) {
    const ScatterPart part = part_of(v, dims, i);
    std::vector<ir::Region> regions;
    regions.push_back(v.writer.reducer("stablehlo.multiply", with_dims(v.x(i).type(), {})));
    out[i] = v.value(v.writer
                         .add("stablehlo.scatter", {v.ct(i).id, indices.id, part.updates.id}, scatter_attributes(dims),
                              {}, std::move(regions))
                         .at(0));
    if (!v.wanted[count + 1 + i]) continue;
    if (!ir::bool_or(attributes_of(v.view), "unique_indices", false)) {
      reject(v.view, "unsupported_op",
             "scatter that multiplies has a derivative for its updates where unique_indices is true");
    }
    const Term most = most_indices(dims, part.operand, part.sizes, indices);
    out[count + 1 + i] =
        masked(is_inside(dims, indices, most, part.updates), gathered(dims, v.ct(i) * v.x(i), indices, part.sizes));
  }
  return out;
}

}  // namespace

Contributions vjp_gather(const Vjp& v) {
  const WindowDims dims = gather_dims(v.view);
  const Ints sizes = ir::ints(attributes_of(v.view), "slice_sizes");
  const Term most = most_indices(dims, v.x(0).dims(), sizes, v.x(1));
  const Term into = v.sums[0] == ir::kNoValue ? v.x(0).number(0) : v.value(v.sums[0]);
  return {Contribution::sum(scattered(dims, into, clamped_to(v.x(1), most), v.ct(), false))};
}

Contributions vjp_scatter(const Vjp& v) {
  const WindowDims dims = scatter_dims(v.view);
  const size_t count = scatter_count(v.view);
  const std::vector<ScalarOp> body = combining_ops(v.view, count);
  const auto all_are = [&](std::initializer_list<ScalarOp> which) {
    return !body.empty() && std::all_of(body.begin(), body.end(), [&](ScalarOp op) {
      return std::find(which.begin(), which.end(), op) != which.end();
    });
  };
  if (all_are({ScalarOp::kAdd})) return vjp_adding_scatter(v, dims);
  if (all_are({ScalarOp::kMaximum, ScalarOp::kMinimum})) return vjp_extreme_scatter(v, dims);
  if (all_are({ScalarOp::kMultiply})) return vjp_multiplying_scatter(v, dims);
  if (only_replaces(v.view)) return vjp_replacing_scatter(v, dims);
  reject(v.view, "unsupported_op",
         "scatter has a derivative where its body is one of add, multiply, maximum and minimum, or replaces");
}

}  // namespace meshd::ops
