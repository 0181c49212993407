#include "service/partition/export/device_writer.h"

#include <cstring>

#include "service/core/error.h"
#include "service/ops/op_def.h"

namespace meshd::partition {
namespace {

const ir::Type kScalar = ir::Type::of({tensor::DType::kInt64, {}});

ir::DenseAttr dense_of(const std::vector<int64_t>& values, tensor::Dims dims) {
  auto bytes = std::make_shared<std::vector<std::byte>>(values.size() * sizeof(int64_t));
  std::memcpy(bytes->data(), values.data(), bytes->size());
  ir::DenseAttr dense;
  dense.type = {tensor::DType::kInt64, std::move(dims)};
  dense.bytes = std::move(bytes);
  return dense;
}

}  // namespace

ir::Attribute integer_attribute(int64_t value) { return {ir::IntegerAttr{value, "i64"}}; }

std::vector<ir::ValueId> OpWriter::op(const std::string& name, std::vector<ir::ValueId> operands,
                                      const std::vector<ir::Type>& results, ir::AttributeList attributes,
                                      std::vector<ir::Region> regions) {
  const ops::OpDef* row = ops::find_op(name);
  if (row == nullptr) throw core::Error("internal", "no row for " + name);
  ir::Op made;
  made.code = ops::code_of(*row);
  made.name = name;
  made.operands = std::move(operands);
  for (const ir::Type& type : results) made.results.push_back(function_.add_value(type));
  made.attributes = std::move(attributes);
  made.regions = std::move(regions);
  region_->ops.push_back(std::move(made));
  return region_->ops.back().results;
}

ir::ValueId OpWriter::one(const std::string& name, std::vector<ir::ValueId> operands, const ir::Type& result,
                          ir::AttributeList attributes, std::vector<ir::Region> regions) {
  return op(name, std::move(operands), {result}, std::move(attributes), std::move(regions)).front();
}

ir::ValueId OpWriter::constant(ir::DenseAttr dense) {
  const ir::Type type = ir::Type::of(dense.type);
  return one("stablehlo.constant", {}, type, {{"value", {std::move(dense)}}});
}

ir::ValueId OpWriter::integer(int64_t value) { return constant(dense_of({value}, {})); }

ir::ValueId OpWriter::integers(const std::vector<int64_t>& values) {
  return constant(dense_of(values, {static_cast<int64_t>(values.size())}));
}

ir::ValueId OpWriter::zero(tensor::DType dtype) {
  ir::DenseAttr dense;
  dense.type = {dtype, {}};
  dense.bytes = std::make_shared<const std::vector<std::byte>>(static_cast<size_t>(tensor::size_bytes(dtype)));
  return constant(std::move(dense));
}

ir::ValueId OpWriter::binary(const std::string& name, ir::ValueId left, ir::ValueId right) {
  return one(name, {left, right}, ir::Type(type_of(left)));
}

ir::ValueId OpWriter::broadcast(ir::ValueId scalar, const tensor::Dims& dims) {
  const ir::Type type = ir::Type::of({type_of(scalar).dtype(), dims});
  return one("stablehlo.broadcast_in_dim", {scalar}, type, {{"broadcast_dimensions", {ir::IntArrayAttr{{}, "i64"}}}});
}

ir::ValueId OpWriter::cut(ir::ValueId value, size_t dim, int64_t limit) {
  tensor::Dims dims = type_of(value).dims();
  if (dims[dim] == limit) return value;
  dims[dim] = limit;
  const ir::Type type = ir::Type::of({type_of(value).dtype(), dims});
  return one("stablehlo.slice", {value}, type,
             {{"limit_indices", {ir::IntArrayAttr{dims, "i64"}}},
              {"start_indices", {ir::IntArrayAttr{std::vector<int64_t>(dims.size(), 0), "i64"}}},
              {"strides", {ir::IntArrayAttr{std::vector<int64_t>(dims.size(), 1), "i64"}}}});
}

ir::ValueId OpWriter::pad_to(ir::ValueId value, const tensor::Dims& dims) {
  const tensor::Dims from = type_of(value).dims();
  if (from == dims) return value;
  const tensor::DType dtype = type_of(value).dtype();
  std::vector<int64_t> high;
  for (size_t d = 0; d < dims.size(); ++d) high.push_back(dims[d] - from[d]);
  const std::vector<int64_t> none(dims.size(), 0);
  return one("stablehlo.pad", {value, zero(dtype)}, ir::Type::of({dtype, dims}),
             {{"edge_padding_high", {ir::IntArrayAttr{high, "i64"}}},
              {"edge_padding_low", {ir::IntArrayAttr{none, "i64"}}},
              {"interior_padding", {ir::IntArrayAttr{none, "i64"}}}});
}

ir::ValueId OpWriter::block(ir::ValueId value, size_t dim, ir::ValueId start, int64_t size) {
  tensor::Dims dims = type_of(value).dims();
  if (dims[dim] == size) return value;
  dims[dim] = size;
  const ir::Type type = ir::Type::of({type_of(value).dtype(), dims});
  std::vector<ir::ValueId> operands{value};
  for (size_t d = 0; d < dims.size(); ++d) operands.push_back(d == dim ? start : integer(0));
  return one("stablehlo.dynamic_slice", std::move(operands), type, {{"slice_sizes", {ir::IntArrayAttr{dims, "i64"}}}});
}

ir::ValueId OpWriter::reshape(ir::ValueId value, const tensor::Dims& dims) {
  return one("stablehlo.reshape", {value}, ir::Type::of({type_of(value).dtype(), dims}));
}

}  // namespace meshd::partition
