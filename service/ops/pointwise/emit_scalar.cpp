// How a pointwise row becomes instructions of a tile program, whether an instance of an op can be run at all, and what
// it gives for operands that are known (evaluate.h).
#include <fmt/core.h>

#include <array>
#include <cstring>
#include <string>

#include "service/core/error.h"
#include "service/kernels/tile/tile_program.h"
#include "service/ops/checks.h"
#include "service/ops/kernel_interface.h"
#include "service/ops/pointwise/evaluate.h"

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

std::vector<std::byte> evaluate(const ScalarMath& math, const OpView& view, std::span<const KnownOperand> operands,
                                int64_t count) {
  kernels::TileProgram program;
  std::vector<uint16_t> registers(operands.size());
  for (size_t i = 0; i < operands.size(); ++i) {
    if (operands[i].is_element) continue;
    registers[i] = program.add_register(operands[i].dtype);
    ++program.input_count;
  }
  for (size_t i = 0; i < operands.size(); ++i) {
    if (operands[i].is_element) registers[i] = program.constant(operands[i].dtype, operands[i].bytes.data());
  }
  const uint16_t result = emit_scalar(math, view, program, registers);
  program.outputs = {result};
  kernels::TileScratch scratch(program, count);
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!operands[i].is_element)
      std::memcpy(scratch.reg(registers[i]), operands[i].bytes.data(), operands[i].bytes.size());
  }
  kernels::run_tile(program, scratch, count);
  const std::byte* const from = scratch.reg(result);
  return {from, from + count * tensor::size_bytes(program.registers[result])};
}

}  // namespace meshd::ops
