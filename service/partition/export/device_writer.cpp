#include "service/partition/export/device_writer.h"

#include "service/ops/op_def.h"

namespace meshd::partition {

DeviceWriter::DeviceWriter(ir::Function& function) : OpBuilder(function, ops::code_of) {}

ir::ValueId DeviceWriter::binary(const std::string& name, ir::ValueId left, ir::ValueId right) {
  return create_one(name, {left, right}, type(left));
}

ir::ValueId DeviceWriter::broadcast(ir::ValueId scalar, const tensor::Dims& dims) {
  const ir::Type made = ir::Type::of({type(scalar).dtype(), dims});
  return create_one("stablehlo.broadcast_in_dim", {scalar}, made, {{"broadcast_dimensions", ir::int_array_attr({})}});
}

ir::ValueId DeviceWriter::sliced(ir::ValueId value, size_t dim, int64_t limit) {
  tensor::Dims dims = type(value).dims();
  if (dims[dim] == limit) return value;
  dims[dim] = limit;
  return slice(value, std::vector<int64_t>(dims.size(), 0), dims);
}

ir::ValueId DeviceWriter::pad_to(ir::ValueId value, const tensor::Dims& dims) {
  const tensor::Dims from = type(value).dims();
  if (from == dims) return value;
  const tensor::DType dtype = type(value).dtype();
  std::vector<int64_t> high;
  for (size_t d = 0; d < dims.size(); ++d) high.push_back(dims[d] - from[d]);
  const std::vector<int64_t> none(dims.size(), 0);
  return create_one("stablehlo.pad", {value, zero({dtype, {}})}, ir::Type::of({dtype, dims}),
                    {{"edge_padding_high", ir::int_array_attr(high)},
                     {"edge_padding_low", ir::int_array_attr(none)},
                     {"interior_padding", ir::int_array_attr(none)}});
}

ir::ValueId DeviceWriter::block(ir::ValueId value, size_t dim, ir::ValueId start, int64_t size) {
  tensor::Dims dims = type(value).dims();
  if (dims[dim] == size) return value;
  dims[dim] = size;
  const ir::Type made = ir::Type::of({type(value).dtype(), dims});
  std::vector<ir::ValueId> operands{value};
  for (size_t d = 0; d < dims.size(); ++d) operands.push_back(d == dim ? start : integer(0));
  return create_one("stablehlo.dynamic_slice", std::move(operands), made, {{"slice_sizes", ir::int_array_attr(dims)}});
}

ir::ValueId DeviceWriter::reshape(ir::ValueId value, const tensor::Dims& dims) {
  return create_one("stablehlo.reshape", {value}, ir::Type::of({type(value).dtype(), dims}));
}

}  // namespace meshd::partition
