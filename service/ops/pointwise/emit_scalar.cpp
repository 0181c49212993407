// How a pointwise row becomes instructions of a tile program.
#include <array>
#include <string>

#include "service/core/error.h"
#include "service/ops/checks.h"

namespace meshd::ops {

uint16_t emit_scalar(const ScalarMath& math, const OpView& view, kernels::TileProgram& program,
                     std::span<const uint16_t> operands) {
  if (math.emit != nullptr) return math.emit(view, program, operands);
  const kernels::ScalarOp operation = math.op_of != nullptr ? math.op_of(view) : math.op;
  if (static_cast<size_t>(kernels::operand_count(operation)) != operands.size()) {
    reject(view, std::string(kernels::name(operation)) + ": expects " +
                     std::to_string(kernels::operand_count(operation)) + " operands, got " +
                     std::to_string(operands.size()));
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

}  // namespace meshd::ops
