#include "service/kernels/fused/while_code.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "service/kernels/cpu.h"
#include "service/kernels/fused/fused_loop.h"
#include "service/kernels/fused/small_loop.h"
#include "service/kernels/tile/tile_steps.h"

namespace meshd::kernels {
namespace {

constexpr size_t kNoHome = std::numeric_limits<size_t>::max();
constexpr size_t kMostRegisters = 128;
constexpr int64_t kMostCounted = int64_t{1} << 20;  // iterations of one run; an iteration counts as a block of lanes

/// Puts the steps of an iteration together. Values are registers: inputs until a step makes them.
class IterationBuilder {
 public:
  IterationBuilder(const SmallWhileLoop& loop, std::span<const int64_t> lanes)
      : loop_(loop), lanes_(lanes), input_of_(lanes.size()), register_of_(lanes.size()) {}

  /// Inputs come first in a program: those that any step reads before a step makes them.
  bool add_inputs() {
    std::vector<char> is_made(lanes_.size(), 0);
    for (const auto* steps : {&loop_.body, &loop_.condition}) {
      for (const SmallWhileLoop::Step& step : *steps) {
        if (step.kernel == nullptr) return false;
        const FusedLoop& fused = step.kernel->loop();
        for (size_t i = 0; i < fused.inputs.size(); ++i) {
          const int value = step.operands[static_cast<size_t>(fused.inputs[i].operand)];
          if (is_made[at(value)] != 0 || input_of_[at(value)]) continue;
          input_of_[at(value)] = program_.add_register(fused.program.registers[i]);
          program_.input_count++;
        }
        for (const int value : step.results) is_made[at(value)] = 1;
      }
      // A value that the exchange renames is read where another was made.
      if (steps == &loop_.body && !loop_.exchanges.empty()) return false;
    }
    register_of_ = input_of_;
    return true;
  }

  bool add_step(const SmallWhileLoop::Step& step, const SmallLoop& small) {
    const FusedLoop& fused = step.kernel->loop();
    std::vector<uint16_t> made(fused.program.registers.size(), 0);
    for (size_t i = 0; i < fused.inputs.size(); ++i) {
      const int value = step.operands[static_cast<size_t>(fused.inputs[i].operand)];
      const SmallLoop::Input& input = small.inputs()[i];
      if (!register_of_[at(value)] || input.byte_offset != 0 || input.lanes != lanes_[at(value)]) return false;
      made[i] = *register_of_[at(value)];
      if (program_.registers[made[i]] != fused.program.registers[i]) return false;
    }
    for (const TileConstant& constant : fused.program.constants)
      made[constant.reg] = program_.constant(fused.program.registers[constant.reg], constant.element.data());
    for (const TileInstruction& instruction : fused.program.instructions) {
      if (instruction.kernel == nullptr) return false;
      TileInstruction copy = instruction;
      for (int k = 0; k < operand_count(instruction.op); ++k)
        copy.operands[static_cast<size_t>(k)] = made[instruction.operands[static_cast<size_t>(k)]];
      copy.result = program_.add_register(fused.program.registers[instruction.result]);
      made[instruction.result] = copy.result;
      program_.instructions.push_back(copy);
    }
    for (size_t k = 0; k < step.results.size(); ++k) register_of_[at(step.results[k])] = made[fused.program.outputs[k]];
    return program_.registers.size() <= kMostRegisters;
  }

  /// Values that were made go to their homes when all has been read.
  bool finish(std::span<const size_t> homes) {
    homes_.assign(static_cast<size_t>(program_.input_count), kNoHome);
    for (size_t value = 0; value < lanes_.size(); ++value) {
      if (input_of_[value]) homes_[*input_of_[value]] = homes[value];
    }
    for (size_t value = 0; value < lanes_.size(); ++value) {
      if (!register_of_[value] || register_of_[value] == input_of_[value]) continue;
      if (*register_of_[value] < program_.input_count) return false;  // its home may have been written by then
      const uint16_t reg = *register_of_[value];
      const uint16_t output = program_.emit(ScalarOp::kCopy, {reg}, program_.registers[reg]);
      program_.outputs.push_back(output);
      homes_.resize(program_.registers.size(), kNoHome);
      homes_[output] = homes[value];
      if (static_cast<int>(value) == loop_.predicate) predicate_ = output;
    }
    return predicate_.has_value() && program_.registers.size() <= 2 * kMostRegisters;
  }

  TileProgram program_;
  std::vector<size_t> homes_;
  std::optional<uint16_t> predicate_;

 private:
  static size_t at(int value) { return static_cast<size_t>(value); }

  const SmallWhileLoop& loop_;
  std::span<const int64_t> lanes_;
  std::vector<std::optional<uint16_t>> input_of_;
  std::vector<std::optional<uint16_t>> register_of_;
};

}  // namespace

std::shared_ptr<const WhileCode> WhileCode::make(const SmallWhileLoop& loop,
                                                 const std::map<const FusedKernel*, SmallLoop>& loops,
                                                 std::span<const size_t> homes, std::span<const int64_t> lanes) {
  if (loop.body.empty() || cpu_level() == CpuLevel::kBase) return nullptr;
  const auto is_off = [](const SmallWhileLoop::Step& step) {
    return step.kernel == nullptr || !step.kernel->loop().code_after;
  };
  if (std::any_of(loop.body.begin(), loop.body.end(), is_off)) return nullptr;
  IterationBuilder iteration(loop, lanes);
  if (!iteration.add_inputs()) return nullptr;
  for (const auto* steps : {&loop.body, &loop.condition}) {
    for (const SmallWhileLoop::Step& step : *steps) {
      if (!iteration.add_step(step, loops.at(step.kernel.get()))) return nullptr;
    }
  }
  if (!iteration.finish(homes)) return nullptr;
  for (const TileStep& step : tile_steps(iteration.program_, cpu_level())) {
    if (step.kind == StepKind::kKernel) return nullptr;
  }
  std::shared_ptr<WhileCode> made(new WhileCode(*loop.body.front().kernel->loop().code_after));
  made->program_ = std::move(iteration.program_);
  made->homes_ = std::move(iteration.homes_);
  made->homes_.resize(made->program_.registers.size(), kNoHome);
  made->options_.lanes = *std::max_element(lanes.begin(), lanes.end());
  made->options_.repeats_while = iteration.predicate_;
  return made;
}

const TileCode* WhileCode::get(int64_t most) const {
  return code_.get(program_, options_, std::min(most, kMostCounted) * kBlockLanes);
}

int64_t WhileCode::run(const TileCode& code, std::byte* block, int64_t most) const {
  std::array<std::byte*, 2 * kMostRegisters> registers{};  // with the copies of finish()
  for (size_t reg = 0; reg < homes_.size(); ++reg)
    registers[reg] = homes_[reg] == kNoHome ? nullptr : block + homes_[reg];
  return code.repeat(registers.data(), most);
}

}  // namespace meshd::kernels
