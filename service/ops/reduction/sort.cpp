// The row of sort.
#include <fmt/core.h>

#include <memory>
#include <string>

#include "service/kernels/sort/sort.h"
#include "service/kernels/tile/tile_program.h"
#include "service/ops/checks.h"
#include "service/ops/families.h"
#include "service/ops/kernel_interface.h"
#include "service/ops/quantized.h"
#include "service/ops/reduction/reduction_batch.h"
#include "service/ops/reduction/reduction_vjp.h"
#include "service/ops/rule_views.h"

namespace meshd::ops {
namespace {

using sharding::FactorKind;
using sharding::FactorRule;
using sharding::FactorRuleBuilder;
using tensor::Dims;

/// Which dimension is sorted; negative ones count from the end, and none is the last.
int64_t sorted_dim(const OpView& view) {
  const int64_t dim = ir::int_or(attributes_of(view), "dimension", -1);
  return dim < 0 ? dim + view.operands[0].rank() : dim;
}

std::vector<ir::Type> infer_sort(const OpView& view) {
  if (view.operands.empty()) reject(view, "sort C1: expects at least one input");
  for (size_t i = 0; i < view.operands.size(); ++i) expect_tensor(view, "sort", i);
  Dims shape = view.operands[0].dims();
  for (size_t i = 1; i < view.operands.size(); ++i) {
    if (!compatible_shapes(view.operands[i].dims(), shape)) {
      reject(view, fmt::format("sort C3: inputs must have one shape (input 0 is {}, input {} is {})",
                               operand_text(view, 0), i, operand_text(view, i)));
    }
    shape = merged(shape, view.operands[i].dims());
  }
  const int64_t rank = view.operands[0].rank();
  const int64_t dim = sorted_dim(view);
  if (dim < 0 || dim >= rank) {
    reject(view, fmt::format("sort C4: dimension must be between {} and {}, got {}", -rank, rank - 1,
                             ir::int_or(attributes_of(view), "dimension", -1)));
  }
  // checks: sort C5: the comparator must take two scalars of each input's type and return one boolean
  if (view.regions.size() == 1 && view.function != nullptr) expect_comparator(view, "sort C5", view.operands.size());
  std::vector<ir::Type> results;
  for (const ir::Type& type : view.operands) results.push_back(ir::Type::of({type.dtype(), shape}));
  return agree(view, "sort C2", std::move(results));
}

/// A vector has nothing but its sorted dim, which then passes nothing on.
FactorRule sort_rule(const OpView& view) {
  FactorRuleBuilder builder = rule_builder(view);
  const Dims& dims = view.operands[0].dims();
  const int64_t sorted = sorted_dim(view);
  bool has_batch = false;
  for (size_t d = 0; d < dims.size(); ++d) has_batch |= static_cast<int64_t>(d) != sorted && dims[d] > 1;
  for (size_t d = 0; d < dims.size(); ++d) {
    const bool is_sorted = static_cast<int64_t>(d) == sorted;
    builder.everywhere(static_cast<int>(d), dims[d],
                       is_sorted ? FactorKind::kNeedReplication : FactorKind::kPassThrough, is_sorted && !has_batch);
  }
  return builder.build();
}

PreparedKernel prepare_sort(const OpView& local) {
  const Dims& dims = local.operands[0].dims();
  const auto sorted = static_cast<size_t>(sorted_dim(local));
  kernels::SortSpec spec;
  spec.length = dims[sorted];
  for (size_t d = 0; d < dims.size(); ++d) {
    if (d < sorted) spec.outer *= dims[d];
    if (d > sorted) spec.inner *= dims[d];
  }
  PreparedKernel kernel;
  for (const ir::Type& type : local.operands) {
    spec.dtypes.push_back(type.dtype());
    kernel.bytes += 2.0 * static_cast<double>(tensor::byte_count(type.tensor));
  }
  spec.comparator = compile_scalar_region(*local.function, local.regions[0]);
  kernel.flops = static_cast<double>(tensor::element_count(dims)) * 20;  // comparisons and moves of an element, about
  auto sort = std::make_shared<const kernels::Sort>(std::move(spec));
  kernel.work_count = sort->work_count();
  kernel.passes_checkpoints = true;
  kernel.barriers = sort->barriers();
  kernel.scratch_bytes = sort->scratch_bytes();
  kernel.workspace_bytes = sort->workspace_bytes();
  kernel.run = [sort](const KernelCall& call) {
    sort->run(call.operands, call.results, {call.scratch, call.workspace}, call.begin, call.end, call.checkpoint);
  };
  return kernel;
}

}  // namespace

std::vector<OpDef> sort_rows() {
  return {
      {.name = "stablehlo.sort",
       .summary = "elements along a dimension in the order of the comparator; equal ones keep their order",
       .example = R"(module @jit_f {
  func.func public @main(%arg0: tensor<4x8xi32>) -> tensor<4x8xi32> {
    %0 = "stablehlo.sort"(%arg0) <{dimension = 1 : i64, is_stable = true}> ({
    ^bb0(%arg1: tensor<i32>, %arg2: tensor<i32>):
      %1 = stablehlo.compare LT, %arg1, %arg2, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    }) : (tensor<4x8xi32>) -> tensor<4x8xi32>
    return %0 : tensor<4x8xi32>
  }
}
)",
       .signature = {.operand_min = 1,
                     .operand_max = -1,
                     .region_count = 1,
                     .attributes = {{"dimension", false, "which is sorted; -1, the last, when absent"},
                                    {"is_stable", false, "sorts are stable either way"}}},
       .infer = infer_sort,
       .bounded = BoundedForm::kSort,
       .quantized = kQuantizedMoved,
       .rule = sort_rule,
       .body = LocalKernel{prepare_sort},
       .region_arguments = RegionArguments::kPairs,
       .derivative = {vjp_sort},
       .batch = batch_sort},
  };
}

}  // namespace meshd::ops
