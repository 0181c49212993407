// How a pointwise row becomes instructions of a tile program, and whether an instance of an op can be run at all.
#include <fmt/core.h>

#include <array>
#include <string>

#include "service/core/error.h"
#include "service/kernels/tile/tile_program.h"
#include "service/ops/checks.h"
#include "service/ops/kernel_interface.h"

namespace meshd::ops {

uint16_t emit_scalar(const ScalarMath& math, const OpView& view, kernels::TileProgram& program,
                     std::span<const uint16_t> operands) {
  if (math.emit != nullptr) return math.emit(view, program, operands);
  const kernels::ScalarOp operation = math.op_of != nullptr ? math.op_of(view) : math.op;
  if (static_cast<size_t>(kernels::operand_count(operation)) != operands.size()) {
    reject(view, fmt::format("{}: expects {} operands, got {}", kernels::name(operation),
                             kernels::operand_count(operation), operands.size()));
  }
  const tensor::DType out = view.results[0].dtype();
  switch (operands.size()) {
    case 1:
      return program.emit(operation, {operands[0]}, out);
    case 2:
      return program.emit(operation, {operands[0], operands[1]}, out);
    default:
      return program.emit(operation, {operands[0], operands[1], operands[2]}, out);
  }
}

void check_runnable(const OpDef& def, const OpView& view) {
  const Body body = body_of(def, view);
  if (const auto* math = std::get_if<ScalarMath>(&body)) {
    kernels::TileProgram program;
    std::vector<uint16_t> registers;
    for (const ir::Type& operand : view.operands) registers.push_back(program.add_register(operand.dtype()));
    emit_scalar(*math, view, program, registers);
  } else if (const auto* kernel = std::get_if<LocalKernel>(&body)) {
    kernel->prepare(view);
  } else if (std::holds_alternative<Unsupported>(body)) {
    reject(view, "unsupported_op", "'" + std::string(def.name) + "' is not run");
  }
}

}  // namespace meshd::ops
