// stablehlo.map: a region of scalar ops over tensors of one shape. Shardings do not pass through it, as in Shardy.
#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

#include "service/core/checked_math.h"
#include "service/kernels/tile/tile_program.h"
#include "service/ops/checks.h"
#include "service/ops/families.h"
#include "service/ops/kernel_interface.h"
#include "service/ops/rewrites/lifted_region.h"

namespace meshd::ops {
namespace {

std::vector<ir::Type> infer_map(const OpView& view) {
  if (view.operands.empty()) reject(view, "map C2: needs at least one operand");
  std::vector<ir::Type> scalars;
  tensor::Dims dims;
  for (size_t i = 0; i < view.operands.size(); ++i) {
    expect_tensor(view, "map", i);
    const ir::Type& type = view.operands[i];
    if (!compatible_shapes(type.dims(), view.operands[0].dims())) {
      reject(view, fmt::format("map C1: operands must have one shape (operand 0 is {}, operand {} is {})",
                               operand_text(view, 0), i, operand_text(view, i)));
    }
    dims = i == 0 ? type.dims() : merged(dims, type.dims());
    scalars.push_back(ir::Type::of({type.dtype(), {}}));
  }
  std::vector<int64_t> all(dims.size());
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int64_t>(i);
  const std::vector<int64_t> dimensions = ir::ints_or(attributes_of(view), "dimensions", all);
  if (dimensions != all) {
    reject(view,
           fmt::format("map C3: dimensions must be all dimensions in order, got {}", tensor::to_string(dimensions)));
  }
  const std::vector<ir::Type> arguments = argument_types(view, view.regions[0]);
  const std::vector<ir::Type> returned = returned_types(view, view.regions[0]);
  if (arguments != scalars || returned.size() != 1 || !returned[0].is_tensor() || returned[0].rank() != 0) {
    reject(view, "map C4: computation must take " + types_text(scalars) + " and return one scalar, got " +
                     types_text(arguments) + " -> " + types_text(returned));
  }
  return agree(view, "map C4", {ir::Type::of({returned[0].dtype(), std::move(dims)})});
}

/// The region over whole tensors, which has derivatives.
std::optional<std::vector<ir::ValueId>> map_as_others(const OpView& view, Writer& writer) {
  if (!is_pointwise(*view.function, view.regions[0])) return std::nullopt;
  return lifted_region(view.regions[0], view.op->operands, view.operands[0].dims(), writer);
}

/// Elements of one work item: enough to be worth handing to another thread.
constexpr int64_t kWorkItem = 16384;

PreparedKernel prepare_map(const OpView& local) {
  const auto program =
      std::make_shared<const kernels::TileProgram>(compile_scalar_region(*local.function, local.regions[0]));
  const int64_t count = tensor::element_count(local.results[0].tensor);
  PreparedKernel kernel;
  kernel.work_count = std::max<int64_t>(1, core::ceil_div(count, kWorkItem));
  kernel.flops = static_cast<double>(count) * static_cast<double>(program->instructions.size());
  kernel.bytes = static_cast<double>(tensor::byte_count(local.results[0].tensor));
  for (const ir::Type& type : local.operands) kernel.bytes += static_cast<double>(tensor::byte_count(type.tensor));
  kernel.run = [program, count](const KernelCall& call) {
    const uint16_t output = program->outputs[0];
    const int64_t result_size = tensor::size_bytes(program->registers[output]);
    const int64_t lanes = kernels::tile_lanes(*program);
    kernels::TileScratch scratch(*program, lanes);
    const int64_t end = std::min(call.end * kWorkItem, count);
    for (int64_t start = call.begin * kWorkItem; start < end; start += lanes) {
      const int64_t run = std::min(lanes, end - start);
      for (int i = 0; i < program->input_count; ++i) {
        const auto reg = static_cast<uint16_t>(i);
        const int64_t size = tensor::size_bytes(program->registers[reg]);
        std::memcpy(scratch.reg(reg), call.operands[i] + start * size, static_cast<size_t>(run * size));
      }
      kernels::run_tile(*program, scratch, run);
      std::memcpy(call.results[0] + start * result_size, scratch.reg(output), static_cast<size_t>(run * result_size));
    }
  };
  return kernel;
}

}  // namespace

std::vector<OpDef> map_rows() {
  return {
      {.name = "stablehlo.map",
       .summary = "a computation on scalars, for each element",
       .example = R"(module @jit_f {
  func.func public @main(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> tensor<4xf32> {
    %0 = "stablehlo.map"(%arg0, %arg1) <{dimensions = array<i64: 0>}> ({
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
      %1 = stablehlo.multiply %arg2, %arg3 : tensor<f32>
      stablehlo.return %1 : tensor<f32>
    }) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
)",
       .signature = {.operand_min = 1,
                     .operand_max = -1,
                     .region_count = 1,
                     .attributes = {{"dimensions", false, "all dimensions, in order"}}},
       .infer = infer_map,
       .bounded = BoundedForm::kPointwise,
       .body = LocalKernel{prepare_map},
       .region_arguments = RegionArguments::kEach,
       .derivative = {.as_others = map_as_others}},
  };
}

}  // namespace meshd::ops
