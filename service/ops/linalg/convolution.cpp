// The row of convolution: dimension numbers in any order, groups of features or of batches, any element type.
#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <string>

#include "service/kernels/product/convolution.h"
#include "service/ops/checks.h"
#include "service/ops/families.h"
#include "service/ops/kernel_interface.h"
#include "service/ops/linalg/convolution_dims.h"
#include "service/ops/linalg/linalg_vjp.h"
#include "service/ops/quantized.h"
#include "service/ops/reduction/windows.h"
#include "service/ops/rule_views.h"
#include "service/ops/shards/shard_writers.h"

namespace meshd::ops {
namespace {

using sharding::FactorKind;
using sharding::FactorRule;
using sharding::FactorRuleBuilder;
using tensor::Dims;

int64_t size_of(const ir::Type& type, int64_t dim) { return type.dims()[static_cast<size_t>(dim)]; }

}  // namespace

ConvolutionDims convolution_dims(const OpView& view) {
  const ir::AttributeList& attributes = attributes_of(view);
  const ir::AttributeList& numbers = ir::dict(attributes, "dimension_numbers").entries;
  const auto side = [&](const std::string& major, const std::string& minor, const std::string& spatial) {
    return SideDims{ir::int_or(numbers, major, -1), ir::int_or(numbers, minor, -1), ir::ints_or(numbers, spatial, {})};
  };
  return {side("input_batch_dimension", "input_feature_dimension", "input_spatial_dimensions"),
          side("kernel_output_feature_dimension", "kernel_input_feature_dimension", "kernel_spatial_dimensions"),
          side("output_batch_dimension", "output_feature_dimension", "output_spatial_dimensions"),
          ir::int_or(attributes, "feature_group_count", 1), ir::int_or(attributes, "batch_group_count", 1)};
}

std::vector<kernels::WindowDim> convolution_windows(const OpView& view, const ConvolutionDims& dims) {
  const size_t count = dims.lhs.spatial.size();
  const std::vector<int64_t> strides = positive_ints(view, "convolution", "window_strides", count, "C2", "C3");
  const std::vector<int64_t> padding = padding_pairs(view, "convolution", count, "C4");
  const std::vector<int64_t> lhs_dilation = positive_ints(view, "convolution", "lhs_dilation", count, "C5", "C6");
  const std::vector<int64_t> rhs_dilation = positive_ints(view, "convolution", "rhs_dilation", count, "C7", "C8");
  std::vector<kernels::WindowDim> out;
  for (size_t d = 0; d < count; ++d) {
    out.push_back({size_of(view.operands[0], dims.lhs.spatial[d]), size_of(view.operands[1], dims.rhs.spatial[d]),
                   strides[d], rhs_dilation[d], lhs_dilation[d], padding[2 * d], padding[2 * d + 1]});
  }
  return out;
}

std::vector<int64_t> convolution_reversal(const OpView& view, size_t count) {
  std::vector<int64_t> reversal = ir::ints_or(attributes_of(view), "window_reversal", std::vector<int64_t>(count, 0));
  if (reversal.size() != count) {
    reject(view, fmt::format("convolution C9: 'window_reversal' must have {} entries, got {}", count, reversal.size()));
  }
  return reversal;
}

namespace {

void expect_side(const OpView& view, const SideDims& side, int64_t rank, const char* what, const char* count_label,
                 const char* label) {
  if (static_cast<int64_t>(side.spatial.size()) != rank - 2) {
    reject(view, fmt::format("convolution {}: {} must have {} spatial dimensions, got {}", count_label, what, rank - 2,
                             side.spatial.size()));
  }
  std::vector<int64_t> all = side.spatial;
  all.insert(all.end(), {side.major, side.minor});
  for (const int64_t dim : all) {
    if (dim < 0 || dim >= rank || std::count(all.begin(), all.end(), dim) > 1) {
      reject(view, fmt::format("convolution {}: dimensions of {} must be 0 to {}, each once, got {}", label, what,
                               rank - 1, dim));
    }
  }
}

void expect_divides(const OpView& view, const char* label, const char* what, int64_t size, int64_t groups) {
  if (size == tensor::kDynamicDim || size % groups == 0) return;
  reject(view,
         fmt::format("convolution {}: {} must be divisible by the group count {}, got {}", label, what, groups, size));
}

std::vector<ir::Type> infer_convolution(const OpView& view) {
  expect_tensor_operands(view, "convolution", 2);
  const ir::Type& lhs = view.operands[0];
  const ir::Type& rhs = view.operands[1];
  if (lhs.rank() != rhs.rank() || lhs.rank() < 2) {
    reject(view, "convolution C1: operands must have one rank, at least 2, got " + operand_text(view, 0) + " and " +
                     operand_text(view, 1));
  }
  const ConvolutionDims dims = convolution_dims(view);
  if (dims.feature_groups < 1) reject(view, "convolution C21: feature_group_count must be positive");
  if (dims.batch_groups < 1) reject(view, "convolution C22: batch_group_count must be positive");
  if (dims.feature_groups > 1 && dims.batch_groups > 1) {
    reject(view, fmt::format("convolution C23: feature_group_count or batch_group_count must be 1, got {} and {}",
                             dims.feature_groups, dims.batch_groups));
  }
  // checks: convolution C2: window_strides has an entry for each spatial dimension
  // checks: convolution C3: window_strides are positive
  // checks: convolution C12: lhs has as many spatial dimensions as its rank without two
  // checks: convolution C13: dimensions of lhs are those of its rank, each once
  // checks: convolution C17: rhs has as many spatial dimensions as its rank without two
  // checks: convolution C18: dimensions of rhs are those of its rank, each once
  // checks: convolution C19: the result has as many spatial dimensions as its rank without two
  // checks: convolution C20: dimensions of the result are those of its rank, each once
  expect_side(view, dims.lhs, lhs.rank(), "lhs", "C12", "C13");
  expect_side(view, dims.rhs, lhs.rank(), "rhs", "C17", "C18");
  expect_side(view, dims.out, lhs.rank(), "the result", "C19", "C20");
  const std::vector<kernels::WindowDim> windows = convolution_windows(view, dims);
  convolution_reversal(view, windows.size());
  const int64_t batch = size_of(lhs, dims.lhs.major);
  const int64_t features = size_of(lhs, dims.lhs.minor);
  const int64_t kernel_features = size_of(rhs, dims.rhs.minor);
  const int64_t out_features = size_of(rhs, dims.rhs.major);
  // checks: convolution C10: the batch dimension of lhs is divisible by batch_group_count
  // checks: convolution C11: the feature dimension of lhs is divisible by feature_group_count
  // checks: convolution C15: the output feature dimension of rhs is divisible by batch_group_count
  // checks: convolution C16: the output feature dimension of rhs is divisible by feature_group_count
  expect_divides(view, "C10", "the batch dimension of lhs", batch, dims.batch_groups);
  expect_divides(view, "C11", "the feature dimension of lhs", features, dims.feature_groups);
  expect_divides(view, "C15", "the output feature dimension of rhs", out_features, dims.batch_groups);
  expect_divides(view, "C16", "the output feature dimension of rhs", out_features, dims.feature_groups);
  if (features != tensor::kDynamicDim && kernel_features != tensor::kDynamicDim &&
      kernel_features != features / dims.feature_groups) {
    reject(view, "convolution C14: the input feature dimension of rhs must be that of lhs by the feature groups, " +
                     dim_text(features / dims.feature_groups) + ", got " + dim_text(kernel_features));
  }
  Dims result(lhs.dims().size());
  result[static_cast<size_t>(dims.out.major)] = batch == tensor::kDynamicDim ? batch : batch / dims.batch_groups;
  result[static_cast<size_t>(dims.out.minor)] = out_features;
  for (size_t d = 0; d < windows.size(); ++d) {
    const bool is_dynamic = windows[d].window == tensor::kDynamicDim;
    // An empty kernel gives empty sums at every position of a kernel of one tap.
    kernels::WindowDim window = windows[d];
    window.window = std::max<int64_t>(window.window, 1);
    result[static_cast<size_t>(dims.out.spatial[d])] =
        is_dynamic ? tensor::kDynamicDim : window_counts(view, {window}).front();
  }
  const bool declares = view.results.size() == 1 && view.results[0].is_tensor();
  const tensor::DType dtype = declares ? view.results[0].dtype() : lhs.dtype();
  return agree(view, "convolution C25", {ir::Type::of({dtype, result})});
}

/// Spatial factors: of the two sizes of a window and their number, the larger one is the major factor.
FactorRule convolution_rule(const OpView& view) {
  const ConvolutionDims dims = convolution_dims(view);
  const ir::Type& lhs = view.operands[0];
  const ir::Type& rhs = view.operands[1];
  const ir::Type& out = view.results[0];
  const auto in = [](int64_t dim) { return static_cast<int>(dim); };
  FactorRuleBuilder builder = rule_builder(view);
  if (dims.batch_groups > 1)
    builder.factor({in(dims.lhs.major), in(dims.rhs.major)}, {in(dims.out.minor)}, dims.batch_groups);
  builder.factor({in(dims.lhs.major), -1}, {in(dims.out.major)}, size_of(out, dims.out.major));
  for (size_t d = 0; d < dims.lhs.spatial.size(); ++d) {
    const int in_dim = in(dims.lhs.spatial[d]);
    const int kernel_dim = in(dims.rhs.spatial[d]);
    const int out_dim = in(dims.out.spatial[d]);
    const int64_t windows = size_of(out, out_dim);
    const int64_t window = size_of(rhs, kernel_dim);
    int64_t left = size_of(lhs, in_dim);
    const auto add = [&](int64_t size, bool contracting) {
      size = std::min(left, size);
      if (size <= 1) return;
      builder.factor({in_dim, contracting ? kernel_dim : -1}, {contracting ? -1 : out_dim}, size,
                     contracting ? FactorKind::kReduction : FactorKind::kPermutation);
      left /= size;
    };
    add(std::max(windows, window), windows < window);
    add(std::min(windows, window), windows >= window);
  }
  if (dims.feature_groups > 1)
    builder.factor({in(dims.lhs.minor), in(dims.rhs.major)}, {in(dims.out.minor)}, dims.feature_groups);
  // A feature of its own group has nothing beside the group: its factor is in the kernel alone.
  const int64_t group_size = size_of(rhs, dims.rhs.minor);
  const int64_t groups = dims.batch_groups * dims.feature_groups;
  const int64_t group_outputs = size_of(out, dims.out.minor) / groups;
  builder.factor({dims.feature_groups > 1 && group_size == 1 ? -1 : in(dims.lhs.minor), in(dims.rhs.minor)}, {-1},
                 group_size, FactorKind::kReduction);
  if (group_outputs > 1 || groups == 1) builder.factor({-1, in(dims.rhs.major)}, {in(dims.out.minor)}, group_outputs);
  return builder.build();
}

ir::AttributeList fetched_convolution(const OpView& global, std::span<const HaloRead> fetched) {
  const std::vector<int64_t> spatial = convolution_dims(global).lhs.spatial;
  std::vector<size_t> which;
  for (const HaloRead& read : fetched) {
    const auto at = std::find(spatial.begin(), spatial.end(), static_cast<int64_t>(read.operand_dim));
    which.push_back(static_cast<size_t>(at - spatial.begin()));
  }
  return without_padding(global, "lhs_dilation", spatial.size(), which);
}

/// What each tap of the kernel reads: the places at which the windows have it.
HaloRead tap_read(const kernels::WindowDim& window, size_t kernel_dim) {
  HaloRead read;
  read.summed_operand = 1;
  read.along_dim = kernel_dim;
  read.along_size = window.window;
  read.start = core::checked_mul(window.pad_low, -1);
  read.step = window.window_dilation;
  read.extent = core::checked_add(core::checked_mul(window.output_size() - 1, window.stride), 1);
  read.spread = window.base_dilation;
  return read;
}

/// Rows of lhs are read along the result; or, where a window is longer than there are windows (gradients of kernels),
/// along the kernel, as the factor rule has it.
std::vector<Halo> convolution_halo(const OpView& view) {
  const ConvolutionDims dims = convolution_dims(view);
  const std::vector<kernels::WindowDim> windows = convolution_windows(view, dims);
  const std::vector<int64_t> reversal = convolution_reversal(view, windows.size());
  Halo by_windows{{}, false, fetched_convolution};
  Halo by_taps{{}, false, fetched_convolution};
  bool has_taps = false;
  for (size_t d = 0; d < windows.size(); ++d) {
    // Windows of no taps read nothing.
    if (windows[d].window == 0) continue;
    const auto add = [&](Halo& halo, HaloRead read) {
      read.operand_dim = static_cast<size_t>(dims.lhs.spatial[d]);
      read.beyond = Beyond::kZero;
      halo.reads.push_back(read);
    };
    const bool is_along_taps = windows[d].window > windows[d].output_size() && reversal[d] == 0;
    if (is_along_taps) add(by_taps, tap_read(windows[d], static_cast<size_t>(dims.rhs.spatial[d])));
    has_taps = has_taps || is_along_taps;
    if (windows[d].output_size() <= 1) continue;
    const HaloRead along_windows = window_read(windows[d], static_cast<size_t>(dims.out.spatial[d]));
    add(by_windows, along_windows);
    if (!is_along_taps) add(by_taps, along_windows);
  }
  std::vector<Halo> out;
  if (!by_windows.reads.empty()) out.push_back(std::move(by_windows));
  if (has_taps) out.push_back(std::move(by_taps));
  return out;
}

kernels::ConvolutionStrides strides_of(const ir::Type& type, const SideDims& side) {
  const Dims strides = tensor::row_major_strides(type.dims());
  kernels::ConvolutionStrides out;
  out.major = strides[static_cast<size_t>(side.major)];
  out.minor = strides[static_cast<size_t>(side.minor)];
  for (const int64_t dim : side.spatial) out.spatial.push_back(strides[static_cast<size_t>(dim)]);
  return out;
}

/// Sharding by groups leaves each shard fewer of them.
ir::AttributeList localize_convolution(const OpView& global, const OpView& local) {
  const ConvolutionDims dims = convolution_dims(global);
  ir::AttributeList list = attributes_of(global);
  if (dims.feature_groups > 1) {
    const int64_t features = size_of(local.operands[0], dims.lhs.minor);
    ir::set(list, "feature_group_count",
            ir::integer_attr(features / std::max<int64_t>(1, size_of(local.operands[1], dims.rhs.minor))));
  }
  if (dims.batch_groups > 1) {
    const int64_t batch = size_of(local.operands[0], dims.lhs.major);
    ir::set(list, "batch_group_count",
            ir::integer_attr(batch / std::max<int64_t>(1, size_of(local.results[0], dims.out.major))));
  }
  return list;
}

PreparedKernel prepare_convolution(const OpView& local) {
  const ConvolutionDims dims = convolution_dims(local);
  const ir::Type& lhs = local.operands[0];
  const ir::Type& rhs = local.operands[1];
  const ir::Type& out = local.results[0];
  kernels::ConvolutionSpec spec;
  spec.copies = local.copies;
  spec.groups = std::max(dims.feature_groups, dims.batch_groups);
  spec.batch = size_of(out, dims.out.major);
  spec.in_features = size_of(rhs, dims.rhs.minor);
  spec.out_features = size_of(out, dims.out.minor) / std::max<int64_t>(1, spec.groups);
  spec.lhs = strides_of(lhs, dims.lhs);
  spec.rhs = strides_of(rhs, dims.rhs);
  spec.out = strides_of(out, dims.out);
  spec.lhs.group = dims.batch_groups > 1 ? spec.batch * spec.lhs.major : spec.in_features * spec.lhs.minor;
  spec.rhs.group = spec.out_features * spec.rhs.major;
  spec.out.group = spec.out_features * spec.out.minor;
  spec.lhs_dtype = lhs.dtype();
  spec.rhs_dtype = rhs.dtype();
  spec.out_dtype = out.dtype();
  const std::vector<kernels::WindowDim> windows = convolution_windows(local, dims);
  const std::vector<int64_t> reversal = convolution_reversal(local, windows.size());
  for (size_t d = 0; d < windows.size(); ++d) {
    const kernels::WindowDim& window = windows[d];
    spec.dims.push_back({window.size, window.window, size_of(out, dims.out.spatial[d]), window.stride, window.pad_low,
                         window.base_dilation, window.window_dilation, reversal[d] != 0});
  }
  const auto convolution = std::make_shared<const kernels::Convolution>(spec);
  PreparedKernel kernel;
  kernel.work_count = convolution->work_count();
  kernel.barriers = convolution->barriers();
  kernel.passes_checkpoints = true;
  kernel.scratch_bytes = convolution->scratch_bytes();
  kernel.workspace_bytes = convolution->workspace_bytes();
  kernel.flops = convolution->flops();
  kernel.bytes = static_cast<double>(tensor::byte_count(lhs.tensor)) +
                 static_cast<double>(tensor::byte_count(rhs.tensor)) +
                 static_cast<double>(tensor::byte_count(out.tensor));
  kernel.run = [convolution](const KernelCall& call) {
    convolution->run({call.operands[0], call.operands[1], call.results[0], call.begin, call.end, call.scratch,
                      call.workspace, call.checkpoint});
  };
  return kernel;
}

/// A convolution's sum over elements of windows is sharded only where there is one window, of all elements in order:
/// elsewhere every shard of the kernel is multiplied with every shard of lhs.
bool convolution_keeps_unsharded(const OpView& view, const FactorRule& rule, size_t factor) {
  if (rule.factors[factor].kind != FactorKind::kReduction) return false;
  const ConvolutionDims dims = convolution_dims(view);
  const std::vector<kernels::WindowDim> windows = convolution_windows(view, dims);
  const std::vector<int64_t> reversal = convolution_reversal(view, windows.size());
  for (size_t d = 0; d < windows.size(); ++d) {
    if (!has_factor(rule, static_cast<size_t>(dims.lhs.spatial[d]), factor)) continue;
    const kernels::WindowDim& window = windows[d];
    return !(window.window == window.size && window.output_size() == 1 && window.pad_low == 0 &&
             window.window_dilation == 1 && window.base_dilation == 1 && reversal[d] == 0);
  }
  return false;
}

}  // namespace

std::vector<OpDef> convolution_rows() {
  return {
      {.name = "stablehlo.convolution",
       .summary = "products of windows of lhs with a kernel, summed over the windows' elements and input features",
       .example = R"(module @jit_f {
  func.func public @main(%arg0: tensor<2x6x6x3xf32>, %arg1: tensor<3x3x3x4xf32>) -> tensor<2x6x6x4xf32> {
    %0 = stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x6x6x3xf32>, tensor<3x3x3x4xf32>) -> tensor<2x6x6x4xf32>
    return %0 : tensor<2x6x6x4xf32>
  }
}
)",
       .signature = {.operand_min = 2,
                     .operand_max = 2,
                     .attributes = {{"dimension_numbers", true, "which dimension is what"},
                                    {"window_strides", false, "from one window to the next"},
                                    {"padding", false, "places before and behind lhs"},
                                    {"lhs_dilation", false, "elements of lhs are this far apart"},
                                    {"rhs_dilation", false, "elements of a window are this far apart"},
                                    {"window_reversal", false, "the kernel is taken from its end"},
                                    {"feature_group_count", true, "features are convolved in so many groups"},
                                    {"batch_group_count", true, "batches are convolved in so many groups"},
                                    {"precision_config", false,
                                     "a hint; products are never less precise than their types"}}},
       .text = {.shape = TextShape::kConvolution},
       .infer = infer_convolution,
       .bounded = BoundedForm::kConvolution,
       .quantized = {.form = QuantizedForm::kExpressed, .per_axis = true, .check = check_quantized_convolution},
       .rule = convolution_rule,
       .body = LocalKernel{prepare_convolution},
       .combine = combine_sums,
       .localize = localize_convolution,
       .derivative = {vjp_convolution},
       .keeps_unsharded = convolution_keeps_unsharded,
       .halo = convolution_halo},
  };
}

}  // namespace meshd::ops
