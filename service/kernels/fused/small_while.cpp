#include "service/kernels/fused/small_while.h"

#include <algorithm>
#include <cstring>

#include "service/core/checked_math.h"
#include "service/kernels/elementwise/lanes/lane_loop.h"
#include "service/kernels/fused/fused_loop.h"
#include "service/kernels/fused/small_loop.h"
#include "service/kernels/fused/while_code.h"

namespace meshd::kernels {
namespace {

constexpr size_t kMostRegisterBytes = 64 * 1024;

size_t register_bytes(int64_t element_bytes) { return static_cast<size_t>(element_bytes * kBlockLanes); }

}  // namespace

struct SmallWhile::Bound {
  ScalarKernel kernel = nullptr;
  std::array<const std::byte*, 3> operands{};
  std::byte* result = nullptr;
  int64_t lanes = 0;
  int64_t element_bytes = 4;
};

size_t SmallWhile::place(size_t bytes) {
  const size_t at = bytes_;
  bytes_ += static_cast<size_t>(core::round_up(static_cast<int64_t>(bytes), 64));
  return at;
}

bool SmallWhile::has_elements(int value, int64_t element_bytes) const {
  return values_[static_cast<size_t>(value)].element_bytes == element_bytes;
}

SmallWhile::Value::Part SmallWhile::Value::part(int64_t piece) const {
  if (lanes() <= kBlockLanes) return {0, lanes()};
  const int64_t first = piece * kBlockLanes;
  return {first, std::min(kBlockLanes, lanes() - first)};
}

// How many pieces there are, and the loops of one. False where lanes need each other: a step that reads one lane of a
// longer value, be it only for a scalar, finds it in one piece alone.
bool SmallWhile::cut(const SmallWhileLoop& loop, Loops& loops) {
  const auto lanes_of = [&](int value) {
    const auto i = static_cast<size_t>(value);
    return loop.value_bytes[i] / loop.element_bytes[i];
  };
  const auto values = static_cast<int>(loop.value_bytes.size());
  int64_t most = 1;
  for (int value = 0; value < values; ++value) most = std::max(most, lanes_of(value));
  pieces_ = core::ceil_div(most, kBlockLanes);
  if (most > kMostWhileLanes) return false;
  for (int value = 0; value < values && pieces_ > 1; ++value) {
    if (lanes_of(value) != 1 && lanes_of(value) != most) return false;
  }
  for (const auto* steps : {&loop.condition, &loop.body}) {
    for (const SmallWhileLoop::Step& step : *steps) {
      if (step.kernel == nullptr) continue;
      const SmallLoop* const small = step.kernel->small();
      if (small == nullptr && pieces_ == 1) return false;
      std::optional<SmallLoop> piece = small != nullptr ? *small : SmallLoop::make_piece(step.kernel->loop());
      if (!piece) return false;
      for (const SmallLoop::Input& input : piece->inputs()) {
        const bool is_long = lanes_of(step.operands[static_cast<size_t>(input.operand)]) > 1;
        const bool is_lane_for_lane = is_long == (input.lanes > 1) && input.byte_offset == 0;
        if (pieces_ > 1 && !is_lane_for_lane) return false;
      }
      loops.try_emplace(step.kernel.get(), *std::move(piece));
    }
  }
  return true;
}

// False where a step reads elements of another width than a value has, or writes another value than it is.
bool SmallWhile::add_values(const SmallWhileLoop& loop, const Loops& loops) {
  for (size_t i = 0; i < loop.value_bytes.size(); ++i) {
    Value value{.home = 0,
                .bytes = loop.value_bytes[i],
                .element_bytes = loop.element_bytes[i],
                .is_stored = loop.is_stored[i] != 0};
    if (value.bytes <= 0 || value.bytes % value.element_bytes != 0) return false;
    value.home = place(register_bytes(value.element_bytes));
    values_.push_back(value);
  }
  const auto are_alike = [&](int a, int b) {
    const Value& left = values_[static_cast<size_t>(a)];
    const Value& right = values_[static_cast<size_t>(b)];
    return left.bytes == right.bytes && left.element_bytes == right.element_bytes;
  };
  for (const auto* steps : {&loop.condition, &loop.body}) {
    for (const SmallWhileLoop::Step& step : *steps) {
      if (step.kernel == nullptr) {
        if (!are_alike(step.operands[0], step.results[0])) return false;
        continue;
      }
      const SmallLoop& small = loops.at(step.kernel.get());
      for (const SmallLoop::Input& input : small.inputs()) {
        if (!has_elements(step.operands[static_cast<size_t>(input.operand)], input.element_bytes)) return false;
      }
      for (size_t k = 0; k < step.results.size(); ++k) {
        const SmallLoop::Output& output = small.outputs()[k];
        const Value& value = values_[static_cast<size_t>(step.results[k])];
        if (value.element_bytes != output.element_bytes ||
            value.part(0).count * value.element_bytes != static_cast<int64_t>(output.bytes)) {
          return false;
        }
      }
    }
  }
  return has_elements(loop.predicate, 1) &&
         std::all_of(loop.exchanges.begin(), loop.exchanges.end(),
                     [&](const auto& pair) { return are_alike(pair.first, pair.second); });
}

// Registers that hold a value's elements lane for lane are the value's home; a result is computed there where nothing
// that comes later in the step reads what the value held before.
void SmallWhile::add_step(const SmallWhileLoop::Step& step, const Loops& loops, std::vector<Instruction>& to) {
  if (step.kernel == nullptr) {
    const Value& from = values_[static_cast<size_t>(step.operands[0])];
    const size_t home = values_[static_cast<size_t>(step.results[0])].home;
    to.push_back({nullptr, {from.home}, home, kBlockLanes, from.element_bytes});
    return;
  }
  const SmallLoop& small = loops.at(step.kernel.get());
  const size_t base = place(small.bytes());
  if (!small.constants().empty()) constants_.emplace_back(base, small.constants());
  std::vector<std::pair<size_t, size_t>> homes;  // a register of the step, the value's home that stands for it
  for (const SmallLoop::Input& input : small.inputs()) {
    const Value& value = values_[static_cast<size_t>(step.operands[static_cast<size_t>(input.operand)])];
    // One that is a result as it is stays apart: the step may exchange two values.
    const bool is_result = std::any_of(small.outputs().begin(), small.outputs().end(),
                                       [&](const SmallLoop::Output& output) { return output.home == input.home; });
    if (!is_result && input.byte_offset == 0 && input.lanes == value.part(0).count) {
      homes.emplace_back(input.home, value.home);
      continue;
    }
    to.push_back({nullptr,
                  {value.home + static_cast<size_t>(input.byte_offset)},
                  base + input.home,
                  input.lanes,
                  input.element_bytes});
  }
  const auto at = [&](size_t home) {
    const auto found = std::find_if(homes.begin(), homes.end(), [&](const auto& pair) { return pair.first == home; });
    return found == homes.end() ? base + home : found->second;
  };
  const std::vector<SmallLoop::Instruction>& instructions = small.instructions();
  const auto is_read_after = [&](size_t place, size_t number) {
    for (size_t i = number + 1; i < instructions.size(); ++i) {
      const auto& operands = instructions[i].operands;
      if (std::any_of(operands.begin(), operands.end(), [&](size_t operand) { return at(operand) == place; }))
        return true;
    }
    return std::any_of(small.outputs().begin(), small.outputs().end(),
                       [&](const SmallLoop::Output& output) { return at(output.home) == place; });
  };
  const size_t reads = to.size();
  for (const SmallLoop::Instruction& from : instructions) {
    to.push_back({from.kernel,
                  {at(from.operands[0]), at(from.operands[1]), at(from.operands[2])},
                  base + from.result,
                  from.lanes,
                  from.element_bytes});
  }
  for (size_t k = 0; k < small.outputs().size(); ++k) {
    const SmallLoop::Output& output = small.outputs()[k];
    const size_t home = values_[static_cast<size_t>(step.results[k])].home;
    const auto writes = std::find_if(instructions.begin(), instructions.end(),
                                     [&](const SmallLoop::Instruction& made) { return made.result == output.home; });
    const auto number = static_cast<size_t>(writes - instructions.begin());
    const bool is_taken =
        std::any_of(homes.begin(), homes.end(), [&](const auto& pair) { return pair.first == output.home; });
    if (writes == instructions.end() || is_taken || is_read_after(home, number)) {
      to.push_back({nullptr, {at(output.home)}, home, kBlockLanes, output.element_bytes});
      continue;
    }
    // Computed in place: whoever reads the register reads the value.
    for (size_t i = reads; i < to.size(); ++i) {
      for (size_t& operand : to[i].operands) {
        if (operand == base + output.home) operand = home;
      }
    }
    to[reads + number].result = home;
    homes.emplace_back(output.home, home);
  }
}

std::optional<SmallWhile> SmallWhile::make(const SmallWhileLoop& loop) {
  SmallWhile made;
  Loops loops;
  if (!made.cut(loop, loops) || !made.add_values(loop, loops)) return std::nullopt;
  for (const SmallWhileLoop::Step& step : loop.condition) made.add_step(step, loops, made.condition_);
  for (const SmallWhileLoop::Step& step : loop.body) made.add_step(step, loops, made.body_);
  if (made.bytes_ > kMostRegisterBytes) return std::nullopt;
  made.predicate_ = made.values_[static_cast<size_t>(loop.predicate)].home;
  made.exchanges_ = loop.exchanges;
  std::vector<size_t> homes;
  std::vector<int64_t> lanes;
  for (const Value& value : made.values_) {
    homes.push_back(value.home);
    lanes.push_back(value.part(0).count);
  }
  made.code_ = WhileCode::make(loop, loops, homes, lanes);
  return made;
}

int64_t SmallWhile::code_bytes() const { return code_ == nullptr ? 0 : code_->bytes(); }

void SmallWhile::load(std::byte* block, int64_t piece, const std::byte* const* values) const {
  for (const auto& [place, registers] : constants_) std::memcpy(block + place, registers.data(), registers.size());
  for (size_t i = 0; i < values_.size(); ++i) {
    const Value& value = values_[i];
    const auto [first, count] = value.part(piece);
    std::memcpy(block + value.home, values[i] + first * value.element_bytes,
                static_cast<size_t>(count * value.element_bytes));
    pad_block(block + value.home, value.element_bytes, count);
  }
}

void SmallWhile::store(const std::byte* block, int64_t piece, std::byte* const* values) const {
  for (size_t i = 0; i < values_.size(); ++i) {
    const Value& value = values_[i];
    if (!value.is_stored) continue;
    const auto [first, count] = value.part(piece);
    std::memcpy(values[i] + first * value.element_bytes, block + value.home,
                static_cast<size_t>(count * value.element_bytes));
  }
}

void SmallWhile::bind(const std::vector<Instruction>& from, std::byte* block, std::vector<Bound>& to) {
  to.reserve(from.size());
  for (const Instruction& instruction : from) {
    Bound bound;
    bound.kernel = instruction.kernel;
    for (size_t k = 0; k < 3; ++k) bound.operands[k] = block + instruction.operands[k];
    bound.result = block + instruction.result;
    bound.lanes = instruction.lanes;
    bound.element_bytes = instruction.element_bytes;
    to.push_back(bound);
  }
}

void SmallWhile::execute(const std::vector<Bound>& instructions) {
  for (const Bound& instruction : instructions) {
    if (instruction.kernel != nullptr) {
      instruction.kernel(instruction.operands.data(), instruction.result, instruction.lanes);
    } else {
      std::memmove(instruction.result, instruction.operands[0],
                   static_cast<size_t>(instruction.lanes * instruction.element_bytes));
    }
    pad_block(instruction.result, instruction.element_bytes, instruction.lanes);
  }
}

SmallWhile::Outcome SmallWhile::run(std::byte* block, int64_t most) const {
  std::vector<Bound> condition;
  bind(condition_, block, condition);
  const TileCode* const code = code_ == nullptr || most < 1 ? nullptr : code_->get(most);
  if (code != nullptr) {
    execute(condition);
    if (block[predicate_] == std::byte{0}) return {0, true};
    const int64_t iterations = code_->run(*code, block, most);
    return {iterations, block[predicate_] == std::byte{0}};
  }
  std::vector<Bound> body;
  bind(body_, block, body);
  for (int64_t i = 0; i < most; ++i) {
    execute(condition);
    if (block[predicate_] == std::byte{0}) return {i, true};
    execute(body);
    for (const auto& [a, b] : exchanges_) {
      std::byte* const left = block + values_[static_cast<size_t>(a)].home;
      const size_t bytes = register_bytes(values_[static_cast<size_t>(a)].element_bytes);
      std::swap_ranges(left, left + bytes, block + values_[static_cast<size_t>(b)].home);
    }
  }
  return {most, false};
}

}  // namespace meshd::kernels
