#include "service/ops/rewrites/writer.h"

#include <utility>

#include "service/kernels/elementwise/scalar_op.h"
#include "service/ops/checks.h"

namespace meshd::ops {

Writer::Writer(ir::Function& function, std::vector<ir::Op>& out, const ir::Op& source, KnownValues known,
               KnownDifferences differences)
    : OpBuilder(function, code_of, out, source.location),
      source_(source),
      known_(std::move(known)),
      differences_(std::move(differences)) {}

std::optional<std::vector<int64_t>> Writer::known(ir::ValueId id) const { return known_ ? known_(id) : std::nullopt; }

std::optional<std::vector<int64_t>> Writer::known_difference(ir::ValueId a, ir::ValueId b) const {
  return differences_ ? differences_(a, b) : std::nullopt;
}

std::vector<ir::ValueId> Writer::add(std::string_view name, std::vector<ir::ValueId> operands,
                                     ir::AttributeList attributes, std::vector<ir::Type> types,
                                     std::vector<ir::Region> regions) {
  const std::vector<ir::Type> operand_types = function().types_of(operands);
  OpView view;
  view.operands = operand_types;
  view.results = types;
  view.attributes = &attributes;
  view.regions = regions;
  view.function = &function();
  view.location = &location();
  types = op(code_of(name)).infer(view);
  return create(name, std::move(operands), types, std::move(attributes), std::move(regions));
}

ir::ValueId Writer::add(std::string_view name, std::vector<ir::ValueId> operands, ir::AttributeList attributes,
                        std::optional<ir::Type> result) {
  std::vector<ir::Type> types;
  if (result) types.push_back(std::move(*result));
  return add(name, std::move(operands), std::move(attributes), std::move(types), {}).at(0);
}

ir::ValueId Writer::splat(const ir::Type& type, double value) {
  const kernels::ScalarKernel convert =
      kernels::find_scalar_kernel(kernels::ScalarOp::kConvert, tensor::DType::kFloat64, type.dtype());
  if (convert == nullptr) {
    ir::fail("unsupported_dtype", location(),
             "a constant of " + std::string(tensor::name(type.dtype())) + " in '" + source_.name + "'");
  }
  std::vector<std::byte> element(static_cast<size_t>(tensor::size_bytes(type.dtype())));
  const auto* from = reinterpret_cast<const std::byte*>(&value);
  convert(&from, element.data(), 1);
  return constant(ir::splat_attr(type.tensor, std::move(element)));
}

ir::ValueId Writer::broadcast(ir::ValueId value, const tensor::Dims& dims, const std::vector<int64_t>& into) {
  const ir::Type from = type(value);
  bool same = from.dims() == dims;
  for (size_t i = 0; i < into.size(); ++i) same = same && into[i] == static_cast<int64_t>(i);
  if (same) return value;
  return add("stablehlo.broadcast_in_dim", {value}, {{"broadcast_dimensions", ir::int_array_attr(into)}},
             ir::Type::of({from.dtype(), dims}));
}

ir::ValueId Writer::reshape(ir::ValueId value, const tensor::Dims& dims) {
  if (type(value).dims() == dims) return value;
  return add("stablehlo.reshape", {value}, {}, ir::Type::of({type(value).dtype(), dims}));
}

ir::ValueId Writer::transpose(ir::ValueId value, const std::vector<int64_t>& permutation) {
  bool same = true;
  for (size_t i = 0; i < permutation.size(); ++i) same = same && permutation[i] == static_cast<int64_t>(i);
  return same ? value : add("stablehlo.transpose", {value}, {{"permutation", ir::int_array_attr(permutation)}});
}

}  // namespace meshd::ops
