// Decompositions of the remaining CHLO ops: constants, mulhi, the kernel of asin and acos, ragged products, scans.
#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <unordered_map>

#include "service/ops/checks.h"
#include "service/ops/families.h"
#include "service/ops/pointwise/builders.h"
#include "service/ops/pointwise/pointwise.h"
#include "service/ops/rewrites/writer.h"

namespace meshd::ops {
namespace {

using tensor::Dims;
using tensor::DType;
using Values = std::optional<std::vector<ir::ValueId>>;

ir::ValueId binary(Writer& writer, std::string_view name, ir::ValueId a, ir::ValueId b) {
  return writer.add(name, {a, b}, {}, writer.type(a));
}

ir::ValueId as_type(Writer& writer, ir::ValueId value, DType dtype) {
  return writer.add("stablehlo.convert", {value}, {}, ir::Type::of({dtype, writer.type(value).dims()}));
}

// constant_like

std::vector<ir::Type> infer_constant_like(const OpView& view) {
  expect_tensor_operands(view, "constant_like", 1);
  const ir::Attribute* value = ir::find(attributes_of(view), "value");
  if (value == nullptr || (value->as<ir::FloatAttr>() == nullptr && value->as<ir::IntegerAttr>() == nullptr))
    reject(view, "constant_like I1: value must be a number");
  std::vector<ir::Type> results = declared(view, "constant_like", 1);
  if (!results[0].is_tensor() || !compatible_shapes(results[0].dims(), view.operands[0].dims())) {
    reject(view, fmt::format("constant_like C1: operand and result must have one shape (operand {}, result {})",
                             operand_text(view, 0), ir::to_string(results[0])));
  }
  return results;
}

Values expand_constant_like(const OpView& view, Writer& writer) {
  const ir::Attribute* value = ir::find(attributes_of(view), "value");
  const auto* real = value->as<ir::FloatAttr>();
  const double number = real != nullptr ? real->value : static_cast<double>(value->as<ir::IntegerAttr>()->value);
  const Dims& dims = view.operands[0].dims();
  if (std::count(dims.begin(), dims.end(), tensor::kDynamicDim) != 0) return std::nullopt;
  return std::vector{writer.splat(ir::Type::of({view.results[0].dtype(), dims}), number)};
}

// mulhi

/// The upper 64 bits of products of unsigned 64-bit numbers, from products of their halves.
ir::ValueId high_of_64(Writer& writer, ir::ValueId a, ir::ValueId b) {
  const ir::Type type = writer.type(a);
  const ir::ValueId half = writer.splat(type, 32);
  const ir::ValueId mask = writer.splat(type, 4294967295.0);
  const auto high = [&](ir::ValueId v) { return binary(writer, "stablehlo.shift_right_logical", v, half); };
  const auto low = [&](ir::ValueId v) { return binary(writer, "stablehlo.and", v, mask); };
  const auto times = [&](ir::ValueId x, ir::ValueId y) { return binary(writer, "stablehlo.multiply", x, y); };
  const auto plus = [&](ir::ValueId x, ir::ValueId y) { return binary(writer, "stablehlo.add", x, y); };
  const ir::ValueId middle = plus(times(high(a), low(b)), high(times(low(a), low(b))));
  const ir::ValueId other = plus(low(middle), times(low(a), high(b)));
  return plus(plus(times(high(a), high(b)), high(middle)), high(other));
}

Values expand_mulhi(const OpView& view, Writer& writer) {
  const ir::Type type = view.operands[0];
  const ir::ValueId a = view.op->operands[0];
  const ir::ValueId b = view.op->operands[1];
  const bool is_signed = tensor::is_signed_integer(type.dtype());
  const int bits = tensor::row(type.dtype()).bits;
  if (bits < 64) {
    const DType wide = is_signed ? DType::kInt64 : DType::kUint64;
    const ir::ValueId product =
        binary(writer, "stablehlo.multiply", as_type(writer, a, wide), as_type(writer, b, wide));
    const ir::ValueId shift = writer.splat(writer.type(product), bits);
    const ir::ValueId high = binary(
        writer, is_signed ? "stablehlo.shift_right_arithmetic" : "stablehlo.shift_right_logical", product, shift);
    return std::vector{as_type(writer, high, type.dtype())};
  }
  if (!is_signed) return std::vector{high_of_64(writer, a, b)};
  // As unsigned numbers, negative ones are 2^64 too large: each takes the other off the upper half.
  const auto bits_of = [&](ir::ValueId v, DType dtype) {
    return writer.add("stablehlo.bitcast_convert", {v}, {}, ir::Type::of({dtype, type.dims()}));
  };
  const ir::ValueId high =
      bits_of(high_of_64(writer, bits_of(a, DType::kUint64), bits_of(b, DType::kUint64)), DType::kInt64);
  const ir::ValueId sign = writer.splat(type, 63);
  const auto taken = [&](ir::ValueId from, ir::ValueId other) {
    return binary(writer, "stablehlo.and", binary(writer, "stablehlo.shift_right_arithmetic", from, sign), other);
  };
  return std::vector{
      binary(writer, "stablehlo.subtract", binary(writer, "stablehlo.subtract", high, taken(a, b)), taken(b, a))};
}

// _asin_acos_kernel: w with asin(z) = (atan2(re z, re w), sign(im z) im w)

Values expand_asin_acos_kernel(const OpView& view, Writer& writer) {
  const ir::Type type = view.operands[0];
  const ir::ValueId z = view.op->operands[0];
  const ir::Type part = ir::Type::of({part_of(type.dtype()), type.dims()});
  const auto part_abs = [&](std::string_view which, ir::ValueId v) {
    return writer.add("stablehlo.abs", {writer.add(which, {v}, {}, part)}, {}, part);
  };
  const ir::ValueId one = writer.splat(type, 1);
  const ir::ValueId product = binary(writer, "stablehlo.multiply", binary(writer, "stablehlo.subtract", one, z),
                                     binary(writer, "stablehlo.add", one, z));
  const ir::ValueId real = part_abs("stablehlo.real", writer.add("stablehlo.sqrt", {product}, {}, type));
  const ir::ValueId imaginary = part_abs("stablehlo.imag", writer.add("chlo.asin", {z}, {}, type));
  return std::vector{writer.add("stablehlo.complex", {real, imaginary}, {}, type)};
}

// ragged_dot

struct RaggedDims {
  std::vector<int64_t> lhs_batching, rhs_batching, lhs_contracting, rhs_contracting, ragged, group;
};

RaggedDims ragged_dims(const OpView& view) {
  const ir::AttributeList& numbers = ir::dict(attributes_of(view), "ragged_dot_dimension_numbers").entries;
  return {
      ir::ints_or(numbers, "lhs_batching_dimensions", {}),    ir::ints_or(numbers, "rhs_batching_dimensions", {}),
      ir::ints_or(numbers, "lhs_contracting_dimensions", {}), ir::ints_or(numbers, "rhs_contracting_dimensions", {}),
      ir::ints_or(numbers, "lhs_ragged_dimensions", {}),      ir::ints_or(numbers, "rhs_group_dimensions", {})};
}

bool has(const std::vector<int64_t>& list, int64_t value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

/// Dimensions of lhs that group sizes may have in front of the groups, in that order: each index there has its own
/// groups. As JAX has it (jax/_src/lax/lax.py, _ragged_dot_prefix_dims).
std::vector<int64_t> prefix_dims(const OpView& view, const RaggedDims& dims) {
  std::vector<int64_t> out = dims.lhs_batching;
  const bool contracts = has(dims.lhs_contracting, dims.ragged[0]);
  for (int64_t d = 0; d < view.operands[0].rank(); ++d) {
    if (has(dims.lhs_batching, d) || has(dims.lhs_contracting, d)) continue;
    if (!contracts && d >= dims.ragged[0]) break;
    out.push_back(d);
  }
  for (const int64_t d : dims.lhs_contracting) {
    if (!contracts || d == dims.ragged[0]) break;
    out.push_back(d);
  }
  return out;
}

/// Group sizes are a vector, or have a dimension of the same size for each of `prefix`.
void expect_group_sizes(const OpView& view, const std::vector<int64_t>& prefix) {
  const Dims& sizes = view.operands[2].dims();
  if (sizes.size() == 1) return;
  bool fits = sizes.size() == prefix.size() + 1;
  for (size_t i = 0; fits && i < prefix.size(); ++i) {
    const int64_t expected = view.operands[0].dims()[static_cast<size_t>(prefix[i])];
    fits = sizes[i] == expected || sizes[i] == tensor::kDynamicDim || expected == tensor::kDynamicDim;
  }
  if (fits) return;
  reject(view, fmt::format("ragged_dot C3: group_sizes must be a vector, or have the sizes of dims {} of {} in front "
                           "of the groups, got {}",
                           tensor::to_string(prefix), operand_text(view, 0), operand_text(view, 2)));
}

std::vector<ir::Type> infer_ragged_dot(const OpView& view) {
  expect_tensor_operands(view, "ragged_dot", 3);
  const RaggedDims dims = ragged_dims(view);
  if (dims.ragged.size() != 1 || dims.ragged[0] < 0 || dims.ragged[0] >= view.operands[0].rank())
    reject(view, "ragged_dot C1: lhs_ragged_dimensions must be one dimension of " + operand_text(view, 0));
  if (!tensor::is_integer(view.operands[2].dtype()))
    reject(view, "ragged_dot I3: group_sizes must be integers, got " + operand_text(view, 2));
  const bool over_rows = !has(dims.lhs_batching, dims.ragged[0]) && !has(dims.lhs_contracting, dims.ragged[0]);
  if (over_rows != (dims.group.size() == 1))
    reject(view,
           "ragged_dot C2: rhs_group_dimensions must be one dimension where the ragged one is neither batching nor "
           "contracting, and none elsewhere");
  if (!has(dims.lhs_batching, dims.ragged[0])) expect_group_sizes(view, prefix_dims(view, dims));
  return declared(view, "ragged_dot", 1);
}

/// sizes' dims x rows: whether a row belongs to a group. Rows beyond all groups belong to none.
ir::ValueId group_mask(Writer& writer, ir::ValueId sizes_of, int64_t rows) {
  const ir::ValueId sizes = as_type(writer, sizes_of, DType::kInt64);
  Dims shape = writer.type(sizes).dims();
  const auto rank = static_cast<int64_t>(shape.size());
  const int64_t groups = shape.back();
  const auto iota = [&](int64_t dim, const Dims& dims) { return writer.iota({DType::kInt64, dims}, dim); };
  // Where groups end: sums of the sizes up to them.
  const Dims square = {groups, groups};
  const ir::ValueId before = as_type(writer, writer.compare(iota(1, square), "LE", iota(0, square)), DType::kInt64);
  const ir::DictAttr numbers{"stablehlo.dot",
                             {{"lhs_contracting_dimensions", ir::int_array_attr({rank - 1})},
                              {"rhs_contracting_dimensions", ir::int_array_attr({1})}}};
  const ir::ValueId ends =
      writer.add("stablehlo.dot_general", {sizes, before}, {{"dot_dimension_numbers", ir::Attribute{numbers}}},
                 ir::Type::of({DType::kInt64, shape}));
  const ir::ValueId starts = binary(writer, "stablehlo.subtract", ends, sizes);
  std::vector<int64_t> into;
  for (int64_t d = 0; d < rank; ++d) into.push_back(d);
  shape.push_back(rows);
  const ir::ValueId row = iota(rank, shape);
  return binary(writer, "stablehlo.and", writer.compare(row, "GE", writer.broadcast(starts, shape, into)),
                writer.compare(row, "LT", writer.broadcast(ends, shape, into)));
}

std::vector<int64_t> raised(std::vector<int64_t> dims, std::vector<int64_t> first) {
  for (int64_t& dim : dims) ++dim;
  dims.insert(dims.begin(), first.begin(), first.end());
  return dims;
}

Values expand_ragged_dot(const OpView& view, Writer& writer) {
  const RaggedDims dims = ragged_dims(view);
  const ir::ValueId lhs = view.op->operands[0];
  const ir::ValueId rhs = view.op->operands[1];
  const auto product = [&](ir::ValueId a, ir::ValueId b, const RaggedDims& d) {
    const ir::DictAttr numbers{"stablehlo.dot",
                               {{"lhs_batching_dimensions", ir::int_array_attr(d.lhs_batching)},
                                {"rhs_batching_dimensions", ir::int_array_attr(d.rhs_batching)},
                                {"lhs_contracting_dimensions", ir::int_array_attr(d.lhs_contracting)},
                                {"rhs_contracting_dimensions", ir::int_array_attr(d.rhs_contracting)}}};
    return std::vector{writer.add("stablehlo.dot_general", {a, b}, {{"dot_dimension_numbers", ir::Attribute{numbers}}},
                                  view.results[0])};
  };
  if (has(dims.lhs_batching, dims.ragged[0])) return product(lhs, rhs, dims);
  // The left side once for each group, with zeros in the rows of other groups.
  const Dims& rows = view.operands[0].dims();
  const int64_t groups = view.operands[2].dims().back();
  const int64_t ragged = dims.ragged[0];
  // Dims of the mask in `shape`: those in front of the groups, the groups, the rows.
  std::vector<int64_t> places =
      raised(view.operands[2].rank() == 1 ? std::vector<int64_t>() : prefix_dims(view, dims), {});
  places.insert(places.end(), {0, ragged + 1});
  Dims shape = rows;
  shape.insert(shape.begin(), groups);
  std::vector<int64_t> into;
  for (int64_t d = 1; d < static_cast<int64_t>(shape.size()); ++d) into.push_back(d);
  const ir::ValueId mask =
      writer.broadcast(group_mask(writer, view.op->operands[2], rows[static_cast<size_t>(ragged)]), shape, places);
  const ir::ValueId zero = writer.splat(ir::Type::of({view.operands[0].dtype(), shape}), 0);
  const ir::ValueId parted = writer.add("stablehlo.select", {mask, writer.broadcast(lhs, shape, into), zero});
  RaggedDims inner = dims;
  if (has(dims.lhs_contracting, ragged)) {
    Dims wide = view.operands[1].dims();
    wide.insert(wide.begin(), groups);
    std::vector<int64_t> back;
    for (int64_t d = 1; d < static_cast<int64_t>(wide.size()); ++d) back.push_back(d);
    inner.lhs_batching = raised(dims.lhs_batching, {0});
    inner.rhs_batching = raised(dims.rhs_batching, {0});
    inner.lhs_contracting = raised(dims.lhs_contracting, {});
    inner.rhs_contracting = raised(dims.rhs_contracting, {});
    return product(parted, writer.broadcast(rhs, wide, back), inner);
  }
  inner.lhs_batching = raised(dims.lhs_batching, {});
  inner.lhs_contracting = raised(dims.lhs_contracting, {0});
  inner.rhs_contracting.insert(inner.rhs_contracting.begin(), dims.group[0]);
  return product(parted, rhs, inner);
}

// scan

struct ScanShape {
  size_t carries = 0;
  size_t inputs = 0;
  size_t outputs = 0;
  int64_t dim = 0;
  int64_t length = 0;
};

ScanShape scan_shape(const OpView& view) {
  ScanShape out;
  // Inputs come first; the body takes them without their scanned dimension, and carried values as they are.
  const std::vector<ir::Type> arguments = argument_types(view, view.regions[0]);
  if (arguments.size() != view.operands.size()) {
    reject(view,
           fmt::format("scan: the body must take {} values, takes {}", view.operands.size(), types_text(arguments)));
  }
  while (out.inputs < arguments.size() && view.operands[out.inputs].is_tensor() &&
         arguments[out.inputs].rank() + 1 == view.operands[out.inputs].rank()) {
    ++out.inputs;
  }
  out.carries = arguments.size() - out.inputs;
  if (out.inputs == 0) reject(view, "scan: needs an input, whose scanned dimension the body does not have");
  if (view.results.size() < out.carries)
    reject(view, fmt::format("scan: has a result for each output and each of the {} start values", out.carries));
  out.outputs = view.results.size() - out.carries;
  out.dim = ir::int_or(attributes_of(view), "dimension", 0);
  for (size_t i = 0; i < out.inputs; ++i) {
    expect_tensor(view, "scan", i);
    const bool inside = out.dim >= 0 && out.dim < view.operands[i].rank();
    const int64_t size = inside ? view.operands[i].dims()[static_cast<size_t>(out.dim)] : -2;
    if (i == 0) out.length = size;
    if (!inside || size != out.length)
      reject(view, fmt::format("scan: inputs must have dimension {} of one size, got {} as input {}", out.dim,
                               operand_text(view, i), i));
  }
  return out;
}

ir::Type without_dim(const ir::Type& type, int64_t dim) {
  Dims dims = type.dims();
  dims.erase(dims.begin() + dim);
  return ir::Type::of({type.dtype(), std::move(dims)});
}

std::vector<ir::Type> infer_scan(const OpView& view) {
  const ScanShape shape = scan_shape(view);
  std::vector<ir::Type> takes;
  for (size_t i = 0; i < view.operands.size(); ++i)
    takes.push_back(i < shape.inputs ? without_dim(view.operands[i], shape.dim) : view.operands[i]);
  const std::vector<ir::Type> arguments = argument_types(view, view.regions[0]);
  const std::vector<ir::Type> returned = returned_types(view, view.regions[0]);
  bool fits = arguments.size() == takes.size() && returned.size() == view.results.size();
  for (size_t i = 0; fits && i < takes.size(); ++i) fits = compatible(arguments[i], takes[i]);
  for (size_t i = 0; fits && i < returned.size(); ++i) {
    const ir::Type& result = view.results[i];
    const bool is_output = i < shape.outputs;
    fits = result.is_tensor() && (!is_output || shape.dim < result.rank()) &&
           (!is_output || result.dims()[static_cast<size_t>(shape.dim)] == shape.length) &&
           compatible(returned[i], is_output ? without_dim(result, shape.dim) : result);
  }
  if (!fits) {
    reject(view, "scan: the body must take " + types_text(takes) +
                     " and return each output without its scanned dimension, then the carried values; got " +
                     types_text(arguments) + " -> " + types_text(returned));
  }
  return {view.results.begin(), view.results.end()};
}

/// One iteration: slices of the inputs at the iteration's place, the ops of the scan's region, and its outputs written
/// at that place. `carried`: iteration number, carried values, outputs so far.
void add_scan_body(const OpView& view, const ScanShape& shape, const std::vector<ir::ValueId>& carried,
                   Writer& writer) {
  const ir::Type index = writer.type(carried[0]);
  ir::ValueId place = carried[0];
  if (ir::bool_or(attributes_of(view), "is_reverse", false))
    place = binary(writer, "stablehlo.subtract", writer.splat(index, static_cast<double>(shape.length - 1)), place);
  const ir::ValueId zero = writer.splat(index, 0);
  const auto indices = [&](int64_t rank) {
    std::vector<ir::ValueId> out(static_cast<size_t>(rank), zero);
    out[static_cast<size_t>(shape.dim)] = place;
    return out;
  };
  std::unordered_map<ir::ValueId, ir::ValueId> names;
  const ir::Region& body = view.regions[0];
  for (size_t i = 0; i < shape.inputs; ++i) {
    Dims sizes = view.operands[i].dims();
    sizes[static_cast<size_t>(shape.dim)] = 1;
    std::vector<ir::ValueId> operands = indices(view.operands[i].rank());
    operands.insert(operands.begin(), view.op->operands[i]);
    const ir::ValueId slice =
        writer.add("stablehlo.dynamic_slice", std::move(operands), {{"slice_sizes", ir::int_array_attr(sizes)}});
    names[body.arguments[i]] = writer.reshape(slice, without_dim(view.operands[i], shape.dim).dims());
  }
  for (size_t i = 0; i < shape.carries; ++i) names[body.arguments[shape.inputs + i]] = carried[1 + i];
  for (size_t i = 0; i + 1 < body.ops.size(); ++i) ir::rename_values(writer.insert(body.ops[i]), names);
  ir::Op last = body.ops.back();
  ir::rename_values(last, names);
  const std::vector<ir::ValueId>& returned = last.operands;
  std::vector<ir::ValueId> next = {binary(writer, "stablehlo.add", carried[0], writer.splat(index, 1))};
  for (size_t i = 0; i < shape.carries; ++i) next.push_back(returned[shape.outputs + i]);
  for (size_t i = 0; i < shape.outputs; ++i) {
    Dims dims = view.results[i].dims();
    dims[static_cast<size_t>(shape.dim)] = 1;
    std::vector<ir::ValueId> operands = indices(view.results[i].rank());
    operands.insert(operands.begin(), {carried[1 + shape.carries + i], writer.reshape(returned[i], dims)});
    next.push_back(writer.add("stablehlo.dynamic_update_slice", std::move(operands)));
  }
  writer.create("stablehlo.return", std::move(next), {});
}

/// A loop that carries its iteration number, the carried values and the outputs made so far.
Values expand_scan(const OpView& view, Writer& writer) {
  const ScanShape shape = scan_shape(view);
  const ir::Type index = ir::Type::of({DType::kInt64, {}});
  std::vector<ir::ValueId> starts = {writer.splat(index, 0)};
  for (size_t i = 0; i < shape.carries; ++i) starts.push_back(view.op->operands[shape.inputs + i]);
  for (size_t i = 0; i < shape.outputs; ++i) starts.push_back(writer.splat(view.results[i], 0));
  const std::vector<ir::Type> types = writer.function().types_of(starts);
  std::vector<ir::Region> regions;
  regions.push_back(writer.region(types, [&](const std::vector<ir::ValueId>& carried) {
    const ir::ValueId end = writer.splat(index, static_cast<double>(shape.length));
    writer.create("stablehlo.return", {writer.compare(carried[0], "LT", end)}, {});
  }));
  regions.push_back(writer.region(
      types, [&](const std::vector<ir::ValueId>& carried) { add_scan_body(view, shape, carried, writer); }));
  const std::vector<ir::ValueId> all = writer.add("stablehlo.while", starts, {}, types, std::move(regions));
  std::vector<ir::ValueId> out(all.begin() + 1 + static_cast<std::ptrdiff_t>(shape.carries), all.end());
  out.insert(out.end(), all.begin() + 1, all.begin() + 1 + static_cast<std::ptrdiff_t>(shape.carries));
  return out;
}

// chlo.constant

std::vector<ir::Type> infer_chlo_constant(const OpView& view) {
  expect_operand_count(view, "constant", 0);
  const ir::Attribute* value = ir::find(attributes_of(view), "value");
  const auto* dense = value == nullptr ? nullptr : value->as<ir::DenseAttr>();
  if (dense == nullptr) reject(view, "constant I1: value must be dense<...>");
  return agree(view, "constant C1", {ir::Type::of(dense->type)});
}

OpDef mulhi_row() {
  OpDef mulhi = pointwise<"chlo.mulhi", 2, kIntegers, Gives::kSame>("upper half of the bits of a product", {});
  mulhi.body = Unsupported{};
  mulhi.example = R"(module @jit_f {
  func.func public @main(%arg0: tensor<4xi32>, %arg1: tensor<4xi32>) -> tensor<4xi32> {
    %0 = "chlo.mulhi"(%arg0, %arg1) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
    return %0 : tensor<4xi32>
  }
}
)";
  mulhi.propagation.elementwise = Elementwise::kAlways;
  mulhi.expand = expand_mulhi;
  return mulhi;
}

OpDef asin_acos_kernel_row() {
  OpDef kernel = pointwise<"chlo._asin_acos_kernel", 1, kComplexes, Gives::kSame>(
      "what asin and acos of complex numbers have in common", {});
  kernel.body = Unsupported{};
  kernel.example = R"(module @jit_f {
  func.func public @main(%arg0: tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>> {
    %0 = chlo._asin_acos_kernel %arg0 : tensor<4xcomplex<f32>> -> tensor<4xcomplex<f32>>
    return %0 : tensor<4xcomplex<f32>>
  }
}
)";
  kernel.propagation.elementwise = Elementwise::kAlways;
  kernel.expand = expand_asin_acos_kernel;
  return kernel;
}

}  // namespace

std::vector<OpDef> chlo_other_rows() {
  return {
      {.name = "chlo.constant",
       .summary = "a value written in the program",
       .example = R"(module @jit_f {
  func.func public @main() -> tensor<2xi32> {
    %0 = chlo.constant dense<[1, 2]> : tensor<2xi32>
    return %0 : tensor<2xi32>
  }
}
)",
       .signature = {.attributes = {{"value", true, "the elements"}}},
       .text = {.shape = TextShape::kConstant},
       .infer = infer_chlo_constant,
       .body = Structural::kConstant},
      {.name = "chlo.constant_like",
       .summary = "a number repeated over the operand's shape",
       .example = R"(module @jit_f {
  func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0 = "chlo.constant_like"(%arg0) <{value = 3.200000e+00 : f32}> : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
)",
       .signature = {.operand_min = 1, .operand_max = 1, .attributes = {{"value", true, "the number"}}},
       .propagation = {.elementwise = Elementwise::kAlways},
       .infer = infer_constant_like,
       .expand = expand_constant_like},
      mulhi_row(),
      asin_acos_kernel_row(),
      {.name = "chlo.ragged_dot",
       .summary = "products of groups of rows of different sizes, each with a matrix of its own",
       .example = R"(module @jit_f {
  func.func public @main(%arg0: tensor<6x4xf32>, %arg1: tensor<2x4x3xf32>, %arg2: tensor<2xi32>) -> tensor<6x3xf32> {
    %0 = "chlo.ragged_dot"(%arg0, %arg1, %arg2) <{ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>}> : (tensor<6x4xf32>, tensor<2x4x3xf32>, tensor<2xi32>) -> tensor<6x3xf32>
    return %0 : tensor<6x3xf32>
  }
}
)",
       .signature = {.operand_min = 3,
                     .operand_max = 3,
                     .attributes = {{"ragged_dot_dimension_numbers", true, "how the operands go together"},
                                    {"precision_config", false, "a hint that nothing depends on"}}},
       .propagation = {.elementwise = Elementwise::kAlways},
       .infer = infer_ragged_dot,
       .expand = expand_ragged_dot},
      {.name = "chlo.scan",
       .summary = "a body run along a dimension, with values carried from one index to the next",
       .example = R"(module @jit_f {
  func.func public @main(%arg0: tensor<4xi32>) -> (tensor<4xi32>, tensor<i32>) {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0:2 = chlo.scan(%arg0) inits(%c) dimension=0 {
    ^bb0(%arg1: tensor<i32>, %arg2: tensor<i32>):
      %1 = stablehlo.add %arg1, %arg2 : tensor<i32>
      stablehlo.return %1, %1 : tensor<i32>, tensor<i32>
    } : (tensor<4xi32>, tensor<i32>) -> (tensor<4xi32>, tensor<i32>)
    return %0#0, %0#1 : tensor<4xi32>, tensor<i32>
  }
}
)",
       .signature = {.operand_min = 1,
                     .operand_max = -1,
                     .region_count = 1,
                     .attributes = {{"dimension", true, "along which the body runs"},
                                    {"is_reverse", false, "from the last index to the first"},
                                    {"is_associative", false, "a hint that nothing depends on"}}},
       .text = {.shape = TextShape::kScan},
       .infer = infer_scan,
       .expand = expand_scan},
  };
}

}  // namespace meshd::ops
