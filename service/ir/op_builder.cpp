#include "service/ir/op_builder.h"

#include "service/core/checked_math.h"
#include "service/ir/walk.h"

namespace meshd::ir {

Op& OpBuilder::define(std::vector<ValueId> results, std::string_view name, std::vector<ValueId> operands,
                      AttributeList attributes, std::vector<Region> regions) {
  return ops_->emplace_back(Op{code_of_(name), std::string(name), std::move(operands), std::move(results),
                               std::move(attributes), std::move(regions), location_});
}

std::vector<ValueId> OpBuilder::create(std::string_view name, std::vector<ValueId> operands,
                                       const std::vector<Type>& types, AttributeList attributes,
                                       std::vector<Region> regions) {
  std::vector<ValueId> results;
  results.reserve(types.size());
  for (const Type& type : types) results.push_back(function_.add_value(type));
  return define(std::move(results), name, std::move(operands), std::move(attributes), std::move(regions)).results;
}

ValueId OpBuilder::create_one(std::string_view name, std::vector<ValueId> operands, const Type& type,
                              AttributeList attributes, std::vector<Region> regions) {
  return create(name, std::move(operands), {type}, std::move(attributes), std::move(regions)).front();
}

ValueId OpBuilder::constant(DenseAttr dense) {
  const Type type = Type::of(dense.type);
  return create_one("stablehlo.constant", {}, type, {{"value", {std::move(dense)}}});
}

ValueId OpBuilder::zero(const tensor::TensorType& type) {
  return constant(splat_attr(type, std::vector<std::byte>(static_cast<size_t>(tensor::size_bytes(type.dtype)))));
}

ValueId OpBuilder::integer(int64_t value) { return constant(dense_integers_attr({value}, {})); }

ValueId OpBuilder::integers(const std::vector<int64_t>& values) {
  return constant(dense_integers_attr(values, {static_cast<int64_t>(values.size())}));
}

ValueId OpBuilder::iota(const tensor::TensorType& type, int64_t dim) {
  return create_one("stablehlo.iota", {}, Type::of(type), {{"iota_dimension", integer_attr(dim)}});
}

ValueId OpBuilder::compare(ValueId a, std::string_view direction, ValueId b) {
  return create_one("stablehlo.compare", {a, b}, Type::of({tensor::DType::kBool, type(a).dims()}),
                    {{"comparison_direction", {EnumAttr{"comparison_direction", std::string(direction)}}}});
}

ValueId OpBuilder::slice(ValueId value, const std::vector<int64_t>& start, const std::vector<int64_t>& limit,
                         std::vector<int64_t> strides) {
  strides.resize(start.size(), 1);
  tensor::Dims dims;
  for (size_t d = 0; d < start.size(); ++d) dims.push_back(core::ceil_div(limit[d] - start[d], strides[d]));
  return create_one("stablehlo.slice", {value}, Type::of({type(value).dtype(), std::move(dims)}),
                    {{"limit_indices", int_array_attr(limit)},
                     {"start_indices", int_array_attr(start)},
                     {"strides", int_array_attr(std::move(strides))}});
}

ValueId OpBuilder::concatenate(std::vector<ValueId> values, int64_t dim) {
  if (values.size() == 1) return values[0];
  tensor::Dims dims = type(values[0]).dims();
  int64_t& size = dims[static_cast<size_t>(dim)];
  for (size_t i = 1; i < values.size(); ++i) size += type(values[i]).dims()[static_cast<size_t>(dim)];
  const Type made = Type::of({type(values[0]).dtype(), std::move(dims)});
  return create_one("stablehlo.concatenate", std::move(values), made, {{"dimension", integer_attr(dim)}});
}

Region OpBuilder::reducer(std::string_view name, Type scalar) {
  return region({scalar, scalar}, [&](const std::vector<ValueId>& arguments) {
    create("stablehlo.return", {create_one(name, arguments, scalar)}, {});
  });
}

void rename_values(Op& op, const std::unordered_map<ValueId, ValueId>& names) {
  const auto rename = [&names](std::vector<ValueId>& ids) {
    for (ValueId& id : ids) {
      if (const auto found = names.find(id); found != names.end()) id = found->second;
    }
  };
  walk(op, [&](Op& each) {
    rename(each.operands);
    rename(each.results);
    for (Region& region : each.regions) rename(region.arguments);
  });
}

}  // namespace meshd::ir
