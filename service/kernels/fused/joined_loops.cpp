#include "service/kernels/fused/joined_loops.h"

#include <algorithm>
#include <utility>

namespace meshd::kernels {
namespace {

bool is_same(const FusedInput& a, const FusedInput& b) {
  return a.kind == b.kind && a.operand == b.operand && a.offset == b.offset && a.strides == b.strides &&
         a.iota_dim == b.iota_dim;
}

bool is_same(const TileInstruction& a, const TileInstruction& b) {
  return a.op == b.op && a.kernel == b.kernel && a.exponent_bits == b.exponent_bits &&
         a.mantissa_bits == b.mantissa_bits &&
         std::equal(a.operands.begin(), a.operands.begin() + used_operands(a), b.operands.begin());
}

/// Registers are numbered inputs first, so all are numbered anew.
class Join {
 public:
  explicit Join(const FusedLoop& first) {
    out_.dims = first.dims;
    out_.copies = first.copies;
    out_.code_after = first.code_after;
  }

  void add_inputs(const FusedLoop& loop, std::vector<uint16_t>& registers) {
    registers.resize(loop.program.registers.size());
    for (size_t i = 0; i < loop.inputs.size(); ++i) {
      const tensor::DType dtype = loop.program.registers[i];
      size_t found = 0;
      while (found < out_.inputs.size() &&
             !(is_same(out_.inputs[found], loop.inputs[i]) && out_.program.registers[found] == dtype))
        ++found;
      if (found == out_.inputs.size()) {
        out_.inputs.push_back(loop.inputs[i]);
        out_.program.add_register(dtype);
        ++out_.program.input_count;
      }
      registers[i] = static_cast<uint16_t>(found);
    }
  }

  void add_program(const TileProgram& program, std::vector<uint16_t>& registers) {
    for (const TileConstant& constant : program.constants) registers[constant.reg] = add_constant(program, constant);
    for (TileInstruction instruction : program.instructions) {
      const uint16_t result = instruction.result;
      for (size_t k = 0; k < static_cast<size_t>(used_operands(instruction)); ++k)
        instruction.operands[k] = registers[instruction.operands[k]];
      registers[result] = add_instruction(instruction, program.registers[result]);
    }
    for (const uint16_t output : program.outputs) out_.program.outputs.push_back(registers[output]);
  }

  FusedLoop finish() { return std::move(out_); }
  [[nodiscard]] const FusedLoop& made() const { return out_; }

 private:
  uint16_t add_constant(const TileProgram& program, const TileConstant& constant) {
    const tensor::DType dtype = program.registers[constant.reg];
    for (const TileConstant& made : out_.program.constants) {
      if (out_.program.registers[made.reg] == dtype && made.element == constant.element) return made.reg;
    }
    return out_.program.constant(dtype, constant.element.data());
  }

  uint16_t add_instruction(TileInstruction instruction, tensor::DType dtype) {
    for (const TileInstruction& made : out_.program.instructions) {
      if (is_same(made, instruction) && out_.program.registers[made.result] == dtype) return made.result;
    }
    instruction.result = out_.program.add_register(dtype);
    out_.program.instructions.push_back(instruction);
    return instruction.result;
  }

  FusedLoop out_;
};

}  // namespace

std::optional<FusedLoop> join_loops(const FusedLoop& first, const FusedLoop& second, bool may_read_others) {
  if (first.dims != second.dims) return std::nullopt;
  Join join(first);
  std::vector<uint16_t> of_first;
  std::vector<uint16_t> of_second;
  join.add_inputs(first, of_first);
  join.add_inputs(second, of_second);
  const size_t inputs = join.made().inputs.size();
  const bool has_common = inputs < first.inputs.size() + second.inputs.size();
  if ((!has_common && !may_read_others) || inputs > kMostFusedInputs) return std::nullopt;
  join.add_program(first.program, of_first);
  join.add_program(second.program, of_second);
  if (join.made().program.instructions.size() > kMostFusedInstructions) return std::nullopt;
  return join.finish();
}

}  // namespace meshd::kernels
