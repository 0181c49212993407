#include "service/ir/op_builder.h"

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
