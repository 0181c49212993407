#include "service/ops/rewrites/derivative.h"

#include <numeric>

#include "service/ops/checks.h"

namespace meshd::ops {

Term apply(std::string_view op, Term a, Term b) { return {a.writer, a.writer->add(op, {a.id, b.id})}; }

Term compare(Term a, std::string_view direction, Term b) {
  return {a.writer, a.writer->compare(a.id, direction, b.id)};
}

Term select(Term where, Term a, Term b) {
  return {a.writer, a.writer->add("stablehlo.select", {where.id, a.id, b.id})};
}

Term masked(Term where, Term value) { return select(where, value, value.number(0)); }

Term converted(Term value, tensor::DType dtype) {
  if (value.dtype() == dtype) return value;
  return {value.writer, value.writer->add("stablehlo.convert", {value.id}, {}, ir::Type::of({dtype, value.dims()}))};
}

Term summed_over(Term value, const std::vector<int64_t>& dims) {
  if (dims.empty()) return value;
  Writer& writer = *value.writer;
  const ir::Type scalar = with_dims(value.type(), {});
  const ir::ValueId zero = writer.splat(scalar, 0);
  std::vector<ir::Region> regions;
  regions.push_back(writer.reducer("stablehlo.add", scalar));
  return {&writer, writer
                       .add("stablehlo.reduce", {value.id, zero}, {{"dimensions", ir::int_array_attr(dims)}}, {},
                            std::move(regions))
                       .at(0)};
}

Term sum_of_all(Term value) {
  std::vector<int64_t> dims(value.dims().size());
  std::iota(dims.begin(), dims.end(), 0);
  return summed_over(value, dims);
}

Term padded(Term value, const std::vector<int64_t>& low, const std::vector<int64_t>& high,
            const std::vector<int64_t>& interior) {
  const ir::ValueId zero = value.writer->splat(with_dims(value.type(), {}), 0);
  return {value.writer, value.writer->add("stablehlo.pad", {value.id, zero},
                                          {{"edge_padding_high", ir::int_array_attr(high)},
                                           {"edge_padding_low", ir::int_array_attr(low)},
                                           {"interior_padding", ir::int_array_attr(interior)}})};
}

Term sliced(Term value, const std::vector<int64_t>& start, const std::vector<int64_t>& limit,
            const std::vector<int64_t>& strides) {
  return {value.writer, value.writer->slice(value.id, start, limit, strides)};
}

Term indices_along(Writer& writer, const tensor::Dims& dims, int64_t dim) {
  return {&writer, writer.iota({tensor::DType::kInt32, dims}, dim)};
}

std::vector<Term> counted_loop(Writer& writer, int64_t count, const std::vector<Term>& carried,
                               const std::function<std::vector<Term>(Term, const std::vector<Term>&)>& body) {
  std::vector<ir::ValueId> starts{writer.splat(ir::Type::of({tensor::DType::kInt32, {}}), 0)};
  for (const Term& each : carried) starts.push_back(each.id);
  const std::vector<ir::Type> types = writer.function().types_of(starts);
  const auto terms = [&](const std::vector<ir::ValueId>& values) {
    std::vector<Term> out;
    for (size_t i = 1; i < values.size(); ++i) out.push_back({&writer, values[i]});
    return out;
  };
  std::vector<ir::Region> regions;
  regions.push_back(writer.region(types, [&](const std::vector<ir::ValueId>& arguments) {
    const Term iteration{&writer, arguments[0]};
    writer.create("stablehlo.return", {compare(iteration, "LT", iteration.number(static_cast<double>(count))).id}, {});
  }));
  regions.push_back(writer.region(types, [&](const std::vector<ir::ValueId>& arguments) {
    const Term iteration{&writer, arguments[0]};
    std::vector<ir::ValueId> next{(iteration + 1.0).id};
    for (const Term& each : body(iteration, terms(arguments))) next.push_back(each.id);
    writer.create("stablehlo.return", next, {});
  }));
  return terms(writer.create("stablehlo.while", starts, types, {}, std::move(regions)));
}

Contributions vjp_identity(const Vjp& v) {
  std::vector<ir::ValueId> cotangents;
  std::vector<ir::Type> types;
  for (size_t i = 0; i < v.op.results.size(); ++i) {
    cotangents.push_back(v.cotangents[i] == ir::kNoValue ? v.op.results[i] : v.cotangents[i]);
    types.push_back(v.view.results[i]);
  }
  const std::vector<ir::ValueId> made = v.writer.create(v.op.name, std::move(cotangents), types, v.op.attributes);
  Contributions out(v.op.operands.size());
  for (size_t i = 0; i < made.size(); ++i) {
    if (v.cotangents[i] != ir::kNoValue) out[i] = v.value(made[i]);
  }
  return out;
}

Term Vjp::ct(size_t result) const {
  const ir::ValueId id = cotangents.at(result);
  return id == ir::kNoValue ? y(result).number(0) : value(id);
}

}  // namespace meshd::ops
