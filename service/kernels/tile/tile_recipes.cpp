#include "service/kernels/tile/tile_recipes.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <type_traits>
#include <utility>

#include "service/kernels/elementwise/functors/constant_division.h"

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

namespace {

/// The machine of constant_division.h, on lanes of T.
template <class T>
class DivisionMachine {
 public:
  using Value = uint16_t;

  explicit DivisionMachine(StepMachine& steps) : steps_(&steps) {}
  Value add(Value a, Value b) { return steps_->add_bits(a, b); }
  Value subtract(Value a, Value b) { return steps_->subtract_bits(a, b); }
  Value multiply_high(Value a, T b) {
    constexpr LaneFamily kFamily = std::is_signed_v<T> ? LaneFamily::kSigned : LaneFamily::kUnsigned;
    return steps_->multiply_high(kFamily, a, static_cast<uint32_t>(b));
  }
  Value shift_right(Value a, int by) {
    if (by == 0) return a;
    return std::is_signed_v<T> ? steps_->shift_number_right(a, by) : steps_->shift_bits_right(a, by);
  }

 private:
  StepMachine* steps_;
};

template <class T>
uint16_t write_quotient(StepMachine& machine, uint16_t dividend, const TileConstant& by) {
  T divisor = 0;
  std::memcpy(&divisor, by.element.data(), sizeof divisor);
  return quotient_by(DivisionMachine<T>(machine), ConstantDivisor<T>(divisor), dividend);
}

/// Divisions of a program by constants as steps. A quotient and its remainder, which programs often have beside each
/// other (floor division), share the steps of the quotient.
class DivisionWriter {
 public:
  DivisionWriter(const TileProgram& program, StepMachine& machine) : program_(program), machine_(machine) {}

  /// The last step becomes the one that gives the instruction's result.
  void write(const TileInstruction& instruction, StepKind kind) {
    const uint16_t dividend = instruction.operands[0];
    const uint16_t divisor = instruction.operands[1];
    const auto [place, is_new] = quotients_.try_emplace({dividend, divisor});
    if (is_new) place->second = write_new(dividend, divisor);
    if (kind == StepKind::kRemainder) {
      machine_.subtract_bits(dividend, machine_.multiply_bits(place->second, divisor));
    } else if (is_new) {
      place->second = instruction.result;
    } else {
      machine_.copy(place->second);
    }
  }

 private:
  uint16_t write_new(uint16_t dividend, uint16_t divisor) {
    const auto by = std::find_if(program_.constants.begin(), program_.constants.end(),
                                 [&](const TileConstant& constant) { return constant.reg == divisor; });
    const bool is_signed = program_.registers[dividend] == tensor::DType::kInt32;
    return is_signed ? write_quotient<int32_t>(machine_, dividend, *by)
                     : write_quotient<uint32_t>(machine_, dividend, *by);
  }

  const TileProgram& program_;
  StepMachine& machine_;
  std::map<std::pair<uint16_t, uint16_t>, uint16_t> quotients_;  ///< by dividend and divisor
};

}  // namespace

ExpandedProgram expand_recipes(const TileProgram& program, CpuLevel level) {
  const std::vector<TileStep> steps = tile_steps(program, level);
  ExpandedProgram out;
  out.program = program;
  out.program.instructions.clear();
  StepMachine machine(out);
  DivisionWriter divisions(program, machine);
  for (size_t i = 0; i < steps.size(); ++i) {
    const TileInstruction& instruction = program.instructions[i];
    if (steps[i].kind == StepKind::kQuotient || steps[i].kind == StepKind::kRemainder) {
      divisions.write(instruction, steps[i].kind);
    } else if (steps[i].kind == StepKind::kRecipe) {
      steps[i].recipe(machine, instruction.operands[0]);
      out.steps.back().rounds = steps[i].rounds;
      out.is_deep = true;
    } else {
      out.program.instructions.push_back(instruction);
      out.steps.push_back(steps[i]);
    }
    // The last step's result is the instruction's.
    out.program.instructions.back().result = instruction.result;
  }
  return out;
}

}  // namespace meshd::kernels
