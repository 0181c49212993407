// Reverse-mode derivatives of gather and scatter, which are each other's transposes but for what lies outside: a gather
// clamps its windows into the operand, a scatter skips such updates.
#include <algorithm>
#include <tuple>
#include <utility>

#include "service/kernels/elementwise/scalar_op.h"
#include "service/ops/checks.h"
#include "service/ops/movement/gather_scatter.h"
#include "service/ops/rewrites/derivative.h"

namespace meshd::ops {
namespace {

using kernels::ScalarOp;
using tensor::Dims;
using Ints = std::vector<int64_t>;

// A scatter whose body is `op`, or replaces where none is given.
Term scattered(const WindowDims& dims, Term into, Term indices, Term updates, std::string_view op) {
  Writer& writer = *into.writer;
  const ir::Type scalar = with_dims(into.type(), {});
  std::vector<ir::Region> regions;
  if (op.empty()) {
    regions.push_back(writer.region(
        {scalar, scalar}, [&](const auto& arguments) { writer.create("stablehlo.return", {arguments[1]}, {}); }));
  } else {
    regions.push_back(writer.reducer(op, scalar));
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
    most.push_back(most_start(operand[static_cast<size_t>(d)], sizes[static_cast<size_t>(d)], indices.dtype()));
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
  const Term iota{&writer, writer.iota({tensor::DType::kInt64, {count}}, 0)};
  return {&writer, writer.reshape((iota + 1.0).id, dims)};
}

// One input of a scatter, with its updates and its result.
struct ScatterPart {
  WindowDims dims;
  Term input;
  Term indices;
  Term updates;
  Term result;
  Term ct;
  Ints sizes;  // of windows, by dimension of the input

  // The elements of `from`, which has the input's shape, in the shape of the updates.
  [[nodiscard]] Term gathered(Term from) const {
    return {from.writer, from.writer->add("stablehlo.gather", {from.id, indices.id}, gather_attributes(dims, sizes))};
  }
  // The same, with zeros for windows that the scatter skips.
  [[nodiscard]] Term gathered_inside(Term from) const {
    const Term most = most_indices(dims, input.dims(), sizes, indices);
    return masked(is_inside(dims, indices, most, updates), gathered(from));
  }
  [[nodiscard]] Term scattered(Term into, Term values, std::string_view op) const {
    return ops::scattered(dims, into, indices, values, op);
  }
};

// Of the input and of the updates.
using PartContributions = std::pair<Contribution, Contribution>;

PartContributions vjp_adding(const ScatterPart& part) { return {part.ct, part.gathered_inside(part.ct)}; }

// Which update an element has in the end is not told for indices that occur twice: numbers are scattered in the same
// way, and each update looks whether its own number is there.
PartContributions vjp_replacing(const ScatterPart& part) {
  Writer& writer = *part.input.writer;
  const Term numbers = numbers_of(part.updates);
  const Term none{&writer, writer.splat(ir::Type::of({tensor::DType::kInt64, part.input.dims()}), 0)};
  const Term winners = part.scattered(none, numbers, "");
  return {masked(compare(winners, "EQ", none), part.ct),
          masked(compare(part.gathered(winners), "EQ", numbers), part.gathered(part.ct))};
}

// As JAX: an element's cotangent goes in equal parts to what has its value in the end, the operand and updates. With
// G, the gather at the indices, and S, the scatter that adds:
// tangent = operand's + S(G(operand's) * of_operand + updates' * of_updates)
PartContributions vjp_of_extremes(const ScatterPart& part) {
  const Term zeros = part.input.number(0);
  const auto counted = [&](Term updates) { return part.gathered(part.scattered(zeros, updates, "stablehlo.add")); };
  const Term target = part.gathered(part.result);
  const Term is_target = compare(part.updates, "EQ", target);
  const Term is_kept = compare(part.gathered(part.input), "EQ", target);
  const Term updates = counted(select(is_target, target.number(1), target.number(0)));
  const Term share = 1.0 / select(is_kept, updates + 1.0, updates);
  const Term of_operand = (masked(is_kept, share) - 1.0) / counted(target.number(1));
  const Term ct = part.gathered_inside(part.ct);
  return {part.ct + part.scattered(zeros, ct * of_operand, "stablehlo.add"), masked(is_target, ct * share)};
}

// Of updates where the text says that no two go to the same element.
PartContributions vjp_multiplying(const ScatterPart& part) {
  return {part.scattered(part.ct, part.updates, "stablehlo.multiply"), part.gathered_inside(part.ct * part.input)};
}

}  // namespace

Contributions vjp_gather(const Vjp& v) {
  const WindowDims dims = gather_dims(v.view);
  const Ints sizes = ir::ints(attributes_of(v.view), "slice_sizes");
  const Term into = v.sums[0] == ir::kNoValue ? v.x(0).number(0) : v.value(v.sums[0]);
  const Term indices = ir::find(attributes_of(v.view), kPromisedInside) != nullptr
                           ? v.x(1)
                           : clamped_to(v.x(1), most_indices(dims, v.x(0).dims(), sizes, v.x(1)));
  return {Contribution::sum(scattered(dims, into, indices, v.ct(), "stablehlo.add"))};
}

Contributions vjp_scatter(const Vjp& v) {
  const size_t count = scatter_count(v.view);
  const auto rule = [&]() -> PartContributions (*)(const ScatterPart&) {
    if (combines_by(v.view, count, {ScalarOp::kAdd})) return vjp_adding;
    if (combines_by(v.view, count, {ScalarOp::kMaximum, ScalarOp::kMinimum})) return vjp_of_extremes;
    if (combines_by(v.view, count, {ScalarOp::kMultiply})) return vjp_multiplying;
    if (only_replaces(v.view)) return vjp_replacing;
    reject(v.view, "unsupported_op",
           "scatter has a derivative where its body is one of add, multiply, maximum and minimum, or replaces");
  }();
  const bool wants_updates =
      std::find(v.wanted.begin() + static_cast<std::ptrdiff_t>(count) + 1, v.wanted.end(), true) != v.wanted.end();
  if (rule == vjp_multiplying && wants_updates && !ir::bool_or(attributes_of(v.view), "unique_indices", false)) {
    reject(v.view, "unsupported_op",
           "scatter that multiplies has a derivative for its updates where unique_indices is true");
  }
  const WindowDims dims = scatter_dims(v.view);
  Contributions out(v.op.operands.size());
  for (size_t i = 0; i < count; ++i) {
    const Term updates = v.x(count + 1 + i);
    std::tie(out[i], out[count + 1 + i]) =
        rule({dims, v.x(i), v.x(count), updates, v.y(i), v.ct(i), window_extents(dims, v.x(i).dims(), updates.dims())});
  }
  return out;
}

}  // namespace meshd::ops
