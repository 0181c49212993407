// The row of select_and_scatter: what gradients of pooling become.
#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include "service/kernels/tile/tile_program.h"
#include "service/kernels/window/select_and_scatter.h"
#include "service/ops/checks.h"
#include "service/ops/families.h"
#include "service/ops/kernel_interface.h"
#include "service/ops/quantized.h"
#include "service/ops/reduction/reduction_batch.h"
#include "service/ops/reduction/reduction_vjp.h"
#include "service/ops/reduction/windows.h"
#include "service/ops/rewrites/writer.h"
#include "service/ops/rule_views.h"

namespace meshd::ops {
namespace {

using sharding::FactorKind;
using sharding::FactorRule;
using sharding::FactorRuleBuilder;
using tensor::Dims;

// Attribute with the sharded dimensions, whose shards come with halo rows.
constexpr std::string_view kShardedDims = "meshd.sharded_dims";
/// A region of two scalars of `dtype` that returns one scalar, of `result` where that is given.
tensor::DType body_result(const OpView& view, size_t region, const char* label, std::optional<tensor::DType> result) {
  const std::vector<ir::Type> arguments = argument_types(view, view.regions[region]);
  const std::vector<ir::Type> returned = returned_types(view, view.regions[region]);
  const bool fits = arguments.size() == 2 && returned.size() == 1 && are_scalars(arguments) && are_scalars(returned) &&
                    arguments[0].dtype() == arguments[1].dtype() &&
                    returned[0].dtype() == result.value_or(arguments[0].dtype()) &&
                    (!result || arguments[0].dtype() == view.operands[0].dtype());
  if (!fits) {
    reject(view, std::string("select_and_scatter ") + label +
                     ": the body must take two scalars of one type and return " +
                     (result ? "tensor<i1>" : "one of it") + ", got " + types_text(arguments) + " -> " +
                     types_text(returned));
  }
  return returned[0].dtype();
}

std::vector<ir::Type> infer_select_and_scatter(const OpView& view) {
  expect_tensor_operands(view, "select_and_scatter", 3);
  const ir::Type& operand = view.operands[0];
  const ir::Type& source = view.operands[1];
  const ir::Type& init = view.operands[2];
  if (source.dtype() != operand.dtype()) {
    reject(view, "select_and_scatter C1: operand and source must have one element type, got " + operand_text(view, 0) +
                     " and " + operand_text(view, 1));
  }
  if (init.dtype() != operand.dtype() || init.rank() != 0) {
    reject(view, "select_and_scatter C3: init_value must be a scalar of the operand's element type (operand " +
                     operand_text(view, 0) + ", init_value " + operand_text(view, 2) + ")");
  }
  const Dims counts = window_counts(view, select_and_scatter_dims(view));
  if (!compatible_shapes(source.dims(), counts)) {
    reject(view, fmt::format("select_and_scatter C2: source must have an element for each window, {}, got {}",
                             ir::to_string(ir::Type::of({source.dtype(), counts})), operand_text(view, 1)));
  }
  tensor::DType dtype = operand.dtype();
  if (view.regions.size() == 2 && view.function != nullptr) {
    body_result(view, 0, "C9", tensor::DType::kBool);
    dtype = body_result(view, 1, "C10", std::nullopt);
  }
  return agree(view, "select_and_scatter C11", {ir::Type::of({dtype, operand.dims()})});
}

/// Neighbours of the operand exchange edges; the source is replicated.
FactorRule select_and_scatter_rule(const OpView& view) {
  const Dims& input = view.operands[0].dims();
  const Dims& source = view.operands[1].dims();
  FactorRuleBuilder builder = rule_builder(view);
  for (size_t d = 0; d < input.size(); ++d) {
    const int dim = static_cast<int>(d);
    if (input[d] == source[d]) {
      builder.everywhere(dim, input[d]);
      continue;
    }
    builder.factor({-1, dim, -1}, {-1}, source[d], FactorKind::kNeedReplication);
    builder.factor({dim, -1, -1}, {dim}, input[d], FactorKind::kPermutation);
  }
  return builder.build();
}

ir::AttributeList sharded_attributes(const OpView& global, std::span<const HaloRead> fetched) {
  std::vector<int64_t> sharded;
  for (const HaloRead& read : fetched) {
    if (read.operand == 0) sharded.push_back(static_cast<int64_t>(read.operand_dim));
  }
  ir::AttributeList list = attributes_of(global);
  list.emplace_back(std::string(kShardedDims), ir::int_array_attr(std::move(sharded)));
  list.emplace_back(std::string(kGlobalDims), ir::int_array_attr(global.operands[0].dims()));
  return list;
}

/// A place gets what the windows around it choose: all elements of these windows are read, and their sources, at the
/// windows' starts.
std::vector<Halo> select_and_scatter_halo(const OpView& view) {
  const std::vector<kernels::WindowDim> dims = select_and_scatter_dims(view);
  Halo out{{}, false, sharded_attributes};
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d].is_trivial() || dims[d].output_size() == 0) continue;
    HaloRead read;
    read.operand_dim = read.along_dim = d;
    read.along_size = dims[d].size;
    read.start = 1 - dims[d].window;
    read.extent = core::checked_add(core::checked_mul(2, dims[d].window), -1);
    read.grid = dims[d].stride;
    read.phase = core::checked_mul(dims[d].pad_low, -1);
    read.tail = dims[d].window - 1;
    read.beyond = Beyond::kZero;
    out.reads.push_back(read);
    read.operand = 1;
    read.start = core::checked_add(read.start, dims[d].pad_low);
    read.extent = dims[d].window;
    read.spread = dims[d].stride;
    read.phase = 0;
    read.tail = 0;
    out.reads.push_back(read);
  }
  if (out.reads.empty()) return {};
  return {std::move(out)};
}

/// Global windows, and which dimensions of the call are sharded.
std::vector<kernels::SelectDim> held_dims(const OpView& local) {
  const Dims global_dims = ir::ints_or(attributes_of(local), kGlobalDims, local.operands[0].dims());
  const std::vector<int64_t> sharded = ir::ints_or(attributes_of(local), kShardedDims, {});
  const std::vector<ir::Type> types{ir::Type::of({local.operands[0].dtype(), global_dims})};
  OpView global = local;
  global.operands = types;
  std::vector<kernels::SelectDim> dims;
  for (const kernels::WindowDim& window : select_and_scatter_dims(global)) dims.push_back({window, std::nullopt});
  for (size_t d = 0; d < dims.size(); ++d) {
    const int64_t rows = local.results[0].dims()[d];
    if (std::find(sharded.begin(), sharded.end(), static_cast<int64_t>(d)) != sharded.end()) {
      dims[d].part_rows = rows;
    } else {
      dims[d].windows.size = rows;
    }
  }
  return dims;
}

PreparedKernel prepare_select_and_scatter(const OpView& local) {
  const tensor::DType dtype = local.operands[0].dtype();
  const auto scatter = std::make_shared<const kernels::Monoid>(compile_scalar_region(*local.function, local.regions[1]),
                                                               std::vector<tensor::DType>{dtype});
  const auto op = std::make_shared<const kernels::SelectAndScatter>(
      compile_scalar_region(*local.function, local.regions[0]), scatter, dtype, held_dims(local));
  PreparedKernel kernel;
  kernel.work_count = op->work_count();
  kernel.passes_checkpoints = true;
  kernel.scratch_bytes = op->scratch_bytes();
  kernel.flops = op->flops();
  kernel.bytes = static_cast<double>(tensor::byte_count(local.operands[0].tensor)) +
                 static_cast<double>(tensor::byte_count(local.operands[1].tensor)) +
                 static_cast<double>(tensor::byte_count(local.results[0].tensor));
  kernel.uses_offsets = op->is_part();
  kernel.run = [op](const KernelCall& call) {
    op->run({call.operands[0], call.operands[1], call.operands[2], call.results[0], call.result_offsets, call.begin,
             call.end, call.scratch, call.checkpoint});
  };
  return kernel;
}

/// As many windows as elements do not make them independent.
bool select_and_scatter_keeps_unsharded(const OpView& view, const FactorRule& rule, size_t factor) {
  const std::vector<kernels::WindowDim> dims = select_and_scatter_dims(view);
  for (size_t d = 0; d < dims.size(); ++d) {
    if (has_factor(rule, d, factor) && !dims[d].is_trivial()) return true;
  }
  return false;
}

}  // namespace

std::vector<OpDef> select_and_scatter_rows() {
  return {
      {.name = "stablehlo.select_and_scatter",
       .summary = "each window selects an element, to whose place the source's element is scattered",
       .example = R"(module @jit_f {
  func.func public @main(%arg0: tensor<4x6xf32>, %arg1: tensor<2x3xf32>) -> tensor<4x6xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = "stablehlo.select_and_scatter"(%arg0, %arg1, %cst) <{window_dimensions = array<i64: 2, 2>, window_strides = array<i64: 2, 2>}> ({
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
      %1 = stablehlo.compare GE, %arg2, %arg3 : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    }, {
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
      %1 = stablehlo.add %arg2, %arg3 : tensor<f32>
      stablehlo.return %1 : tensor<f32>
    }) : (tensor<4x6xf32>, tensor<2x3xf32>, tensor<f32>) -> tensor<4x6xf32>
    return %0 : tensor<4x6xf32>
  }
}
)",
       .signature = {.operand_min = 3,
                     .operand_max = 3,
                     .region_count = 2,
                     .attributes = {{"window_dimensions", false, "size of a window; ones"},
                                    {"window_strides", false, "from one window to the next"},
                                    {"padding", false, "places before and behind the operand"}}},
       .infer = infer_select_and_scatter,
       .quantized = kQuantizedJoined,
       .rule = select_and_scatter_rule,
       .body = LocalKernel{prepare_select_and_scatter},
       .region_arguments = RegionArguments::kFixed,
       .derivative = {vjp_select_and_scatter},
       .batch = batch_select_and_scatter,
       .keeps_unsharded = select_and_scatter_keeps_unsharded,
       .halo = select_and_scatter_halo},
  };
}

}  // namespace meshd::ops
