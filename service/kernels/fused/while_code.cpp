#include "service/kernels/fused/while_code.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "service/kernels/cpu.h"
#include "service/kernels/elementwise/lanes/lane_loop.h"
#include "service/kernels/fused/fused_loop.h"
#include "service/kernels/fused/small_loop.h"
#include "service/kernels/fused/small_reduce.h"
#include "service/kernels/tile/tile_steps.h"

namespace meshd::kernels {
namespace {

using tensor::DType;

constexpr size_t kNoHome = std::numeric_limits<size_t>::max();
constexpr size_t kMostRegisters = 1024;
constexpr int64_t kMostNumber = std::numeric_limits<int32_t>::max();  // in an instruction
constexpr int64_t kMostCounted = int64_t{1} << 20;  // iterations of one run; an iteration counts as a block of lanes

/// Puts the steps of an iteration together. Values are registers: inputs until a step makes them.
class IterationBuilder {
 public:
  IterationBuilder(const SmallWhileLoop& loop, std::span<const int64_t> lanes, int64_t vector_lanes)
      : loop_(loop), lanes_(lanes), vector_lanes_(vector_lanes), input_of_(lanes.size()), register_of_(lanes.size()) {}

  /// Inputs come first in a program: values that a step reads, or an exchange takes, before a step makes them; an array
  /// for each row.
  void add_inputs() {
    std::vector<char> is_made(lanes_.size(), 0);
    const auto read = [&](int value) {
      if (loop_.is_array[at(value)] != 0 || is_made[at(value)] != 0 || input_of_[at(value)]) return;
      input_of_[at(value)] = add_input(loop_.dtypes[at(value)]);
    };
    for (const auto* steps : {&loop_.body, &loop_.condition}) {
      for (const SmallWhileLoop::Step& step : *steps) {
        for (const int value : step.operands) read(value);
        if (const DynamicRow* const row = step.row()) {
          const bool is_long = row->lanes > 1;
          arrays_.push_back({add_input(row->dtype), step.operands[0], is_long ? tensor::size_bytes(row->dtype) : 0});
        }
        for (const int value : step.results) is_made[at(value)] = 1;
      }
      if (steps != &loop_.body) continue;
      for (const auto& [a, b] : loop_.exchanges) {
        for (const int value : {a, b}) {
          read(value);
          is_made[at(value)] = 1;
        }
      }
    }
    register_of_ = input_of_;
  }

  /// `small`: of a step with a kernel.
  bool add_step(const SmallWhileLoop::Step& step, const SmallLoop* small) {
    bool is_done = false;
    if (small != nullptr)
      is_done = add_loop(step, *small);
    else if (step.small_step == nullptr)
      is_done = give(step.results[0], emit_copy(value_register(step.operands[0])));
    else
      is_done = std::visit([&](const auto& small_step) { return add_small_step(step, small_step); }, *step.small_step);
    return is_done && program_.registers.size() <= kMostRegisters;
  }

  /// Each of the two has the other's value: a copy, where that is what it was at the beginning and is written over.
  void exchange(int a, int b) {
    std::swap(register_of_[at(a)], register_of_[at(b)]);
    for (const int value : {a, b}) {
      if (value_register(value) < program_.input_count) register_of_[at(value)] = emit_copy(value_register(value));
    }
  }

  /// Values that were made go to their homes when all has been read.
  bool finish(std::span<const size_t> homes) {
    homes_.assign(static_cast<size_t>(program_.input_count), kNoHome);
    for (size_t value = 0; value < lanes_.size(); ++value) {
      if (input_of_[value]) homes_[*input_of_[value]] = homes[value];
    }
    for (size_t value = 0; value < lanes_.size(); ++value) {
      if (!register_of_[value] || register_of_[value] == input_of_[value]) continue;
      const bool is_left =
          input_of_[value] || loop_.is_stored[value] != 0 || static_cast<int>(value) == loop_.predicate;
      if (!is_left) continue;                                         // of one iteration
      if (*register_of_[value] < program_.input_count) return false;  // its home may have been written by then
      const uint16_t output = emit_copy(*register_of_[value]);
      program_.outputs.push_back(output);
      if (static_cast<int>(value) == loop_.predicate)
        predicate_ = output;  // which is looked at in its memory
      else if (input_of_[value])
        carried_.emplace_back(*input_of_[value], output);
      homes_.resize(program_.registers.size(), kNoHome);
      homes_[output] = homes[value];
    }
    return predicate_.has_value() && program_.registers.size() <= 2 * kMostRegisters;
  }

  TileProgram program_;
  std::vector<size_t> homes_;
  std::vector<WhileCode::Array> arrays_;
  std::vector<std::pair<uint16_t, uint16_t>> carried_;
  std::optional<uint16_t> predicate_;

 private:
  static size_t at(int value) { return static_cast<size_t>(value); }

  uint16_t add_input(DType dtype) {
    ++program_.input_count;
    return program_.add_register(dtype);
  }
  [[nodiscard]] uint16_t value_register(int value) const { return *register_of_[at(value)]; }
  /// False where the value's elements are of another size.
  bool give(int value, uint16_t reg) {
    register_of_[at(value)] = reg;
    return tensor::size_bytes(program_.registers[reg]) == tensor::size_bytes(loop_.dtypes[at(value)]);
  }
  uint16_t emit_copy(uint16_t reg) { return program_.emit(ScalarOp::kCopy, {reg}, program_.registers[reg]); }

  bool add_loop(const SmallWhileLoop::Step& step, const SmallLoop& small) {
    const FusedLoop& fused = step.kernel->loop();
    std::vector<uint16_t> made(fused.program.registers.size(), 0);
    for (size_t i = 0; i < fused.inputs.size(); ++i) {
      const int value = step.operands[static_cast<size_t>(fused.inputs[i].operand)];
      // A value's memory may be that of values of other types at other times of an iteration.
      if (program_.registers[value_register(value)] != fused.program.registers[i]) return false;
      const std::optional<uint16_t> read = read_input(value, small.inputs()[i]);
      if (!read) return false;
      made[i] = *read;
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
    if (const auto& reduction = small.reduction()) {
      const uint16_t init = value_register(step.operands[static_cast<size_t>(fused.reduce->init_operands[0])]);
      const std::optional<uint16_t> folded = emit_fold(*reduction->reduce, made[fused.program.outputs[0]], init);
      return folded && give(step.results[0], *folded);
    }
    for (size_t k = 0; k < step.results.size(); ++k) {
      if (!give(step.results[k], made[fused.program.outputs[k]])) return false;
    }
    return true;
  }

  /// Item by item, all results at once.
  std::optional<uint16_t> emit_fold(const SmallReduce& reduce, uint16_t values, uint16_t init) {
    const int64_t count = reduce.results();
    const bool is_sum = reduce.op == ScalarOp::kAdd || reduce.op == ScalarOp::kMultiply;
    const bool is_float = reduce.dtype == DType::kFloat32;
    const bool is_bits = reduce.op == ScalarOp::kAnd || reduce.op == ScalarOp::kOr;
    const bool has_steps = is_float || reduce.dtype == DType::kInt32 || reduce.dtype == DType::kUint32 ||
                           (reduce.dtype == DType::kBool && is_bits);
    if (!has_steps || !reduce.is_in_order()) return std::nullopt;
    TileFold fold;
    fold.multiplies = reduce.op == ScalarOp::kMultiply;
    fold.results = count;
    for (int64_t item = 0; item < reduce.items; ++item) {
      TilePermute lanes;
      for (size_t lane = 0; lane < lanes.from.size(); ++lane) {
        const int64_t result = std::min(static_cast<int64_t>(lane), count - 1);
        const int64_t at_item = result / reduce.lanes * reduce.items + item;
        lanes.from[lane] = static_cast<uint8_t>(at_item * reduce.lanes + result % reduce.lanes);
      }
      fold.items.push_back(lanes);
    }
    TileInstruction instruction;
    if (is_float && is_sum) {
      const std::optional<std::vector<bool>> order = reduce.find_order();
      if (count > vector_lanes_ / 2 || !order) return std::nullopt;
      fold.item_first = *order;
      instruction.operands = {values, init};
      instruction.fold = static_cast<int16_t>(program_.folds.size());
      instruction.result = program_.add_register(reduce.dtype);
      program_.folds.push_back(std::move(fold));
      program_.instructions.push_back(instruction);
      return instruction.result;
    }
    std::optional<uint16_t> made;
    for (const TilePermute& lanes : fold.items) {
      const uint16_t item = emit_permute(lanes, {values}, reduce.dtype);
      made = made ? program_.emit(reduce.op, {*made, item}, reduce.dtype) : item;
    }
    return program_.emit(reduce.op, {init, *made}, reduce.dtype);
  }

  uint16_t emit_permute(const TilePermute& permute, std::array<uint16_t, 3> operands, DType dtype) {
    TileInstruction instruction;
    instruction.operands = operands;
    instruction.permute = static_cast<int16_t>(program_.permutes.size());
    instruction.result = program_.add_register(dtype);
    program_.permutes.push_back(permute);
    program_.instructions.push_back(instruction);
    return instruction.result;
  }

  /// What a loop reads of a value: the value as it is, or lanes of it.
  std::optional<uint16_t> read_input(int value, const SmallLoop::Input& input) {
    const bool is_as_it_is = input.byte_offset == 0 && input.elements.empty() && input.lanes >= lanes_[at(value)];
    if (is_as_it_is) return value_register(value);
    Shuffle shuffle{.dtype = program_.registers[value_register(value)], .lanes = {}};
    const int64_t first = input.byte_offset / input.element_bytes;
    for (size_t lane = 0; lane < static_cast<size_t>(input.lanes); ++lane) {
      const int64_t element = input.elements.empty() ? static_cast<int64_t>(lane) : input.elements[lane];
      shuffle.lanes.push_back({0, first + element});
    }
    return emit_shuffle(shuffle, std::array{value});
  }

  bool add_small_step(const SmallWhileLoop::Step& step, const Fill& fill) {
    return give(step.results[0], emit_copy(program_.constant(fill.dtype, fill.element.data())));
  }

  bool add_small_step(const SmallWhileLoop::Step& step, const Shuffle& shuffle) {
    const std::optional<uint16_t> made = emit_shuffle(shuffle, step.operands);
    return made && give(step.results[0], *made);
  }

  bool add_small_step(const SmallWhileLoop::Step& step, const DynamicRow& row) {
    const bool is_word_index = row.index_dtype == DType::kInt32 || row.index_dtype == DType::kUint32;
    const bool is_whole = row.lanes == 1 || row.lanes % vector_lanes_ == 0;
    if (!is_word_index || lane_form(row.dtype) == LaneForm::kNone) return false;
    // AVX2 has masks for lanes of 32 bits.
    if (cpu_level() != CpuLevel::kV4 && !is_whole && lane_form(row.dtype) != LaneForm::kWord) return false;
    TileInstruction instruction;
    TileRow made{.array = arrays_[rows_++].reg,
                 .lanes = std::min(row.lanes, block_lanes(row)),
                 .writes = row.writes(),
                 .skips = row.skips,
                 .indices = {}};
    size_t operands = 0;
    if (row.writes())
      instruction.operands[operands++] = value_register(step.operands[static_cast<size_t>(row.written)]);
    for (const DynamicRow::Index& index : row.indices) {
      if (index.most == 0 && !row.skips) continue;
      const int64_t stride = index.stride * tensor::size_bytes(row.dtype);
      if (operands == instruction.operands.size() || stride > kMostNumber || index.most > kMostNumber) return false;
      const int value = step.operands[static_cast<size_t>(index.operand)];
      const std::optional<uint16_t> number = element_of(value, index.element, row.index_dtype);
      if (!number) return false;
      instruction.operands[operands++] = *number;
      made.indices.push_back({index.most, stride});
    }
    instruction.row = static_cast<int16_t>(program_.rows.size());
    instruction.result = program_.add_register(row.dtype);
    program_.rows.push_back(std::move(made));
    program_.instructions.push_back(instruction);
    return row.writes() || give(step.results[0], instruction.result);
  }

  /// A value of one lane.
  std::optional<uint16_t> element_of(int value, int64_t element, DType dtype) {
    if (lanes_[at(value)] == 1) return value_register(value);
    return emit_shuffle({.dtype = dtype, .lanes = {{0, element}}}, std::array{value});
  }

  /// Of a long row, those of this piece.
  [[nodiscard]] int64_t block_lanes(const DynamicRow& row) const {
    return row.lanes <= kBlockLanes ? row.lanes : *std::max_element(lanes_.begin(), lanes_.end());
  }

  /// The elements come operand by operand; what comes first has the lanes behind the last one, too, which repeat it.
  std::optional<uint16_t> emit_shuffle(const Shuffle& shuffle, std::span<const int> operands) {
    const size_t count = shuffle.lanes.size();
    if (lane_form(shuffle.dtype) == LaneForm::kNone) return std::nullopt;
    std::optional<uint16_t> made;
    for (size_t k = 0; k < operands.size(); ++k) {
      const int64_t most = lanes_[at(operands[k])];
      TilePermute permute{.from = {}, .mask = 0};
      for (size_t lane = 0; lane < TilePermute::kMostLanes; ++lane) {
        const Shuffle::Lane& from = shuffle.lanes[std::min(lane, count - 1)];
        if (static_cast<size_t>(from.operand) != k) continue;
        permute.mask |= uint64_t{1} << lane;
        permute.from[lane] = static_cast<uint8_t>(most == 1 ? lane : static_cast<size_t>(from.element));
      }
      if (permute.mask == 0) continue;
      if (!made) permute.mask = TilePermute{}.mask;  // there is nothing else yet
      const uint16_t from = value_register(operands[k]);
      made = emit_permute(permute, {made.value_or(from), from}, shuffle.dtype);
    }
    return made;
  }

  const SmallWhileLoop& loop_;
  std::span<const int64_t> lanes_;
  const int64_t vector_lanes_;
  size_t rows_ = 0;
  std::vector<std::optional<uint16_t>> input_of_;
  std::vector<std::optional<uint16_t>> register_of_;
};

}  // namespace

std::shared_ptr<const WhileCode> WhileCode::make(const SmallWhileLoop& loop,
                                                 const std::map<const FusedKernel*, SmallLoop>& loops,
                                                 std::span<const size_t> homes, std::span<const int64_t> lanes,
                                                 int64_t most) {
  if (loop.body.empty() || cpu_level() == CpuLevel::kBase) return nullptr;
  std::optional<int64_t> after;
  for (const SmallWhileLoop::Step& step : loop.body) {
    if (step.kernel == nullptr) continue;
    if (!step.kernel->loop().code_after) return nullptr;
    after = step.kernel->loop().code_after;
  }
  if (!after) return nullptr;
  const int64_t vector_lanes = cpu_level() == CpuLevel::kV4 ? 16 : 8;
  IterationBuilder iteration(loop, lanes, vector_lanes);
  iteration.add_inputs();
  const auto add = [&](const std::vector<SmallWhileLoop::Step>& steps) {
    return std::all_of(steps.begin(), steps.end(), [&](const SmallWhileLoop::Step& step) {
      return iteration.add_step(step, step.kernel == nullptr ? nullptr : &loops.at(step.kernel.get()));
    });
  };
  if (!add(loop.body)) return nullptr;
  for (const auto& [a, b] : loop.exchanges) iteration.exchange(a, b);
  if (!add(loop.condition) || !iteration.finish(homes)) return nullptr;
  // The strips of a block are computed one after the other: they must not need each other's lanes, nor one find
  // what another has written in its place.
  const auto written = written_rows(loop);
  const bool one_strip =
      !iteration.program_.permutes.empty() || !iteration.program_.folds.empty() ||
      std::any_of(written.begin(), written.end(), [](const auto& array) { return array.second.size() > 1; });
  constexpr int64_t kMostVectors = 4;
  if (one_strip && most > kMostVectors * vector_lanes) return nullptr;
  for (const TileStep& step : tile_steps(iteration.program_, cpu_level())) {
    if (step.kind == StepKind::kKernel) return nullptr;
  }
  std::shared_ptr<WhileCode> made(new WhileCode(*after));
  made->program_ = std::move(iteration.program_);
  made->homes_ = std::move(iteration.homes_);
  made->homes_.resize(made->program_.registers.size(), kNoHome);
  made->arrays_ = std::move(iteration.arrays_);
  made->options_.lanes = most;
  made->options_.one_strip = one_strip;
  made->options_.repeats_while = iteration.predicate_;
  made->carried_ = std::move(iteration.carried_);
  made->options_.carried = made->carried_;
  return made;
}

const TileCode* WhileCode::get(int64_t most) const {
  return code_.get(program_, options_, std::min(most, kMostCounted) * kBlockLanes);
}

int64_t WhileCode::run(const TileCode& code, std::byte* block, std::byte* const* values, int64_t first_lane,
                       int64_t most) const {
  std::array<std::byte*, 2 * kMostRegisters> registers{};  // with the copies of finish()
  for (size_t reg = 0; reg < homes_.size(); ++reg)
    registers[reg] = homes_[reg] == kNoHome ? nullptr : block + homes_[reg];
  for (const Array& array : arrays_) registers[array.reg] = values[array.value] + first_lane * array.lane_bytes;
  return code.repeat(registers.data(), most);
}

}  // namespace meshd::kernels
