// Ops whose result shape is a value. Where that value follows from the shapes of the arguments, they are the static op
// of the same kind; where only the declared result type has the shape, dynamic_pad and real_dynamic_slice have kernels.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string>

#include "service/core/checked_math.h"
#include "service/core/error.h"
#include "service/kernels/movement/movement.h"
#include "service/ops/checks.h"
#include "service/ops/evaluate.h"
#include "service/ops/families.h"
#include "service/ops/kernel_interface.h"
#include "service/ops/linalg/convolution_dims.h"
#include "service/ops/movement/gather_scatter.h"
#include "service/ops/quantized.h"
#include "service/ops/rewrites/writer.h"

namespace meshd::ops {
namespace {

using tensor::Dims;
using tensor::kDynamicDim;
using Values = std::optional<std::vector<ir::ValueId>>;

bool is_static(const ir::Type& type) { return std::count(type.dims().begin(), type.dims().end(), kDynamicDim) == 0; }

bool is_index_vector(const ir::Type& type) {
  return type.is_tensor() && type.rank() == 1 && tensor::is_integer(type.dtype());
}

void expect_index_vector(const OpView& view, const std::string& op, size_t operand, int64_t size) {
  expect_tensor(view, op, operand);
  const ir::Type& type = view.operands[operand];
  const bool fits = is_index_vector(type) && (type.dims()[0] == size || type.dims()[0] == kDynamicDim);
  if (fits) return;
  reject(view, fmt::format("{} I{}: operand {} must be a vector of {} integers, got {}", op, operand + 1, operand, size,
                           operand_text(view, operand)));
}

// checks: dynamic_reshape C1: operand and result have one element type
// checks: dynamic_broadcast_in_dim C1: operand and result have one element type
// checks: dynamic_pad C1: operand and result have one element type
// checks: real_dynamic_slice C1: operand and result have one element type
// checks: dynamic_gather C1: operand and result have one element type
// checks: set_dimension_size C1: operand and result have one element type
void expect_same_elements(const OpView& view, const std::string& op, const ir::Type& result) {
  if (result.is_tensor() && result.dtype() == view.operands[0].dtype()) return;
  reject(view, fmt::format("{} C1: element types differ (operand {}, result {})", op, operand_text(view, 0),
                           ir::to_string(result)));
}

/// The result's dimensions: those of the operand `shape` where they are known, else the declared ones.
std::optional<Dims> result_dims(const OpView& view, Writer& writer, size_t shape) {
  const ir::Type& result = view.results[0];
  const auto known = writer.known(view.op->operands[shape]);
  if (!known) return is_static(result) ? std::optional(result.dims()) : std::nullopt;
  for (const int64_t size : *known) {
    if (size < 0) reject(view, fmt::format("'{}': a dimension would have {} elements", view.op->name, size));
  }
  if (!compatible_shapes(*known, result.dims())) {
    reject(view, fmt::format("'{}': operand {} says the shape {}, the result is {}", view.op->name, shape,
                             tensor::to_string(std::span<const int64_t>(*known)), ir::to_string(result)));
  }
  return Dims(known->begin(), known->end());
}

// checks: dynamic_pad C2: operand and result have one rank
// checks: real_dynamic_slice C2: operand and result have one rank
void expect_same_rank(const OpView& view, const std::string& op, const ir::Type& result) {
  if (result.rank() == view.operands[0].rank()) return;
  reject(view, fmt::format("{} C2: operand and result must have one rank (operand {}, result {})", op,
                           operand_text(view, 0), ir::to_string(result)));
}

/// The static op where the three index vectors from operand `first` on are known: they are its attributes of these
/// names.
Values expand_three(const OpView& view, Writer& writer, size_t first, std::string_view op,
                    std::initializer_list<std::string_view> names) {
  ir::AttributeList attributes;
  size_t operand = first;
  for (const std::string_view name : names) {
    const auto known = writer.known(view.op->operands[operand++]);
    if (!known) return std::nullopt;
    attributes.emplace_back(std::string(name), ir::int_array_attr(*known));
  }
  if (!is_static(view.operands[0])) return std::nullopt;
  const auto& operands = view.op->operands;
  return std::vector{
      writer.add(op, {operands.begin(), operands.begin() + static_cast<std::ptrdiff_t>(first)}, std::move(attributes))};
}

/// Attributes of the op without those of a list.
ir::AttributeList without(const OpView& view, std::initializer_list<std::string_view> names) {
  ir::AttributeList out;
  for (const auto& entry : attributes_of(view)) {
    if (std::find(names.begin(), names.end(), entry.name) == names.end()) out.push_back(entry);
  }
  return out;
}

// dynamic_reshape

std::vector<ir::Type> infer_dynamic_reshape(const OpView& view) {
  expect_operand_count(view, "dynamic_reshape", 2);
  expect_tensor(view, "dynamic_reshape", 0);
  std::vector<ir::Type> results = declared(view, "dynamic_reshape", 1);
  expect_same_elements(view, "dynamic_reshape", results[0]);
  expect_index_vector(view, "dynamic_reshape", 1, results[0].rank());
  return results;
}

Values expand_dynamic_reshape(const OpView& view, Writer& writer) {
  const auto dims = result_dims(view, writer, 1);
  if (!dims) return std::nullopt;
  return std::vector{writer.reshape(view.op->operands[0], *dims)};
}

// dynamic_broadcast_in_dim

std::vector<ir::Type> infer_dynamic_broadcast(const OpView& view) {
  expect_operand_count(view, "dynamic_broadcast_in_dim", 2);
  expect_tensor(view, "dynamic_broadcast_in_dim", 0);
  std::vector<ir::Type> results = declared(view, "dynamic_broadcast_in_dim", 1);
  expect_same_elements(view, "dynamic_broadcast_in_dim", results[0]);
  expect_index_vector(view, "dynamic_broadcast_in_dim", 1, results[0].rank());
  const std::vector<int64_t> dims = ir::ints(attributes_of(view), "broadcast_dimensions");
  if (static_cast<int64_t>(dims.size()) != view.operands[0].rank()) {
    reject(view,
           fmt::format(
               "dynamic_broadcast_in_dim C2: broadcast_dimensions must have a number for each dimension of {}, got {}",
               operand_text(view, 0), dims.size()));
  }
  for (const int64_t dim : dims) {
    if (dim >= 0 && dim < results[0].rank()) continue;
    reject(view, fmt::format("dynamic_broadcast_in_dim C3: broadcast_dimensions must be dimensions of {}, got {}",
                             ir::to_string(results[0]), dim));
  }
  return results;
}

Values expand_dynamic_broadcast(const OpView& view, Writer& writer) {
  const auto dims = result_dims(view, writer, 1);
  if (!dims || !is_static(view.operands[0])) return std::nullopt;
  return std::vector{
      writer.broadcast(view.op->operands[0], *dims, ir::ints(attributes_of(view), "broadcast_dimensions"))};
}

// dynamic_iota

std::vector<ir::Type> infer_dynamic_iota(const OpView& view) {
  expect_operand_count(view, "dynamic_iota", 1);
  std::vector<ir::Type> results = declared(view, "dynamic_iota", 1);
  expect_index_vector(view, "dynamic_iota", 0, results[0].rank());
  const int64_t dim = ir::int_or(attributes_of(view), "iota_dimension", -1);
  if (dim < 0 || dim >= results[0].rank()) {
    reject(view, fmt::format("dynamic_iota C1: iota_dimension must be below the rank of {}, got {}",
                             ir::to_string(results[0]), dim));
  }
  return results;
}

Values expand_dynamic_iota(const OpView& view, Writer& writer) {
  const auto dims = result_dims(view, writer, 0);
  if (!dims) return std::nullopt;
  return std::vector{writer.add("stablehlo.iota", {}, attributes_of(view), with_dims(view.results[0], *dims))};
}

// dynamic_pad

std::vector<ir::Type> infer_dynamic_pad(const OpView& view) {
  expect_operand_count(view, "dynamic_pad", 5);
  expect_tensor(view, "dynamic_pad", 0);
  expect_tensor(view, "dynamic_pad", 1);
  std::vector<ir::Type> results = declared(view, "dynamic_pad", 1);
  expect_same_elements(view, "dynamic_pad", results[0]);
  if (view.operands[1].rank() != 0 || view.operands[1].dtype() != view.operands[0].dtype()) {
    reject(view, "dynamic_pad C1: padding_value must be a scalar of the operand's type, got " + operand_text(view, 1));
  }
  for (size_t i = 2; i < 5; ++i) expect_index_vector(view, "dynamic_pad", i, view.operands[0].rank());
  expect_same_rank(view, "dynamic_pad", results[0]);
  return results;
}

Values expand_dynamic_pad(const OpView& view, Writer& writer) {
  return expand_three(view, writer, 2, "stablehlo.pad", {"edge_padding_low", "edge_padding_high", "interior_padding"});
}

/// The numbers of three index vectors of a call.
std::array<std::vector<int64_t>, 3> read_three(const KernelCall& call, std::span<const ir::Type> operands,
                                               size_t first) {
  std::array<std::vector<int64_t>, 3> out;
  for (size_t i = 0; i < 3; ++i) {
    const ir::Type& type = operands[first + i];
    const std::byte* bytes = call.operands[first + i];
    out[i] = integers_of(type, std::vector<std::byte>(bytes, bytes + tensor::byte_count(type.tensor)));
  }
  return out;
}

void copy_all(const kernels::StridedCopy& copy, std::byte* to, const std::byte* from, core::Checkpoint* checkpoint) {
  for (int64_t item = 0; item < copy.work_count(); ++item) {
    core::pass(checkpoint);
    copy.run(to, from, item, item + 1);
  }
}

PreparedKernel prepare_dynamic_pad(const OpView& local) {
  const std::vector<ir::Type> operands(local.operands.begin(), local.operands.end());
  const Dims out = local.results[0].dims();
  const int64_t size = tensor::size_bytes(operands[0].dtype());
  PreparedKernel kernel;
  kernel.bytes = static_cast<double>(tensor::byte_count(local.results[0].tensor));
  kernel.run = [=](const KernelCall& call) {
    const auto [low, high, interior] = read_three(call, operands, 2);
    const Dims& in = operands[0].dims();
    for (size_t d = 0; d < in.size(); ++d) {
      const int64_t between = core::checked_mul(std::max<int64_t>(in[d] - 1, 0), interior[d]);
      const int64_t padded = core::checked_add(high[d], core::checked_add(low[d], core::checked_add(in[d], between)));
      if (interior[d] < 0 || padded != out[d]) {
        throw core::Error(
            "invalid_argument",
            fmt::format("dynamic_pad: dimension {} would have {} elements, its type says {}", d, padded, out[d]));
      }
    }
    constexpr int64_t kFilledAtOnce = int64_t{1} << 16;
    const int64_t count = tensor::element_count(out);
    for (int64_t at = 0; at < count; at += kFilledAtOnce) {
      core::pass(call.checkpoint);
      kernels::fill_elements(call.results[0] + at * size, call.operands[1], std::min(kFilledAtOnce, count - at), size);
    }
    // Of dimension d: the operand's elements from `first` on that are within the result, as many as `extent` says.
    const Dims from_strides = tensor::row_major_strides(in);
    Dims to_strides = tensor::row_major_strides(out);
    Dims extent(in.size());
    int64_t from = 0, to = 0;
    for (size_t d = 0; d < in.size(); ++d) {
      const int64_t apart = in[d] > 1 ? interior[d] + 1 : 1;
      const int64_t first = low[d] < 0 ? -(low[d] + 1) / apart + 1 : 0;
      if (first >= in[d]) return;
      const int64_t place = low[d] + first * apart;
      if (place >= out[d]) return;
      extent[d] = std::min(in[d] - first, core::ceil_div(out[d] - place, apart));
      from += first * from_strides[d];
      to += place * to_strides[d];
      if (extent[d] > 1) to_strides[d] *= apart;
    }
    copy_all(kernels::StridedCopy(extent, to_strides, from_strides, size), call.results[0] + to * size,
             call.operands[0] + from * size, call.checkpoint);
  };
  return kernel;
}

// real_dynamic_slice

std::vector<ir::Type> infer_real_dynamic_slice(const OpView& view) {
  expect_operand_count(view, "real_dynamic_slice", 4);
  expect_tensor(view, "real_dynamic_slice", 0);
  std::vector<ir::Type> results = declared(view, "real_dynamic_slice", 1);
  expect_same_elements(view, "real_dynamic_slice", results[0]);
  for (size_t i = 1; i < 4; ++i) expect_index_vector(view, "real_dynamic_slice", i, view.operands[0].rank());
  expect_same_rank(view, "real_dynamic_slice", results[0]);
  return results;
}

/// Where it ends a known number of elements behind its begin, as the body of a loop over slices has it, it is a
/// dynamic_slice.
Values real_dynamic_slice_of_sizes(const OpView& view, Writer& writer) {
  const auto& operands = view.op->operands;
  const auto steps = writer.known(operands[3]);
  const auto sizes = writer.known_difference(operands[2], operands[1]);
  if (!steps || !sizes || *steps != std::vector<int64_t>(steps->size(), 1) || !is_static(view.operands[0]))
    return std::nullopt;
  const Dims& dims = view.operands[0].dims();
  for (size_t d = 0; d < dims.size(); ++d) {
    if (sizes->at(d) < 0 || sizes->at(d) > dims[d]) return std::nullopt;
  }
  std::vector<ir::ValueId> all{operands[0]};
  for (int64_t d = 0; d < view.operands[0].rank(); ++d) {
    all.push_back(writer.reshape(writer.slice(operands[1], {d}, {d + 1}), {}));
  }
  return std::vector{writer.add("stablehlo.dynamic_slice", all, {{"slice_sizes", ir::int_array_attr(*sizes)}})};
}

Values expand_real_dynamic_slice(const OpView& view, Writer& writer) {
  const Values slice = expand_three(view, writer, 1, "stablehlo.slice", {"start_indices", "limit_indices", "strides"});
  return slice ? slice : real_dynamic_slice_of_sizes(view, writer);
}

PreparedKernel prepare_real_dynamic_slice(const OpView& local) {
  const std::vector<ir::Type> operands(local.operands.begin(), local.operands.end());
  const Dims out = local.results[0].dims();
  const int64_t size = tensor::size_bytes(operands[0].dtype());
  PreparedKernel kernel;
  kernel.bytes = static_cast<double>(tensor::byte_count(local.results[0].tensor));
  kernel.run = [=](const KernelCall& call) {
    const auto [starts, limits, steps] = read_three(call, operands, 1);
    const Dims& in = operands[0].dims();
    for (size_t d = 0; d < in.size(); ++d) {
      const bool inside = starts[d] >= 0 && starts[d] <= limits[d] && limits[d] <= in[d] && steps[d] >= 1;
      if (!inside || core::ceil_div(limits[d] - starts[d], steps[d]) != out[d]) {
        throw core::Error(
            "invalid_argument",
            fmt::format(
                "real_dynamic_slice: dimension {} of {} elements is sliced as [{}:{}:{}], its type says {} elements", d,
                in[d], starts[d], limits[d], steps[d], out[d]));
      }
    }
    if (tensor::element_count(out) == 0) return;
    Dims strides = tensor::row_major_strides(in);
    int64_t from = 0;
    for (size_t d = 0; d < in.size(); ++d) {
      from += starts[d] * strides[d];
      if (out[d] > 1) strides[d] *= steps[d];
    }
    copy_all(kernels::StridedCopy(out, tensor::row_major_strides(out), strides, size), call.results[0],
             call.operands[0] + from * size, call.checkpoint);
  };
  return kernel;
}

// dynamic_gather

std::vector<ir::Type> infer_dynamic_gather(const OpView& view) {
  expect_operand_count(view, "dynamic_gather", 3);
  expect_tensor(view, "dynamic_gather", 0);
  expect_tensor(view, "dynamic_gather", 1);
  std::vector<ir::Type> results = declared(view, "dynamic_gather", 1);
  expect_same_elements(view, "dynamic_gather", results[0]);
  expect_index_vector(view, "dynamic_gather", 2, view.operands[0].rank());
  const int64_t rank = expect_gather_dims(view, gather_dims(view));
  if (results[0].rank() != rank)
    reject(view, fmt::format("dynamic_gather C22: the result must have {} dimensions, got {}", rank,
                             ir::to_string(results[0])));
  return results;
}

Values expand_dynamic_gather(const OpView& view, Writer& writer) {
  std::vector<int64_t> sizes;
  if (const auto known = writer.known(view.op->operands[2])) {
    sizes = *known;
  } else {
    // The result has the windows' sizes; what it has no dimension for is one.
    const WindowDims dims = gather_dims(view);
    const std::vector<int64_t> windows = window_dims(dims, view.operands[0].rank());
    sizes.assign(static_cast<size_t>(view.operands[0].rank()), 1);
    for (size_t i = 0; i < windows.size() && i < dims.offset.size(); ++i) {
      sizes[static_cast<size_t>(windows[i])] = view.results[0].dims().at(static_cast<size_t>(dims.offset[i]));
    }
    if (std::count(sizes.begin(), sizes.end(), kDynamicDim) != 0) return std::nullopt;
  }
  ir::AttributeList attributes = attributes_of(view);
  attributes.emplace_back("slice_sizes", ir::int_array_attr(sizes));
  return std::vector{
      writer.add("stablehlo.gather", {view.op->operands[0], view.op->operands[1]}, std::move(attributes))};
}

// dynamic_conv

std::vector<ir::Type> infer_dynamic_conv(const OpView& view) {
  expect_tensor_operands(view, "dynamic_conv", 3);
  const ir::Type& padding = view.operands[2];
  const int64_t spatial = view.operands[0].rank() - 2;
  if (padding.rank() != 2 || !tensor::is_integer(padding.dtype()) || padding.dims()[0] != spatial ||
      padding.dims()[1] != 2) {
    reject(view, fmt::format("dynamic_conv C4: padding must be integers of shape {}x2, got {}", spatial,
                             operand_text(view, 2)));
  }
  const ir::Type result = declared(view, "dynamic_conv", 1)[0];
  // A convolution of which only the padding is not known.
  const ir::AttributeList attributes = without(view, {"padding"});
  OpView convolution = view;
  convolution.operands = view.operands.first(2);
  convolution.results = {};
  convolution.attributes = &attributes;
  std::vector<ir::Type> types = find_op("stablehlo.convolution")->infer(convolution);
  for (const int64_t d : convolution_dims(view).out.spatial) types[0].tensor.dims[static_cast<size_t>(d)] = kDynamicDim;
  if (result.is_tensor()) types[0].tensor.dtype = result.dtype();
  return agree(view, "dynamic_conv", std::move(types));
}

Values expand_dynamic_conv(const OpView& view, Writer& writer) {
  const auto known = writer.known(view.op->operands[2]);
  if (!known) return std::nullopt;
  const auto dims = static_cast<int64_t>(known->size()) / 2;
  ir::AttributeList attributes = without(view, {"padding"});
  attributes.emplace_back("padding", ir::Attribute{ir::dense_integers_attr(*known, {dims, 2})});
  return std::vector{writer.add("stablehlo.convolution", {view.op->operands[0], view.op->operands[1]},
                                std::move(attributes),
                                is_static(view.results[0]) ? std::optional(view.results[0]) : std::nullopt)};
}

// set_dimension_size

std::vector<ir::Type> infer_set_dimension_size(const OpView& view) {
  expect_tensor_operands(view, "set_dimension_size", 2);
  if (view.operands[1].rank() != 0 || !tensor::is_integer(view.operands[1].dtype())) {
    reject(view, "set_dimension_size I2: size must be an integer, got " + operand_text(view, 1));
  }
  const int64_t dim = ir::int_or(attributes_of(view), "dimension", -1);
  if (dim < 0 || dim >= view.operands[0].rank()) {
    reject(view, fmt::format("set_dimension_size C2: dimension must be below the rank of {}, got {}",
                             operand_text(view, 0), dim));
  }
  std::vector<ir::Type> results = declared(view, "set_dimension_size", 1);
  expect_same_elements(view, "set_dimension_size", results[0]);
  return results;
}

Values expand_set_dimension_size(const OpView& view, Writer& writer) {
  const auto known = writer.known(view.op->operands[1]);
  if (!known || !is_static(view.operands[0])) return std::nullopt;
  const auto dim = static_cast<size_t>(ir::int_or(attributes_of(view), "dimension", 0));
  Dims limits = view.operands[0].dims();
  if ((*known)[0] < 0 || (*known)[0] > limits[dim]) {
    reject(view, fmt::format("set_dimension_size: size must be between 0 and {}, got {}", limits[dim], (*known)[0]));
  }
  limits[dim] = (*known)[0];
  if (!compatible_shapes(limits, view.results[0].dims())) return std::nullopt;
  if (limits == view.operands[0].dims()) return std::vector{view.op->operands[0]};
  return std::vector{writer.slice(view.op->operands[0], std::vector<int64_t>(limits.size(), 0), limits)};
}

}  // namespace

std::vector<OpDef> dynamic_rows() {
  return {
      {.name = "stablehlo.dynamic_reshape",
       .summary = "reshape to a shape that is a value",
       .example = R"(module @jit_f {
  func.func public @main(%arg0: tensor<2x3xf32>) -> tensor<3x2xf32> {
    %c = stablehlo.constant dense<[3, 2]> : tensor<2xi32>
    %0 = stablehlo.dynamic_reshape %arg0, %c : (tensor<2x3xf32>, tensor<2xi32>) -> tensor<3x2xf32>
    return %0 : tensor<3x2xf32>
  }
}
)",
       .signature = {.operand_min = 2, .operand_max = 2},
       .infer = infer_dynamic_reshape,
       .bounded = BoundedForm::kDynamicReshape,
       .quantized = {.form = QuantizedForm::kStorage, .per_axis = true, .check = check_quantized_reshape},
       .expand = expand_dynamic_reshape},
      {.name = "stablehlo.dynamic_broadcast_in_dim",
       .summary = "broadcast_in_dim to a shape that is a value",
       .example = R"(module @jit_f {
  func.func public @main(%arg0: tensor<3xf32>) -> tensor<2x3xf32> {
    %c = stablehlo.constant dense<[2, 3]> : tensor<2xi32>
    %0 = stablehlo.dynamic_broadcast_in_dim %arg0, %c, dims = [1] : (tensor<3xf32>, tensor<2xi32>) -> tensor<2x3xf32>
    return %0 : tensor<2x3xf32>
  }
}
)",
       .signature = {.operand_min = 2,
                     .operand_max = 2,
                     .attributes = {{"broadcast_dimensions", true, "result dim of each operand dim"},
                                    {"known_expanding_dimensions", false, "a hint that nothing depends on"},
                                    {"known_nonexpanding_dimensions", false, "a hint that nothing depends on"}}},
       .text = {.fields = {{"dims", FieldKind::kIntArray, "broadcast_dimensions"}}},
       .infer = infer_dynamic_broadcast,
       .bounded = BoundedForm::kDynamicBroadcast,
       .quantized = {.form = QuantizedForm::kStorage, .per_axis = true, .check = check_quantized_broadcast},
       .expand = expand_dynamic_broadcast},
      {.name = "stablehlo.dynamic_iota",
       .summary = "iota of a shape that is a value",
       .example = R"(module @jit_f {
  func.func public @main() -> tensor<4xi32> {
    %c = stablehlo.constant dense<4> : tensor<1xi32>
    %0 = stablehlo.dynamic_iota %c, dim = 0 : (tensor<1xi32>) -> tensor<4xi32>
    return %0 : tensor<4xi32>
  }
}
)",
       .signature = {.operand_min = 1,
                     .operand_max = 1,
                     .attributes = {{"iota_dimension", true, "whose index is given"}}},
       .text = {.fields = {{"dim", FieldKind::kInt, "iota_dimension"}}},
       .infer = infer_dynamic_iota,
       .bounded = BoundedForm::kDynamicIota,
       .quantized = kQuantizedComputed,
       .expand = expand_dynamic_iota},
      {.name = "stablehlo.dynamic_pad",
       .summary = "pad by amounts that are values",
       .example = R"(module @jit_f {
  func.func public @main(%arg0: tensor<3xf32>, %arg1: tensor<f32>) -> tensor<6xf32> {
    %low = stablehlo.constant dense<1> : tensor<1xi32>
    %high = stablehlo.constant dense<0> : tensor<1xi32>
    %0 = stablehlo.dynamic_pad %arg0, %arg1, %low, %high, %low : (tensor<3xf32>, tensor<f32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<6xf32>
    return %0 : tensor<6xf32>
  }
}
)",
       .signature = {.operand_min = 5, .operand_max = 5},
       .infer = infer_dynamic_pad,
       .bounded = BoundedForm::kDynamicPad,
       .quantized = kQuantizedInserted,
       .body = LocalKernel{prepare_dynamic_pad},
       .expand = expand_dynamic_pad},
      {.name = "stablehlo.real_dynamic_slice",
       .summary = "slice with bounds and strides that are values",
       .example = R"(module @jit_f {
  func.func public @main(%arg0: tensor<8xf32>) -> tensor<3xf32> {
    %start = stablehlo.constant dense<1> : tensor<1xi32>
    %limit = stablehlo.constant dense<7> : tensor<1xi32>
    %step = stablehlo.constant dense<2> : tensor<1xi32>
    %0 = stablehlo.real_dynamic_slice %arg0, %start, %limit, %step : (tensor<8xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xf32>
    return %0 : tensor<3xf32>
  }
}
)",
       .signature = {.operand_min = 4, .operand_max = 4},
       .infer = infer_real_dynamic_slice,
       .bounded = BoundedForm::kRealDynamicSlice,
       .quantized = kQuantizedMoved,
       .body = LocalKernel{prepare_real_dynamic_slice},
       .expand = expand_real_dynamic_slice},
      {.name = "stablehlo.dynamic_gather",
       .summary = "gather of windows whose sizes are values",
       .example = R"(module @jit_f {
  func.func public @main(%arg0: tensor<8x4xf32>, %arg1: tensor<3x1xi32>) -> tensor<3x4xf32> {
    %c = stablehlo.constant dense<[1, 4]> : tensor<2xi32>
    %0 = "stablehlo.dynamic_gather"(%arg0, %arg1, %c) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false}> : (tensor<8x4xf32>, tensor<3x1xi32>, tensor<2xi32>) -> tensor<3x4xf32>
    return %0 : tensor<3x4xf32>
  }
}
)",
       .signature = {.operand_min = 3,
                     .operand_max = 3,
                     .attributes = {{"dimension_numbers", true, "how operand, indices and result go together"},
                                    {"indices_are_sorted", false, "a hint that nothing depends on"}}},
       .infer = infer_dynamic_gather,
       .bounded = BoundedForm::kDynamicGather,
       .quantized = kQuantizedMoved,
       .expand = expand_dynamic_gather},
      {.name = "stablehlo.dynamic_conv",
       .summary = "convolution with padding that is a value",
       .example = R"(module @jit_f {
  func.func public @main(%arg0: tensor<1x4x4x1xf32>, %arg1: tensor<3x3x1x1xf32>) -> tensor<1x4x4x1xf32> {
    %c = stablehlo.constant dense<1> : tensor<2x2xi32>
    %0 = "stablehlo.dynamic_conv"(%arg0, %arg1, %c) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64}> : (tensor<1x4x4x1xf32>, tensor<3x3x1x1xf32>, tensor<2x2xi32>) -> tensor<1x4x4x1xf32>
    return %0 : tensor<1x4x4x1xf32>
  }
}
)",
       .signature = {.operand_min = 3,
                     .operand_max = 3,
                     .attributes = {{"window_strides", false, "step of the window in each spatial dim"},
                                    {"padding", false, "ignored: the operand says it"},
                                    {"lhs_dilation", false, "distance of the operand's elements"},
                                    {"rhs_dilation", false, "distance of the kernel's elements"},
                                    {"window_reversal", false, "spatial dims whose window is reversed"},
                                    {"dimension_numbers", true, "batch, feature and spatial dims"},
                                    {"feature_group_count", true, "groups of features"},
                                    {"batch_group_count", true, "groups of batches"},
                                    {"precision_config", false, "a hint that nothing depends on"}}},
       .text = {.shape = TextShape::kConvolution},
       .infer = infer_dynamic_conv,
       .bounded = BoundedForm::kDynamicConvolution,
       .expand = expand_dynamic_conv},
      {.name = "stablehlo.set_dimension_size",
       .summary = "the first elements of a dimension, as many as a value says",
       .example = R"(module @jit_f {
  func.func public @main(%arg0: tensor<4xf32>) -> tensor<2xf32> {
    %c = stablehlo.constant dense<2> : tensor<i32>
    %0 = stablehlo.set_dimension_size %arg0, %c, dim = 0 : (tensor<4xf32>, tensor<i32>) -> tensor<2xf32>
    return %0 : tensor<2xf32>
  }
}
)",
       .signature = {.operand_min = 2, .operand_max = 2, .attributes = {{"dimension", true, "which dimension"}}},
       .text = {.fields = {{"dim", FieldKind::kInt, "dimension"}}},
       .infer = infer_set_dimension_size,
       .bounded = BoundedForm::kSetSize,
       .expand = expand_set_dimension_size},
  };
}

}  // namespace meshd::ops
