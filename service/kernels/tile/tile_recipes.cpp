#include "service/kernels/tile/tile_recipes.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace meshd::kernels {

StepMachine::Value StepMachine::constant_bits(uint32_t bits) {
  const auto [place, is_new] = constants_.try_emplace(bits);
  if (is_new) {
    std::array<std::byte, 4> element{};
    std::memcpy(element.data(), &bits, element.size());
    place->second = out_.program.constant(tensor::DType::kFloat32, element.data());
  }
  return place->second;
}

StepMachine::Value StepMachine::step(StepKind kind, LaneFamily family, std::initializer_list<Value> operands) {
  TileStep made;
  made.kind = kind;
  made.family = family;
  made.operand_count = static_cast<int>(operands.size());
  TileInstruction instruction;
  std::copy(operands.begin(), operands.end(), instruction.operands.begin());
  instruction.result = out_.program.add_register(tensor::DType::kFloat32);
  out_.program.instructions.push_back(instruction);
  out_.steps.push_back(made);
  return instruction.result;
}

ExpandedProgram expand_recipes(const TileProgram& program, CpuLevel level) {
  const std::vector<TileStep> steps = tile_steps(program, level);
  ExpandedProgram out;
  out.program = program;
  out.program.instructions.clear();
  StepMachine machine(out);
  for (size_t i = 0; i < steps.size(); ++i) {
    const TileInstruction& instruction = program.instructions[i];
    if (steps[i].kind != StepKind::kRecipe) {
      out.program.instructions.push_back(instruction);
      out.steps.push_back(steps[i]);
      continue;
    }
    steps[i].recipe(machine, instruction.operands[0]);
    // The last step's result is the function's.
    out.program.instructions.back().result = instruction.result;
    out.steps.back().rounds = steps[i].rounds;
  }
  return out;
}

}  // namespace meshd::kernels
