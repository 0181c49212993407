// The row of reduce: any body, any number of operands, over the reduction of the fused kernel with no chain before it.
#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <string>

#include "service/kernels/elementwise/scalar_op.h"
#include "service/kernels/fused/fused_loop.h"
#include "service/kernels/tile/tile_program.h"
#include "service/ops/checks.h"
#include "service/ops/families.h"
#include "service/ops/fused_call.h"
#include "service/ops/kernel_interface.h"
#include "service/ops/quantized.h"
#include "service/ops/reduction/reduction_batch.h"
#include "service/ops/reduction/reduction_steps.h"
#include "service/ops/reduction/reduction_vjp.h"
#include "service/ops/rule_views.h"

namespace meshd::ops {
namespace {

using kernels::ScalarOp;
using sharding::FactorKind;
using sharding::FactorRule;
using sharding::FactorRuleBuilder;
using tensor::Dims;

std::vector<int64_t> reduced_dims(const OpView& view) { return ir::ints(attributes_of(view), "dimensions"); }

/// The body takes accumulators, then values, all scalars, and returns the new accumulators.
void expect_body(const OpView& view) {
  if (view.regions.size() != 1 || view.function == nullptr) return;
  const size_t count = input_count(view);
  const std::vector<ir::Type> arguments = argument_types(view, view.regions[0]);
  const std::vector<ir::Type> returned = returned_types(view, view.regions[0]);
  if (arguments.size() != 2 * count || returned.size() != count || !are_scalars(arguments) || !are_scalars(returned)) {
    reject(view, fmt::format("reduce C6: the body must take {} scalars and return {}, got {} -> {}", 2 * count, count,
                             types_text(arguments), types_text(returned)));
  }
  for (size_t i = 0; i < count; ++i) {
    if (arguments[i].dtype() != returned[i].dtype()) {
      reject(view, fmt::format("reduce C6: argument {} of the body must have the type it returns, got {} -> {}", i,
                               types_text(arguments), types_text(returned)));
    }
  }
}

std::vector<ir::Type> infer_reduce(const OpView& view) {
  expect_inputs_and_inits(view, "reduce", {.count = "C3", .shapes = "C1", .init = "C2"});
  const ir::Type& first = view.operands[0];
  const std::vector<int64_t> dims = reduced_dims(view);
  for (const int64_t d : dims) {
    if (d < 0 || d >= first.rank()) {
      reject(view, fmt::format("reduce C4: dimensions must be below {}, got {}", first.rank(), d));
    }
    if (std::count(dims.begin(), dims.end(), d) > 1) {
      reject(view, fmt::format("reduce C5: dimensions must be distinct, got {} twice", d));
    }
  }
  expect_body(view);
  Dims shape = first.dims();
  for (size_t i = 1; i < input_count(view); ++i) shape = merged(shape, view.operands[i].dims());
  Dims kept;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (!contains(dims, static_cast<int64_t>(d))) kept.push_back(shape[d]);
  }
  const bool has_body = view.regions.size() == 1 && view.function != nullptr;
  const std::vector<ir::Type> returned = has_body ? returned_types(view, view.regions[0]) : std::vector<ir::Type>{};
  std::vector<ir::Type> results;
  for (size_t i = 0; i < input_count(view); ++i) {
    const tensor::DType dtype = has_body ? returned[i].dtype() : view.operands[i].dtype();
    results.push_back(ir::Type::of({dtype, kept}));
  }
  return agree(view, "reduce C7", std::move(results));
}

FactorRule reduce_rule(const OpView& view) {
  FactorRuleBuilder builder = rule_builder(view);
  const size_t count = input_count(view);
  const std::vector<int64_t> dims = reduced_dims(view);
  const Dims& shape = view.operands[0].dims();
  int out = 0;
  for (size_t d = 0; d < shape.size(); ++d) {
    std::vector<int> operands(view.operands.size(), -1);
    std::fill_n(operands.begin(), count, static_cast<int>(d));
    const bool is_reduced = contains(dims, static_cast<int64_t>(d));
    const std::vector<int> results(count, is_reduced ? -1 : out++);
    builder.factor(operands, results, shape[d], is_reduced ? FactorKind::kReduction : FactorKind::kPassThrough);
  }
  return builder.build();
}

/// Partial sums are combined by the body where each accumulator has one op with its value.
std::optional<Combine> combine_reduce(const OpView& view) {
  const size_t count = input_count(view);
  Combine combine;
  combine.ops = combining_ops(view, count);
  if (combine.ops.empty()) return std::nullopt;
  for (size_t i = 0; i < 2 * count; ++i) combine.operand_results.push_back(static_cast<int>(i % count));
  for (size_t i = 0; i < count; ++i) combine.starts.push_back(static_cast<int>(count + i));
  return combine;
}

PreparedKernel prepare_reduce(const OpView& local) {
  const size_t count = input_count(local);
  kernels::FusedLoop loop;
  loop.code_after.reset();  // interpreted: whether code may be made, and who counts it, is known where loops are fused
  loop.dims = local.operands[0].dims();
  kernels::TileProgram body = compile_scalar_region(*local.function, local.regions[0]);
  PreparedKernel kernel;
  for (size_t i = 0; i < count; ++i) {
    kernels::FusedInput input;
    input.operand = static_cast<int>(i);
    input.strides = tensor::row_major_strides(loop.dims);
    loop.inputs.push_back(std::move(input));
    loop.program.add_register(local.operands[i].dtype());
    kernel.bytes += static_cast<double>(tensor::byte_count(local.operands[i].tensor)) +
                    static_cast<double>(tensor::byte_count(local.results[i].tensor));
  }
  loop.program.input_count = static_cast<int>(count);
  for (size_t i = 0; i < count; ++i) {
    if (body.registers[i] == local.operands[count + i].dtype()) continue;
    reject(local, "unsupported_dtype",
           "reduce whose body takes accumulators of another type than the init values is not supported");
  }
  // The body may take its values in a wider type than the operand's.
  for (size_t i = 0; i < count; ++i) {
    const tensor::DType wanted = body.registers[count + i];
    const auto value = static_cast<uint16_t>(i);
    const bool differs = wanted != local.operands[i].dtype();
    loop.program.outputs.push_back(differs ? loop.program.emit(ScalarOp::kConvert, {value}, wanted) : value);
  }
  kernels::FusedReduce reduce;
  for (const int64_t d : reduced_dims(local)) reduce.dims.push_back(static_cast<int>(d));
  std::sort(reduce.dims.begin(), reduce.dims.end());
  reduce.reducer = std::move(body);
  for (size_t i = 0; i < count; ++i) reduce.init_operands.push_back(static_cast<int>(count + i));
  kernel.flops =
      static_cast<double>(tensor::element_count(loop.dims)) * static_cast<double>(reduce.reducer.instructions.size());
  loop.reduce = std::move(reduce);
  auto fused = std::make_shared<const kernels::FusedKernel>(std::move(loop));
  kernel.work_count = fused->work_count();
  kernel.workspace_bytes = fused->workspace_bytes();
  if (fused->barrier() > 0) kernel.barriers = {fused->barrier()};
  kernel.passes_checkpoints = true;
  kernel.run = [fused](const KernelCall& call) { fused->run(fused_call(call)); };
  return kernel;
}

}  // namespace

std::vector<OpDef> reduce_rows() {
  return {
      {.name = "stablehlo.reduce",
       .summary = "elements along dimensions combined by the body, beginning with the init values",
       .example = R"(module @jit_f {
  func.func public @main(%arg0: tensor<4x8xf32>) -> tensor<4xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.reduce(%arg0 init: %cst) applies stablehlo.add across dimensions = [1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
)",
       .signature = {.operand_min = 2,
                     .operand_max = -1,
                     .region_count = 1,
                     .attributes = {{"dimensions", true, "which are combined"}}},
       .text = {.shape = TextShape::kReduce},
       .infer = infer_reduce,
       .bounded = BoundedForm::kReduce,
       .quantized = kQuantizedReduced,
       .rule = reduce_rule,
       .body = LocalKernel{prepare_reduce},
       .combine = combine_reduce,
       .region_arguments = RegionArguments::kReduction,
       .derivative = {.vjp = vjp_reduce, .as_others = reduce_in_steps},
       .batch = batch_reduce,
       .fuse = {.reduce_dims = reduced_dims}},
  };
}

}  // namespace meshd::ops
