// The row of reduce_window: windows of a few arrays combined by any body.
#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <string>

#include "service/kernels/tile/tile_program.h"
#include "service/kernels/window/window_reduce.h"
#include "service/ops/checks.h"
#include "service/ops/families.h"
#include "service/ops/kernel_interface.h"
#include "service/ops/quantized.h"
#include "service/ops/reduction/reduction_batch.h"
#include "service/ops/reduction/reduction_steps.h"
#include "service/ops/reduction/reduction_vjp.h"
#include "service/ops/reduction/windows.h"
#include "service/ops/rule_views.h"

namespace meshd::ops {
namespace {

using sharding::FactorKind;
using sharding::FactorRule;
using sharding::FactorRuleBuilder;
using tensor::Dims;

/// The body takes accumulators, then values, all scalars, and returns the new accumulators.
std::vector<ir::Type> body_types(const OpView& view) {
  const size_t count = input_count(view);
  if (view.regions.size() != 1 || view.function == nullptr) {
    return {view.operands.begin(), view.operands.begin() + static_cast<int64_t>(count)};
  }
  const std::vector<ir::Type> arguments = argument_types(view, view.regions[0]);
  std::vector<ir::Type> returned = returned_types(view, view.regions[0]);
  bool fits =
      arguments.size() == 2 * count && returned.size() == count && are_scalars(arguments) && are_scalars(returned);
  for (size_t i = 0; fits && i < count; ++i) {
    fits = arguments[i].dtype() == returned[i].dtype() && arguments[count + i].dtype() == returned[i].dtype();
  }
  if (!fits) {
    reject(view, fmt::format("reduce_window C13: the body must take {} accumulators and as many values of the types it "
                             "returns, all scalars, got {} -> {}",
                             count, types_text(arguments), types_text(returned)));
  }
  return returned;
}

std::vector<ir::Type> infer_reduce_window(const OpView& view) {
  expect_inputs_and_inits(view, "reduce_window", {.count = "C1", .shapes = "C2", .init = "C3"});
  const std::vector<ir::Type> element_types = body_types(view);
  const Dims counts = window_counts(view, reduce_window_dims(view));
  std::vector<ir::Type> results;
  for (const ir::Type& type : element_types) results.push_back(ir::Type::of({type.dtype(), counts}));
  return agree(view, "reduce_window C15", std::move(results));
}

/// A dimension with windows needs its neighbours, even where it keeps its size.
FactorRule reduce_window_rule(const OpView& view) {
  const Dims& out = view.results[0].dims();
  const std::vector<int64_t> window = ir::ints(attributes_of(view), "window_dimensions");
  FactorRuleBuilder builder = rule_builder(view);
  for (size_t d = 0; d < out.size(); ++d) {
    const bool alone = window.at(d) == 1 && out[d] == view.operands[0].dims()[d];
    builder.everywhere(static_cast<int>(d), out[d], alone ? FactorKind::kPassThrough : FactorKind::kPermutation);
  }
  return builder.build();
}

/// The body as one operation, for which padding with its start value is neutral; else nothing.
std::optional<Combine> combine_windows(const OpView& view) {
  if (input_count(view) != 1) return std::nullopt;
  const std::vector<kernels::ScalarOp> ops = combining_ops(view, 1);
  return ops.empty() ? std::nullopt : std::optional(combined_by(ops[0]));
}

ir::AttributeList fetched_windows(const OpView& global, std::span<const HaloRead> fetched) {
  std::vector<size_t> which;
  for (const HaloRead& read : fetched) which.push_back(read.operand_dim);
  return without_padding(global, "base_dilations", global.operands[0].dims().size(), which);
}

std::vector<Halo> reduce_window_halo(const OpView& view) {
  const std::vector<kernels::WindowDim> dims = reduce_window_dims(view);
  Halo out{{}, false, fetched_windows};
  for (size_t i = 0; i < input_count(view); ++i) {
    for (size_t d = 0; d < dims.size(); ++d) {
      if (dims[d].is_trivial()) continue;
      HaloRead read = window_read(dims[d], d);
      read.operand = i;
      read.operand_dim = d;
      read.beyond = Beyond::kOperand;
      read.beyond_operand = input_count(view) + i;
      out.reads.push_back(read);
    }
  }
  return {std::move(out)};
}

PreparedKernel prepare_reduce_window(const OpView& local) {
  const size_t count = input_count(local);
  std::vector<tensor::DType> elements;
  PreparedKernel kernel;
  for (size_t i = 0; i < count; ++i) {
    elements.push_back(local.operands[i].dtype());
    kernel.bytes += static_cast<double>(tensor::byte_count(local.operands[i].tensor)) +
                    static_cast<double>(tensor::byte_count(local.results[i].tensor));
  }
  const auto monoid =
      std::make_shared<const kernels::Monoid>(compile_scalar_region(*local.function, local.regions[0]), elements);
  const auto windows = std::make_shared<const kernels::WindowReduce>(monoid, reduce_window_dims(local));
  kernel.work_count = windows->work_count();
  kernel.passes_checkpoints = true;
  kernel.scratch_bytes = windows->scratch_bytes();
  kernel.flops = windows->combine_count() * monoid->flops();
  kernel.run = [windows, count](const KernelCall& call) {
    windows->run({.inputs = call.operands,
                  .init = call.operands + count,
                  .results = call.results,
                  .begin = call.begin,
                  .end = call.end,
                  .scratch = call.scratch,
                  .checkpoint = call.checkpoint});
  };
  return kernel;
}

}  // namespace

std::vector<OpDef> reduce_window_rows() {
  return {
      {.name = "stablehlo.reduce_window",
       .summary = "elements of windows combined by the body, beginning with the init values",
       .example = R"(module @jit_f {
  func.func public @main(%arg0: tensor<4x6xf32>) -> tensor<2x3xf32> {
    %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %0 = "stablehlo.reduce_window"(%arg0, %cst) <{window_dimensions = array<i64: 2, 2>, window_strides = array<i64: 2, 2>}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %1 = stablehlo.maximum %arg1, %arg2 : tensor<f32>
      stablehlo.return %1 : tensor<f32>
    }) : (tensor<4x6xf32>, tensor<f32>) -> tensor<2x3xf32>
    return %0 : tensor<2x3xf32>
  }
}
)",
       .signature = {.operand_min = 2,
                     .operand_max = -1,
                     .region_count = 1,
                     .attributes = {{"window_dimensions", true, "size of a window"},
                                    {"window_strides", false, "from one window to the next"},
                                    {"base_dilations", false, "elements of the inputs are this far apart"},
                                    {"window_dilations", false, "elements of a window are this far apart"},
                                    {"padding", false, "places before and behind the inputs"}}},
       .infer = infer_reduce_window,
       .bounded = BoundedForm::kReduceWindow,
       .quantized = kQuantizedReduced,
       .rule = reduce_window_rule,
       .body = LocalKernel{prepare_reduce_window},
       .combine = combine_windows,
       .region_arguments = RegionArguments::kReduction,
       .derivative = {.vjp = vjp_reduce_window, .as_others = reduce_window_in_steps},
       .batch = batch_reduce_window,
       .halo = reduce_window_halo},
  };
}

}  // namespace meshd::ops
