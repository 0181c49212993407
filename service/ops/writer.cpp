#include "service/ops/writer.h"

#include <array>
#include <cstring>
#include <utility>

#include "service/kernels/elementwise/scalar_op.h"
#include "service/ops/checks.h"

namespace meshd::ops {

ir::Attribute int_array(std::vector<int64_t> values) { return {ir::IntArrayAttr{std::move(values), "i64"}}; }
ir::Attribute integer(int64_t value) { return {ir::IntegerAttr{value, "i64"}}; }

void rename_values(ir::Op& op, const std::unordered_map<ir::ValueId, ir::ValueId>& names) {
  const auto all = [&names](std::vector<ir::ValueId>& ids) {
    for (ir::ValueId& id : ids) {
      if (const auto found = names.find(id); found != names.end()) id = found->second;
    }
  };
  all(op.operands);
  all(op.results);
  for (ir::Region& region : op.regions) {
    all(region.arguments);
    for (ir::Op& nested : region.ops) rename_values(nested, names);
  }
}

Writer::Writer(ir::Function& function, std::vector<ir::Op>& out, const ir::Op& source, KnownValues known)
    : function_(function), out_(out), source_(source), known_(std::move(known)) {}

std::vector<ir::ValueId> Writer::add(std::string_view name, std::vector<ir::ValueId> operands,
                                     ir::AttributeList attributes, std::vector<ir::Type> types,
                                     std::vector<ir::Region> regions) {
  const OpDef* def = find_op(name);
  if (def == nullptr) ir::fail("unsupported_op", source_.location, "'" + std::string(name) + "' is not supported");
  ir::Op op;
  op.code = code_of(*def);
  op.name = name;
  op.operands = std::move(operands);
  op.attributes = std::move(attributes);
  op.regions = std::move(regions);
  op.location = source_.location;
  std::vector<ir::Type> operand_types;
  for (const ir::ValueId id : op.operands) operand_types.push_back(type(id));
  OpView view;
  view.operands = operand_types;
  view.results = types;
  view.attributes = &op.attributes;
  view.regions = op.regions;
  view.function = &function_;
  view.location = &op.location;
  for (ir::Type& result : def->infer(view)) op.results.push_back(function_.add_value(std::move(result)));
  out_.push_back(std::move(op));
  return out_.back().results;
}

ir::ValueId Writer::add(std::string_view name, std::vector<ir::ValueId> operands, ir::AttributeList attributes,
                        std::optional<ir::Type> result) {
  std::vector<ir::Type> types;
  if (result) types.push_back(std::move(*result));
  return add(name, std::move(operands), std::move(attributes), std::move(types), {}).at(0);
}

ir::ValueId Writer::constant(const ir::Type& type, std::vector<std::byte> bytes, bool is_splat) {
  ir::DenseAttr dense;
  dense.type = type.tensor;
  dense.splat = is_splat;
  dense.bytes = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  return add("stablehlo.constant", {}, {{"value", ir::Attribute{std::move(dense)}}}, type);
}

ir::ValueId Writer::splat(const ir::Type& type, double value) {
  const kernels::ScalarKernel convert =
      kernels::find_scalar_kernel(kernels::ScalarOp::kConvert, tensor::DType::kFloat64, type.dtype());
  if (convert == nullptr) {
    ir::fail("unsupported_dtype", source_.location,
             "a constant of " + std::string(tensor::name(type.dtype())) + " in '" + source_.name + "'");
  }
  std::vector<std::byte> element(static_cast<size_t>(tensor::size_bytes(type.dtype())));
  const auto* from = reinterpret_cast<const std::byte*>(&value);
  convert(&from, element.data(), 1);
  return constant(type, std::move(element), true);
}

ir::ValueId Writer::integers(const std::vector<int64_t>& values) {
  const auto* begin = reinterpret_cast<const std::byte*>(values.data());
  return constant(ir::Type::of({tensor::DType::kInt64, {static_cast<int64_t>(values.size())}}),
                  {begin, begin + values.size() * sizeof(int64_t)}, false);
}

ir::ValueId Writer::broadcast(ir::ValueId value, const tensor::Dims& dims, const std::vector<int64_t>& into) {
  const ir::Type from = type(value);
  bool same = from.dims() == dims;
  for (size_t i = 0; i < into.size(); ++i) same = same && into[i] == static_cast<int64_t>(i);
  if (same) return value;
  return add("stablehlo.broadcast_in_dim", {value}, {{"broadcast_dimensions", int_array(into)}},
             ir::Type::of({from.dtype(), dims}));
}

ir::ValueId Writer::reshape(ir::ValueId value, const tensor::Dims& dims) {
  if (type(value).dims() == dims) return value;
  return add("stablehlo.reshape", {value}, {}, ir::Type::of({type(value).dtype(), dims}));
}

ir::ValueId Writer::transpose(ir::ValueId value, const std::vector<int64_t>& permutation) {
  bool same = true;
  for (size_t i = 0; i < permutation.size(); ++i) same = same && permutation[i] == static_cast<int64_t>(i);
  return same ? value : add("stablehlo.transpose", {value}, {{"permutation", int_array(permutation)}});
}

}  // namespace meshd::ops
