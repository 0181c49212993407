#include "service/kernels/tile/tile_generator.h"

#if defined(__x86_64__)

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "service/kernels/cpu.h"
#include "service/kernels/elementwise/lanes/lane_loop.h"

namespace meshd::kernels {
namespace {

constexpr int kNoPointer = -1;
// The frame: operands of a kernel call, the caller's stack, the last lane, iterations; slots.
constexpr int kSavedStack = 32;
constexpr int kEnd = 40;
constexpr int kIterations = 48;
constexpr int kFirstSlot = 64;
constexpr int kFrameBytes = 8 * 1024;
constexpr int kLinesAhead = 4;
constexpr int kWideRegisters = 32;
constexpr int kRegisters = 16;
/// A step has three operands and a result; more make room for values that wait. (With fewer, operands are read from
/// memory.)
constexpr int kFewGroups = 5;

constexpr uint32_t kSign = 0x80000000U;
constexpr uint32_t kMagnitude = 0x7FFFFFFFU;
constexpr uint32_t kOne = 0x3F800000U;
constexpr uint32_t kLargest = 0x7F7FFFFFU;

// Predicates of vcmpps, and of vpcmpd where they are the same.
constexpr uint8_t kEqual = 0;
constexpr uint8_t kLess = 1;
constexpr uint8_t kLessOrEqual = 2;
constexpr uint8_t kUnordered = 3;
constexpr uint8_t kNotEqual = 4;
constexpr uint8_t kOrdered = 7;
constexpr uint8_t kNotLess = 5;  // of vpcmpd
constexpr uint8_t kNotLessOrEqual = 6;
constexpr uint8_t kGreaterOrEqual = 13;
constexpr uint8_t kGreater = 14;

/// Of floats: arithmetic, whose NaN are quiet whatever those of the operands are.
bool makes_quiet_nans(StepKind kind) {
  return (kind >= StepKind::kAdd && kind <= StepKind::kSquare) || kind == StepKind::kSqrt;
}

/// Of bfloat16: the result is one, without rounding.
bool is_exact(StepKind kind) {
  return kind == StepKind::kAbs || kind == StepKind::kNegate ||
         (kind >= StepKind::kMaximum && kind <= StepKind::kClamp) ||
         (kind >= StepKind::kSign && kind <= StepKind::kRoundEven);
}

uint8_t float_predicate(ScalarOp comparison) {
  constexpr std::array kPredicates = {kEqual, kNotEqual, kLess, kLessOrEqual, kGreater, kGreaterOrEqual};
  return kPredicates[static_cast<size_t>(comparison) - static_cast<size_t>(ScalarOp::kCompareEq)];
}

uint8_t integer_predicate(ScalarOp comparison) {
  constexpr std::array kPredicates = {kEqual, kNotEqual, kLess, kLessOrEqual, kNotLessOrEqual, kNotLess};
  return kPredicates[static_cast<size_t>(comparison) - static_cast<size_t>(ScalarOp::kCompareEq)];
}

bool moves_lanes(const TileStep& step) { return step.kind == StepKind::kPermute || step.kind == StepKind::kFold; }
bool is_call(const TileStep& step) { return step.kind == StepKind::kKernel || step.kind == StepKind::kFunction; }

}  // namespace

TileGenerator::TileGenerator(const TileProgram& program, CpuLevel level, const TileCode::Options& options,
                             std::byte* memory, size_t bytes)
    : Xbyak::CodeGenerator(bytes, memory),
      own_registers_(static_cast<int>(program.registers.size())),
      expanded_(expand_recipes(program, level)),
      program_(expanded_.program),
      options_(options),
      is_wide_(level == CpuLevel::kV4),
      lanes_(is_wide_ ? 16 : 8),
      uses_(program_.registers.size()),
      is_output_(program_.registers.size(), 0),
      constant_of_(program_.registers.size(), nullptr) {
  order_steps(expanded_.steps);
  for (size_t i = 0; i < instructions_.size(); ++i) {
    for (const uint16_t reg : operands_of(i)) uses_[reg].push_back(i);
    for (const uint16_t output : program_.outputs) {
      if (output == instructions_[i].result) is_output_[output] = 1;
    }
    calls_kernels_ = calls_kernels_ || steps_[i].kind == StepKind::kKernel;
  }
  next_call_.assign(steps_.size() + 1, kNever);
  for (size_t i = steps_.size(); i-- > 0;) next_call_[i] = is_call(steps_[i]) ? i : next_call_[i + 1];
  for (const TileConstant& constant : program_.constants) constant_of_[constant.reg] = &constant;
  choose_carried();
  choose_width();
  choose_pointers();
}

// Values of one vector, where no call takes the registers; half of these are left to the steps. What is given away at
// the end of a repetition is used there.
void TileGenerator::choose_carried() {
  if (next_call_[0] != kNever || options_.lanes > lanes_) return;
  const auto most = static_cast<size_t>((is_wide_ ? kWideRegisters : kRegisters) - kTemporaries) / 2;
  for (const auto& [input, output] : options_.carried) {
    if (carried_.size() == most) break;
    if (uses_[input].empty() || is_output_[output] == 0) continue;
    carried_.push_back({input, output, -1});
    uses_[output].push_back(steps_.size());
  }
}

std::span<const uint16_t> TileGenerator::operands_of(size_t number) const {
  return {instructions_[number].operands.data(), static_cast<size_t>(steps_[number].operand_count)};
}

// Calls come first, each with what it needs; the rest follows. Less waits in slots while calls are made.
void TileGenerator::order_steps(const std::vector<TileStep>& steps) {
  std::vector<size_t> made_by(program_.registers.size(), kNever);
  for (size_t i = 0; i < steps.size(); ++i) made_by[program_.instructions[i].result] = i;
  std::vector<char> is_placed(steps.size(), 0);
  std::vector<size_t> waiting;
  const auto place = [&](size_t wanted) {
    waiting.push_back(wanted);
    while (!waiting.empty()) {
      const size_t number = waiting.back();
      const TileInstruction& instruction = program_.instructions[number];
      const size_t before = waiting.size();
      for (int k = steps[number].operand_count; k-- > 0 && is_placed[number] == 0;) {
        const size_t source = made_by[instruction.operands[static_cast<size_t>(k)]];
        if (source != kNever && is_placed[source] == 0) waiting.push_back(source);
      }
      if (waiting.size() > before) continue;
      waiting.pop_back();
      if (is_placed[number] != 0) continue;
      is_placed[number] = 1;
      instructions_.push_back(instruction);
      steps_.push_back(steps[number]);
    }
  };
  // Rows stay in order: one may be read from where another was written.
  for (size_t i = 0; i < steps.size() && program_.rows.empty(); ++i) {
    if (is_call(steps[i])) place(i);
  }
  for (size_t i = 0; i < steps.size(); ++i) place(i);
}

// As many vectors as leave registers for all values that live at once; four where functions are: their steps wait
// for each other, and to spill values costs less than to wait.
void TileGenerator::choose_width() {
  const int registers = (is_wide_ ? kWideRegisters : kRegisters) - kTemporaries;
  std::vector<int> change(steps_.size() + 2, 0);  // in the number of values that live, by step
  std::vector<size_t> made_at(uses_.size(), 0);
  for (size_t i = 0; i < instructions_.size(); ++i) made_at[instructions_[i].result] = i;
  for (size_t reg = 0; reg < uses_.size(); ++reg) {
    if (constant_of_[reg] != nullptr || uses_[reg].empty()) continue;
    ++change[made_at[reg]];
    --change[uses_[reg].back() + 1];
  }
  int alive = 0;
  int most = 0;
  for (const int more : change) most = std::max(most, alive += more);
  most_alive_ = most;
  vectors_ = 4;
  while (!expanded_.is_deep && vectors_ > 1 && registers / vectors_ < std::max(kFewGroups, most + 1)) vectors_ /= 2;
  if (options_.one_strip) vectors_ = 4;
  while (vectors_ > 1 && vectors_ / 2 * lanes_ >= options_.lanes) vectors_ /= 2;
  groups_ = registers / vectors_;
  block_lanes_ = static_cast<int>(options_.lanes);
}

bool TileGenerator::generate() {
  write_function(Form::kPlain);
  write_other_forms();
  align(kLineBytes);
  for (auto& [bits, label] : constants_) {
    L(label);
    for (int lane = 0; lane < lanes_; ++lane) dd(bits);
  }
  for (auto& [by_lane, label] : vector_constants_) {
    L(label);
    for (const uint32_t bits : by_lane) dd(bits);
  }
  return fits_frame_;
}

void TileGenerator::write_other_forms() {
  const bool all_words = std::all_of(program_.outputs.begin(), program_.outputs.end(), [&](uint16_t reg) {
    return is_output_[reg] != 0 && form(reg) == LaneForm::kWord;
  });
  if (options_.streams && all_words) {
    align(kLineBytes);
    streaming_begin_ = getSize();
    write_function(Form::kStreaming);
  }
  const bool can_walk = this->can_walk();
  if (options_.row_lanes >= lanes_ && can_walk) walking_begin_ = write_rows_form(Form::kWalking);
  if (options_.sums > 0 && can_walk && can_sum()) {
    choose_width_beside_sums();  // it is the last form
    summing_begin_ = write_rows_form(Form::kSumming);
  }
}

void TileGenerator::reset_places(int first_slot) {
  places_.assign(program_.registers.size(), Place{});
  for (uint16_t reg = 0; reg < program_.input_count; ++reg) places_[reg].in_memory = true;
  for (const TileConstant& constant : program_.constants) places_[constant.reg].in_memory = true;
  group_owner_.assign(static_cast<size_t>(groups_), -1);
  is_pinned_.assign(static_cast<size_t>(groups_), 0);
  free_slots_.clear();
  frame_used_ = first_slot;
  first_vector_ = 0;
  end_vector_ = vectors_;
}

/// The registers that the caller keeps.
void TileGenerator::write_prologue() {
  for (const Xbyak::Reg64& reg : {rbx, rbp, r12, r13, r14, r15}) push(reg);
  mov(rax, rsp);
  sub(rsp, kFrameBytes);
  and_(rsp, -kLineBytes);
  mov(ptr[rsp + kSavedStack], rax);
}

/// From rdi on.
void TileGenerator::write_pointers() {
  mov(rax, rdi);
  if (has_table_) mov(rbx, rdi);
  for (size_t reg = 0; reg < pointers_.size(); ++reg) {
    if (pointers_[reg] != kNoPointer) mov(Xbyak::Reg64(pointers_[reg]), ptr[rax + reg * 8]);
  }
}

void TileGenerator::write_epilogue() {
  mov(rsp, ptr[rsp + kSavedStack]);
  for (const Xbyak::Reg64& reg : {r15, r14, r13, r12, rbp, rbx}) pop(reg);
  vzeroupper();
  ret();
}

void TileGenerator::write_function(Form form) {
  form_ = form;
  reset_places(kFirstSlot);
  write_prologue();
  mov(ptr[rsp + kEnd], rdx);
  if (options_.repeats_while) mov(qword[rsp + kIterations], 0);
  mov(r12, rsi);
  write_pointers();
  load_carried();
  Xbyak::Label block;
  align(32);
  L(block);
  write_block();
  copy_carried();
  if (options_.repeats_while) {
    Xbyak::Label over;
    inc(qword[rsp + kIterations]);
    cmp(byte[pointer(*options_.repeats_while)], 0);
    je(over);
    mov(rax, ptr[rsp + kIterations]);
    cmp(rax, ptr[rsp + kEnd]);
    jl(block, T_NEAR);
    L(over);
    store_carried();
    mov(rax, ptr[rsp + kIterations]);
  } else {
    add(r12, static_cast<int>(kBlockLanes));
    cmp(r12, ptr[rsp + kEnd]);
    jl(block, T_NEAR);
  }
  write_epilogue();
}

void TileGenerator::write_block() {
  prefetch();
  for (size_t i = 0; i < steps_.size();) {
    if (steps_[i].kind == StepKind::kKernel) {
      write_kernel_call(i++);
      continue;
    }
    size_t end = i;
    while (end < steps_.size() && steps_[end].kind != StepKind::kKernel) ++end;
    write_strips(i, end);
    i = end;
  }
}

/// Each strip of a block begins as the first did: it has other lanes of the same slots.
void TileGenerator::write_strips(size_t begin, size_t end) {
  const std::vector<Place> places = places_;
  const auto free_slots = free_slots_;
  const int frame_used = frame_used_;
  for (first_lane_ = 0; first_lane_ < block_lanes_; first_lane_ += vectors_ * lanes_) {
    places_ = places;
    free_slots_ = free_slots;
    frame_used_ = frame_used;
    write_steps(begin, end);
  }
  first_lane_ = 0;
}

void TileGenerator::write_steps(size_t begin, size_t end) {
  for (size_t i = begin; i < end; ++i) {
    const size_t called = next_call_[i];
    if (called < end && i >= chain_begin(called, begin)) {
      write_call(i, called);
      i = called;
    } else {
      write_step(i);
    }
  }
  if (carried_.empty()) leave_registers(end);
}

/// The first of the steps right before a call whose results nothing but they and the call uses.
size_t TileGenerator::chain_begin(size_t called, size_t least) const {
  size_t begin = called;
  while (begin > least && !is_call(steps_[begin - 1]) && is_output_[instructions_[begin - 1].result] == 0) {
    if (moves_lanes(steps_[begin - 1])) break;  // it needs all vectors of what it reads
    const std::vector<size_t>& uses = uses_[instructions_[begin - 1].result];
    if (uses.empty() || uses.back() > called) break;
    --begin;
  }
  return begin;
}

/// Lines of inputs where the options say so; of results always: a store that waits for its line holds up all that
/// follow. (Measured on an Intel Xeon: a broadcast column subtracted takes 0.75 to 0.85 of the time, one_hot 0.65 to
/// 0.85.) What repeats one block keeps its lines.
void TileGenerator::prefetch() {
  const bool stores = form_ == Form::kPlain || form_ == Form::kWalking;
  const bool has_next = !options_.repeats_while && !options_.one_strip;
  const auto for_lines = [&](uint16_t reg, const auto& fetch) {
    const auto bytes = static_cast<int>(tensor::size_bytes(program_.registers[reg]));
    if (bytes > 8) return;
    const Xbyak::Reg64 memory = pointer(reg);
    for (int line = 0; line < std::max(1, block_lanes_ * bytes / static_cast<int>(kLineBytes)); ++line)
      fetch(ptr[memory + r12 * bytes + (kLinesAhead + line) * kLineBytes]);
  };
  for (uint16_t reg = 0; reg < own_registers_; ++reg) {
    if (is_output_[reg] != 0 && stores && has_next) {
      for_lines(reg, [&](const Xbyak::Address& line) { prefetchw(line); });
    } else if (reg < program_.input_count && options_.prefetches && form_ != Form::kSumming && !uses_[reg].empty() &&
               !is_element(reg)) {
      for_lines(reg, [&](const Xbyak::Address& line) { prefetcht0(line); });
    }
  }
}

// --- values ---

bool TileGenerator::is_element(uint16_t reg) const {
  return reads_elements() &&
         std::find(options_.elements.begin(), options_.elements.end(), reg) != options_.elements.end();
}

/// Whether code that goes from row to row moves its pointer.
bool TileGenerator::is_walked(uint16_t reg) const {
  if (options_.row_lanes == 0 && options_.sums == 0) return false;
  const std::vector<uint16_t> walked = this->walked();
  return std::find(walked.begin(), walked.end(), reg) != walked.end();
}

size_t TileGenerator::next_use(uint16_t reg, size_t after) const {
  const auto next = std::upper_bound(uses_[reg].begin(), uses_[reg].end(), after);
  return next == uses_[reg].end() ? kNever : *next;
}

/// Whether vector registers keep the value until its next use: it has one, and no call comes before.
bool TileGenerator::is_kept(uint16_t reg, size_t after) const {
  const size_t next = next_use(reg, after);
  return next != kNever && next < next_call_[std::min(after + 1, steps_.size())];
}

int TileGenerator::take_group() {
  int chosen = -1;
  size_t farthest = 0;
  for (int group = 0; group < groups_; ++group) {
    const int owner = group_owner_[static_cast<size_t>(group)];
    if (owner < 0) return group;
    if (is_pinned_[static_cast<size_t>(group)] != 0) continue;
    const auto& uses = uses_[static_cast<size_t>(owner)];
    const auto next = std::find_if(uses.begin(), uses.end(), [&](size_t use) { return use >= now_; });
    const size_t distance = next == uses.end() ? kNever : *next;
    if (chosen < 0 || distance > farthest) {
      chosen = group;
      farthest = distance;
    }
  }
  const auto owner = static_cast<uint16_t>(group_owner_[static_cast<size_t>(chosen)]);
  spill(owner);
  places_[owner].group = -1;
  group_owner_[static_cast<size_t>(chosen)] = -1;
  return chosen;
}

/// Where the operands of step `number` have all groups and live on, the one that is used last is read from memory.
void TileGenerator::make_room(size_t number) {
  for (size_t group = 0; group < group_owner_.size(); ++group) {
    if (group_owner_[group] < 0 || is_pinned_[group] == 0) return;
  }
  const uint16_t reg = *std::max_element(operands_.begin(), operands_.end(), [&](uint16_t a, uint16_t b) {
    return (places_[a].group >= 0 ? next_use(a, number) : 0) < (places_[b].group >= 0 ? next_use(b, number) : 0);
  });
  spill(reg);
  const auto group = static_cast<size_t>(places_[reg].group);
  places_[reg].group = -1;
  group_owner_[group] = -1;
  for (size_t k = 0; k < operands_.size(); ++k) {
    if (operands_[k] == reg) operand_groups_[k] = -1;
  }
}

void TileGenerator::load_group(uint16_t reg) {
  const int group = take_group();
  group_owner_[static_cast<size_t>(group)] = reg;
  places_[reg].group = group;
  for (int v = first_vector_; v < end_vector_; ++v) load(vector_of(group, v), reg, v);
}

void TileGenerator::spill(uint16_t reg) {
  Place& place = places_[reg];
  if (place.in_memory) return;
  if (place.slot < 0) place.slot = take_slot(tensor::size_bytes(program_.registers[reg]));
  for (int v = first_vector_; v < end_vector_; ++v) store(slot_address(reg, v), form(reg), vector_of(place.group, v));
  place.in_memory = true;
}

/// Vector registers are lost: values that are used from step `from` on go to memory.
void TileGenerator::leave_registers(size_t from) {
  for (int group = 0; group < groups_; ++group) {
    const int owner = group_owner_[static_cast<size_t>(group)];
    if (owner < 0) continue;
    const auto reg = static_cast<uint16_t>(owner);
    if (!uses_[reg].empty() && uses_[reg].back() >= from) spill(reg);
    places_[reg].group = -1;
    group_owner_[static_cast<size_t>(group)] = -1;
  }
}

int TileGenerator::take_slot(int64_t element_bytes) {
  const auto found = std::find_if(free_slots_.begin(), free_slots_.end(),
                                  [&](const auto& slot) { return slot.first == element_bytes; });
  if (found != free_slots_.end()) {
    const int slot = found->second;
    free_slots_.erase(found);
    return slot;
  }
  const int slot = frame_used_;
  const auto bytes = static_cast<int>(element_bytes * kBlockLanes);
  if (frame_used_ + bytes > kFrameBytes - kLineBytes) {
    fits_frame_ = false;  // the code is not used
    return kFirstSlot;
  }
  frame_used_ += bytes;
  return slot;
}

/// Nothing reads the value after step `number`.
void TileGenerator::release(uint16_t reg, size_t number) {
  Place& place = places_[reg];
  if (next_use(reg, number) != kNever) return;
  if (place.group >= 0) group_owner_[static_cast<size_t>(place.group)] = -1;
  place.group = -1;
  if (place.slot >= 0) free_slots_.emplace_back(tensor::size_bytes(program_.registers[reg]), place.slot);
  place.slot = -1;
}

void TileGenerator::store_result(uint16_t reg, int v, const Vector& value) {
  const bool is_carried =
      std::any_of(carried_.begin(), carried_.end(), [reg](const Carried& carried) { return carried.output == reg; });
  if (is_output_[reg] == 0 || is_carried) return;
  if (form_ == Form::kSumming) return add_to_sum(v, value);
  const auto bytes = static_cast<int>(tensor::size_bytes(program_.registers[reg]));
  const Xbyak::Address to = ptr[pointer(reg) + r12 * bytes + (first_lane_ + v * lanes_) * bytes];
  if (form_ == Form::kStreaming)
    vmovntps(to, value);
  else
    store(to, form(reg), value);
}

// --- steps ---

void TileGenerator::write_step(size_t number) {
  now_ = number;
  const TileInstruction& instruction = instructions_[number];
  const TileStep& step = steps_[number];
  const auto operands = operands_of(number);
  operands_.assign(operands.begin(), operands.end());
  const auto pin = [&] {
    for (const uint16_t reg : operands_) {
      if (places_[reg].group >= 0) is_pinned_[static_cast<size_t>(places_[reg].group)] = 1;
    }
  };
  pin();
  for (const uint16_t reg : operands_) {
    if (places_[reg].group >= 0 || constant_of_[reg] != nullptr || !is_kept(reg, number)) continue;
    load_group(reg);
    pin();
  }
  operand_groups_.clear();
  for (const uint16_t reg : operands_) operand_groups_.push_back(places_[reg].group);
  // The result may take the vectors of an operand that ends here: each is written when it has been read.
  for (const uint16_t reg : operands_) {
    if (!moves_lanes(step) && next_use(reg, number) == kNever && places_[reg].group >= 0) {
      is_pinned_[static_cast<size_t>(places_[reg].group)] = 0;
      group_owner_[static_cast<size_t>(places_[reg].group)] = -1;
      places_[reg].group = -1;
    }
  }
  make_room(number);
  const int group = take_group();
  std::fill(is_pinned_.begin(), is_pinned_.end(), 0);
  for (int v = first_vector_; v < end_vector_; ++v) {
    const Vector to = vector_of(group, v);
    const bool is_swapped = step.second_first[static_cast<size_t>((first_lane_ + v * lanes_) / 8)];
    if (is_swapped) swap_operands();
    write_vector(step, to, v);
    if (is_swapped) swap_operands();
    if (step.rounds) round_to_half(step.kind, to, next_use(instruction.result, number) == kNever);
    store_result(instruction.result, v, to);
  }
  for (const uint16_t reg : operands_) release(reg, number);
  Place& made = places_[instruction.result];
  made.group = group;
  group_owner_[static_cast<size_t>(group)] = instruction.result;
  release(instruction.result, number);
}

// Steps [begin, number) are made for one vector at a time, right before its call.
void TileGenerator::write_call(size_t begin, size_t number) {
  const TileInstruction& instruction = instructions_[number];
  const TileStep& step = steps_[number];
  leave_registers(begin);
  Place& made = places_[instruction.result];
  const bool is_used = next_use(instruction.result, number) != kNever;
  const bool stays =
      vectors_ == 1 && is_kept(instruction.result, number);  // in a vector register: no other call follows
  if (is_used && !stays) made.slot = take_slot(tensor::size_bytes(program_.registers[instruction.result]));
  const std::vector<Place> places = places_;
  const auto free_slots = free_slots_;
  const int frame_used = frame_used_;
  const Vector first = vector(0);
  for (int v = 0; v < vectors_; ++v) {
    places_ = places;
    free_slots_ = free_slots;
    frame_used_ = frame_used;
    group_owner_.assign(group_owner_.size(), -1);
    first_vector_ = v;
    end_vector_ = v + 1;
    for (size_t i = begin; i < number; ++i) write_step(i);
    const auto operands = operands_of(number);
    operands_.assign(operands.begin(), operands.end());
    for (size_t k = 0; k < operands_.size(); ++k) {
      const Vector to = vector(static_cast<int>(k));
      if (places_[operands_[k]].group >= 0)
        vmovaps(to, vector_of(places_[operands_[k]].group, v));
      else
        load(to, operands_[k], v);
    }
    mov(rax, reinterpret_cast<size_t>(step.function));
    call(rax);
    if (step.rounds) {
      vmovaps(vector(3), first);
      round_to_half(step.kind, vector(3), false);
      vmovaps(first, vector(3));
    }
    if (is_used && !stays) store(slot_address(instruction.result, v), form(instruction.result), first);
    store_result(instruction.result, v, first);
  }
  first_vector_ = 0;
  end_vector_ = vectors_;
  group_owner_.assign(group_owner_.size(), -1);
  for (Place& place : places_) place.group = -1;
  now_ = number;
  places_[instruction.result].in_memory = is_used && !stays;
  if (stays) {
    places_[instruction.result].group = 0;
    group_owner_[0] = instruction.result;
    vmovaps(vector_of(0, 0), first);
  }
  for (const uint16_t reg : operands_) release(reg, number);
}

void TileGenerator::write_kernel_call(size_t number) {
  now_ = number;
  const TileInstruction& instruction = instructions_[number];
  const auto operands = operands_of(number);
  operands_.assign(operands.begin(), operands.end());
  for (size_t k = 0; k < operands_.size(); ++k) {
    const uint16_t reg = operands_[k];
    const Xbyak::Address entry = ptr[rsp + static_cast<int>(k) * 8];
    if (places_[reg].slot >= 0) {
      lea(rax, ptr[rsp + places_[reg].slot]);
    } else {
      write_lane_address(reg);
    }
    mov(entry, rax);
  }
  const uint16_t result = instruction.result;
  const int64_t bytes = tensor::size_bytes(program_.registers[result]);
  Place& made = places_[result];
  made.slot = take_slot(bytes);
  mov(rdi, rsp);
  lea(rsi, ptr[rsp + made.slot]);
  mov(edx, static_cast<int>(kBlockLanes));
  vzeroupper();
  mov(rax, reinterpret_cast<size_t>(instruction.kernel));
  call(rax);
  made.in_memory = true;
  if (is_output_[result] != 0) {
    write_lane_address(result);
    const auto vector_bytes = static_cast<int>(is_wide_ ? 64 : 32);
    for (int at = 0; at < static_cast<int>(bytes * kBlockLanes); at += vector_bytes) {
      vmovups(vector(0), ptr[rsp + made.slot + at]);
      if (form_ == Form::kStreaming)
        vmovntps(ptr[rax + at], vector(0));
      else
        vmovups(ptr[rax + at], vector(0));
    }
  }
  for (const uint16_t reg : operands_) release(reg, number);
  release(result, number);
}

// --- memory ---

/// Pointers to the memory of inputs and outputs stay in general registers, those that move from row to row and then
/// those that are used most first; the table of all has one only where it must. (Loaded again for each vector, they
/// hold up the loads behind them.)
void TileGenerator::choose_pointers() {
  constexpr auto kFirst = static_cast<size_t>(std::numeric_limits<int>::max());
  std::vector<std::pair<size_t, uint16_t>> wanted;
  const bool calls = next_call_[0] != kNever;
  for (int number = 0; number < own_registers_; ++number) {
    const auto reg = static_cast<uint16_t>(number);
    const bool is_array =
        std::any_of(program_.rows.begin(), program_.rows.end(), [reg](const TileRow& row) { return row.array == reg; });
    const bool is_input = reg < program_.input_count && (is_array || !uses_[reg].empty());
    const bool is_read_by_kernel = constant_of_[reg] != nullptr && calls_kernels_;
    if (is_input || is_output_[reg] != 0 || is_read_by_kernel)
      wanted.emplace_back((is_walked(reg) ? kFirst : 0) + uses_[reg].size() + static_cast<size_t>(is_output_[reg]),
                          reg);
  }
  std::stable_sort(wanted.begin(), wanted.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  constexpr std::array kKept = {5, 13, 14, 15};             // rbp, r13 to r15: calls keep them
  constexpr std::array kLost = {1, 2, 6, 7, 8, 9, 10, 11};  // rcx, rdx, rsi, rdi, r8 to r11
  std::vector<int> registers(kKept.begin(), kKept.end());
  for (const int lost : kLost) {
    const bool is_of_rows = !program_.rows.empty() && (lost == rcx.getIdx() || lost == rdx.getIdx());
    if (!calls && !is_of_rows) registers.push_back(lost);
  }
  has_table_ = wanted.size() > registers.size() + 1;
  if (!has_table_) registers.push_back(rbx.getIdx());
  pointers_.assign(program_.registers.size(), kNoPointer);
  for (size_t i = 0; i < std::min(wanted.size(), registers.size()); ++i) pointers_[wanted[i].second] = registers[i];
}

/// The register with the address of a program register's memory; rax where none is kept.
Xbyak::Reg64 TileGenerator::pointer(uint16_t reg) {
  if (pointers_[reg] != kNoPointer) return Xbyak::Reg64(pointers_[reg]);
  mov(rax, ptr[rbx + reg * 8]);
  return rax;
}

/// rax becomes the address of the lane.
void TileGenerator::write_lane_address(uint16_t reg) {
  const auto bytes = static_cast<int>(tensor::size_bytes(program_.registers[reg]));
  const Xbyak::Reg64 memory = pointer(reg);
  if (memory != rax) mov(rax, memory);
  for (int i = 0; i < std::max(1, bytes / 8); ++i) lea(rax, ptr[rax + r12 * std::min(8, bytes)]);
}

TileGenerator::Vector TileGenerator::vector(int number) const {
  return is_wide_ ? Vector(Xbyak::Zmm(number)) : Vector(Xbyak::Ymm(number));
}

Xbyak::Address TileGenerator::constant(uint32_t bits) { return ptr[rip + constants_[bits]]; }

Xbyak::Address TileGenerator::constant(const std::vector<uint32_t>& by_lane) {
  return ptr[rip + vector_constants_[by_lane]];
}

Xbyak::Address TileGenerator::slot_address(uint16_t reg, int v) {
  const auto bytes = static_cast<int>(tensor::size_bytes(program_.registers[reg]));
  return ptr[rsp + places_[reg].slot + (first_lane_ + v * lanes_) * bytes];
}

/// Of one vector's lanes of a value in memory; may write rax.
Xbyak::Address TileGenerator::address(uint16_t reg, int v) {
  if (places_[reg].slot >= 0) return slot_address(reg, v);
  if (const TileConstant* const value = constant_of_[reg]; value != nullptr) {
    uint32_t bits = 0;
    std::memcpy(&bits, value->element.data(), static_cast<size_t>(tensor::size_bytes(program_.registers[reg])));
    return constant(form(reg) == LaneForm::kHalf ? bits << 16 : bits);
  }
  if (is_element(reg)) return ptr[pointer(reg)];
  const auto bytes = static_cast<int>(tensor::size_bytes(program_.registers[reg]));
  return ptr[pointer(reg) + r12 * bytes + (first_lane_ + v * lanes_) * bytes];
}

void TileGenerator::load(const Vector& to, uint16_t reg, int v) {
  const Xbyak::Address from = address(reg, v);
  if (is_element(reg) && form(reg) == LaneForm::kHalf) {
    vpbroadcastw(to, from);
    vpslld(to, to, 16);
  } else if (is_element(reg)) {
    vbroadcastss(to, from);
  } else {
    load(to, constant_of_[reg] != nullptr ? LaneForm::kWord : form(reg), from);
  }
}

void TileGenerator::load(const Vector& to, LaneForm form, const Xbyak::Address& from) {
  if (form == LaneForm::kWord) {
    vmovups(to, from);
  } else if (form == LaneForm::kByte) {
    vpmovzxbd(to, from);
  } else {
    vpmovzxwd(to, from);
    vpslld(to, to, 16);
  }
}

/// Writes vectors 1 and 2.
void TileGenerator::store(const Xbyak::Address& to, LaneForm form, const Vector& value) {
  if (form == LaneForm::kWord) return vmovups(to, value);
  Vector low = value;
  if (form == LaneForm::kHalf) {
    low = vector(2);
    vpsrld(low, value, 16);
  }
  if (is_wide_) return form == LaneForm::kHalf ? vpmovdw(to, low) : vpmovdb(to, low);
  const Xbyak::Xmm upper(1);
  const Xbyak::Xmm packed(2);
  vextracti128(upper, Xbyak::Ymm(low.getIdx()), 1);
  vpackusdw(packed, Xbyak::Xmm(low.getIdx()), upper);
  if (form == LaneForm::kHalf) return vmovups(to, packed);
  vpackuswb(packed, packed, packed);
  vmovq(to, packed);
}

void TileGenerator::swap_operands() {
  std::swap(operands_[0], operands_[1]);
  std::swap(operand_groups_[0], operand_groups_[1]);
}

/// The vector of operand k, loaded to a temporary one where it is in memory.
TileGenerator::Vector TileGenerator::operand(size_t k, int v, int temporary) {
  if (operand_groups_[k] >= 0) return vector_of(operand_groups_[k], v);
  load(vector(temporary), operands_[k], v);
  return vector(temporary);
}

/// Calls use(operand k): its vector or, where it is there as words, its memory.
template <class Use>
void TileGenerator::with_operand(size_t k, int v, int temporary, const Use& use) {
  const uint16_t reg = operands_[k];
  const bool is_words = form(reg) == LaneForm::kWord || constant_of_[reg] != nullptr;
  if (operand_groups_[k] < 0 && is_words && !is_element(reg))
    use(address(reg, v));
  else
    use(operand(k, v, temporary));
}

template <class Write>
void TileGenerator::unary(int v, const Write& write) {
  with_operand(0, v, 3, write);
}

template <class Write>
void TileGenerator::binary(int v, const Write& write) {
  const Vector a = operand(0, v, 3);
  with_operand(1, v, 2, [&](const auto& b) { write(a, b); });
}

// --- instructions; `to` is written last, for it may be an operand ---

void TileGenerator::write_vector(const TileStep& step, const Vector& to, int v) {
  switch (step.kind) {
    case StepKind::kMove:
      return unary(v, [&](const auto& a) { vmovups(to, a); });
    case StepKind::kSelect:
      return write_select(to, v);
    case StepKind::kToFloat:
      return unary(v, [&](const auto& a) {
        if (step.family == LaneFamily::kUnsigned && is_wide_)
          vcvtudq2ps(to, a);
        else
          vcvtdq2ps(to, a);
      });
    case StepKind::kAnd:
      return binary(v, [&](const auto& a, const auto& b) { vandps(to, a, b); });
    case StepKind::kOr:
      return binary(v, [&](const auto& a, const auto& b) { vorps(to, a, b); });
    case StepKind::kXor:
      return binary(v, [&](const auto& a, const auto& b) { vxorps(to, a, b); });
    case StepKind::kCompare:
      return write_compare(step, to, v);
    case StepKind::kChooseNegative:
      return write_choose_negative(to, v);
    case StepKind::kPermute:
      return write_permute(to, v);
    case StepKind::kFold:
      return write_fold(to, v);
    case StepKind::kReadRow:
      return write_row_read(to, v);
    case StepKind::kWriteRow:
      return write_row_write(v);
    default:
      return step.family == LaneFamily::kFloat ? write_float(step, to, v) : write_integer(step, to, v);
  }
}

void TileGenerator::write_float(const TileStep& step, const Vector& to, int v) {
  constexpr uint8_t kDown = 9;  // without inexact exceptions
  constexpr uint8_t kUp = 10;
  constexpr uint8_t kNearest = 8;
  const auto round = [&](uint8_t mode) {
    unary(v, [&](const auto& a) { is_wide_ ? vrndscaleps(to, a, mode) : vroundps(to, a, mode); });
  };
  switch (step.kind) {
    case StepKind::kAbs:
      return vandps(to, operand(0, v, 3), constant(kMagnitude));
    case StepKind::kNegate:
      return vxorps(to, operand(0, v, 3), constant(kSign));
    case StepKind::kAdd:
      return binary(v, [&](const auto& a, const auto& b) { vaddps(to, a, b); });
    case StepKind::kSubtract:
      return binary(v, [&](const auto& a, const auto& b) { vsubps(to, a, b); });
    case StepKind::kMultiply:
      return binary(v, [&](const auto& a, const auto& b) { vmulps(to, a, b); });
    case StepKind::kDivide:
      return binary(v, [&](const auto& a, const auto& b) { vdivps(to, a, b); });
    case StepKind::kMultiplyAdd:
    case StepKind::kNegateMultiplyAdd:
      return write_multiply_add(step.kind == StepKind::kNegateMultiplyAdd, to, v);
    case StepKind::kAtLeast:
    case StepKind::kAtMost:
      return write_bound(step.kind == StepKind::kAtLeast, to, v);
    case StepKind::kSquare: {
      const Vector a = operand(0, v, 3);
      return vmulps(to, a, a);
    }
    case StepKind::kMaximum:
    case StepKind::kMinimum:
      return write_extreme(step.kind == StepKind::kMaximum, to, operand(0, v, 3), 1, v);
    case StepKind::kClamp:
      write_extreme(true, vector(3), operand(0, v, 3), 1, v);
      return write_extreme(false, to, vector(3), 2, v);
    case StepKind::kSqrt:
      return unary(v, [&](const auto& a) { vsqrtps(to, a); });
    case StepKind::kSign: {
      const Vector x = operand(0, v, 3);
      vandps(vector(0), x, constant(kSign));
      vorps(vector(0), vector(0), constant(kOne));
      vandps(vector(1), x, constant(kMagnitude));
      return choose_where(to, x, vector(0), vector(1), constant(0), kGreater);
    }
    case StepKind::kFloor:
      return round(kDown);
    case StepKind::kCeil:
      return round(kUp);
    case StepKind::kRoundEven:
      return round(kNearest);
    case StepKind::kIsFinite:
      vandps(vector(0), operand(0, v, 3), constant(kMagnitude));
      return write_flag(to, vector(0), constant(kLargest), kLessOrEqual);
    case StepKind::kIsNotZero:
      return write_flag(to, operand(0, v, 3), constant(0), kNotEqual);
    default:
      return;
  }
}

/// The instruction has three operands, of which the result takes the place of one.
void TileGenerator::write_multiply_add(bool is_negated, const Vector& to, int v) {
  const Vector a = operand(0, v, 3);
  if (operand_groups_[2] >= 0 && vector_of(operand_groups_[2], v) == to) {
    return with_operand(1, v, 2, [&](const auto& b) { is_negated ? vfnmadd231ps(to, a, b) : vfmadd231ps(to, a, b); });
  }
  const Vector b = operand(1, v, 2);
  const bool is_b = b == to;
  if (!is_b && !(a == to)) vmovaps(to, a);
  with_operand(2, v, 1, [&](const auto& c) {
    const Vector& other = is_b ? a : b;
    is_negated ? vfnmadd213ps(to, other, c) : vfmadd213ps(to, other, c);
  });
}

/// x where it is NaN: vmaxps and vminps give their last operand then.
void TileGenerator::write_bound(bool is_lower, const Vector& to, int v) {
  const Vector bound = operand(1, v, 2);
  with_operand(0, v, 3, [&](const auto& x) { is_lower ? vmaxps(to, bound, x) : vminps(to, bound, x); });
}

void TileGenerator::write_choose_negative(const Vector& to, int v) {
  const Vector which = operand(0, v, 3);
  const Vector no = operand(2, v, 2);
  if (is_wide_) vpmovd2m(k1, which);
  with_operand(1, v, 1, [&](const auto& yes) {
    if (is_wide_)
      vblendmps(to | k1, no, yes);
    else
      vblendvps(to, no, yes, which);
  });
}

/// Calls by_number(value, number) where the amount is a constant, which all processors shift by as fast as they add.
template <class ByVector, class ByNumber>
void TileGenerator::shift(int v, const ByVector& by_vector, const ByNumber& by_number) {
  constexpr uint32_t kBits = 32;
  const TileConstant* const amount = constant_of_[operands_[1]];
  uint32_t number = kBits;
  if (amount != nullptr) std::memcpy(&number, amount->element.data(), sizeof number);
  if (number >= kBits) return binary(v, by_vector);
  by_number(operand(0, v, 3), static_cast<uint8_t>(number));
}

/// Lanes become 1 where the comparison holds, else 0.
void TileGenerator::write_flag(const Vector& to, const Vector& value, const Xbyak::Operand& limit, uint8_t predicate) {
  if (is_wide_) {
    vcmpps(k1, value, limit, predicate);
    vmovdqu32(to | k1 | T_z, constant(1));
  } else {
    vcmpps(to, value, limit, predicate);
    vpsrld(to, to, 31);
  }
}

/// Lanes of `yes` where a compares so with b, else of `no`. With AVX2 it writes vector 2.
void TileGenerator::choose_where(const Vector& to, const Vector& no, const Vector& yes, const Vector& a,
                                 const Xbyak::Operand& b, uint8_t predicate) {
  if (is_wide_) {
    vcmpps(k1, a, b, predicate);
    vblendmps(to | k1, no, yes);
  } else {
    vcmpps(vector(2), a, b, predicate);
    vblendvps(to, no, yes, vector(2));
  }
}

/// NaN if either is, the first one where both are; -0 < +0. `b` is the number of an operand.
void TileGenerator::write_extreme(bool is_maximum, const Vector& to, const Vector& a, size_t b, int v) {
  with_operand(b, v, 2, [&](const auto& other) {
    if (is_maximum) {
      vandps(vector(0), a, other);
      vmaxps(vector(1), a, other);
    } else {
      vorps(vector(0), a, other);
      vminps(vector(1), a, other);
    }
    choose_where(vector(1), vector(1), vector(0), a, other, kEqual);
    choose_where(to, vector(1), a, a, a, kUnordered);
  });
}

void TileGenerator::write_select(const Vector& to, int v) {
  const Vector which = operand(0, v, 2);
  if (is_wide_) {
    vptestmd(k1, which, which);
    const Vector no = operand(2, v, 3);
    return with_operand(1, v, 0, [&](const auto& yes) { vblendmps(to | k1, no, yes); });
  }
  vxorps(vector(1), vector(1), vector(1));
  vpcmpeqd(vector(1), vector(1), which);
  const Vector yes = operand(1, v, 3);
  with_operand(2, v, 0, [&](const auto& no) { vblendvps(to, yes, no, vector(1)); });
}

void TileGenerator::write_compare(const TileStep& step, const Vector& to, int v) {
  if (step.family != LaneFamily::kFloat) return write_integer_compare(step, to, v);
  binary(v, [&](const auto& a, const auto& b) { write_flag(to, a, b, float_predicate(step.comparison)); });
}

void TileGenerator::write_integer_compare(const TileStep& step, const Vector& to, int v) {
  const bool is_signed = step.family == LaneFamily::kSigned;
  if (is_wide_) {
    binary(v, [&](const auto& a, const auto& b) {
      if (is_signed)
        vpcmpd(k1, a, b, integer_predicate(step.comparison));
      else
        vpcmpud(k1, a, b, integer_predicate(step.comparison));
    });
    return vmovdqu32(to | k1 | T_z, constant(1));
  }
  Vector a = operand(0, v, 3);
  Vector b = operand(1, v, 2);
  if (!is_signed) {
    vxorps(vector(0), a, constant(kSign));
    vxorps(vector(1), b, constant(kSign));
    a = vector(0);
    b = vector(1);
  }
  bool is_opposite = false;
  switch (step.comparison) {
    case ScalarOp::kCompareNe:
      is_opposite = true;
      [[fallthrough]];
    case ScalarOp::kCompareEq:
      vpcmpeqd(to, a, b);
      break;
    case ScalarOp::kCompareLe:
      is_opposite = true;
      [[fallthrough]];
    case ScalarOp::kCompareGt:
      vpcmpgtd(to, a, b);
      break;
    case ScalarOp::kCompareGe:
      is_opposite = true;
      [[fallthrough]];
    default:
      vpcmpgtd(to, b, a);
      break;
  }
  vpsrld(to, to, 31);
  if (is_opposite) vxorps(to, to, constant(1));
}

void TileGenerator::write_integer(const TileStep& step, const Vector& to, int v) {
  const bool is_signed = step.family == LaneFamily::kSigned;
  const bool is_bool = form(operands_[0]) == LaneForm::kByte;
  const auto extreme = [&](bool is_maximum, const Vector& into, const Vector& a, size_t number) {
    with_operand(number, v, 2, [&](const auto& b) {
      if (is_maximum)
        is_signed ? vpmaxsd(into, a, b) : vpmaxud(into, a, b);
      else
        is_signed ? vpminsd(into, a, b) : vpminud(into, a, b);
    });
  };
  switch (step.kind) {
    case StepKind::kAbs:
      return unary(v, [&](const auto& a) { vpabsd(to, a); });
    case StepKind::kNegate:
      vxorps(vector(0), vector(0), vector(0));
      return unary(v, [&](const auto& a) { vpsubd(to, vector(0), a); });
    case StepKind::kAdd:
      return binary(v, [&](const auto& a, const auto& b) { vpaddd(to, a, b); });
    case StepKind::kSubtract:
      return binary(v, [&](const auto& a, const auto& b) { vpsubd(to, a, b); });
    case StepKind::kMultiply:
      return binary(v, [&](const auto& a, const auto& b) { vpmulld(to, a, b); });
    case StepKind::kSquare: {
      const Vector a = operand(0, v, 3);
      return vpmulld(to, a, a);
    }
    case StepKind::kMultiplyHigh:
      return write_multiply_high(is_signed, to, v);
    case StepKind::kSign:
      if (!is_signed) return vpminud(to, operand(0, v, 3), constant(1));
      vpminsd(vector(0), operand(0, v, 3), constant(1));
      return vpmaxsd(to, vector(0), constant(~0U));
    case StepKind::kMaximum:
    case StepKind::kMinimum:
      return extreme(step.kind == StepKind::kMaximum, to, operand(0, v, 3), 1);
    case StepKind::kClamp:
      extreme(true, vector(3), operand(0, v, 3), 1);
      return extreme(false, to, vector(3), 2);
    case StepKind::kNot:
      return vxorps(to, operand(0, v, 3), constant(is_bool ? 1U : ~0U));
    case StepKind::kShiftLeft:
      return shift(
          v, [&](const auto& a, const auto& b) { vpsllvd(to, a, b); },
          [&](const Vector& a, uint8_t by) { vpslld(to, a, by); });
    case StepKind::kShiftRightLogical:
      return shift(
          v, [&](const auto& a, const auto& b) { vpsrlvd(to, a, b); },
          [&](const Vector& a, uint8_t by) { vpsrld(to, a, by); });
    case StepKind::kShiftRightArithmetic:
      return binary(v, [&](const auto& a, const auto& b) { vpsravd(to, a, b); });
    case StepKind::kIsNotZero: {
      const Vector a = operand(0, v, 3);
      vxorps(vector(0), vector(0), vector(0));
      if (is_wide_) {
        vptestmd(k1, a, a);
        return vmovdqu32(to | k1 | T_z, constant(1));
      }
      vpcmpeqd(to, a, vector(0));
      vpsrld(to, to, 31);
      return vxorps(to, to, constant(1));
    }
    default:
      return;
  }
}

/// Products of 64 bits are those of every second lane. The second operand is a constant: it has one value.
void TileGenerator::write_multiply_high(bool is_signed, const Vector& to, int v) {
  constexpr int kLaneBits = 32;
  constexpr uint32_t kOddLanes = 0xAAAA;
  const Vector a = operand(0, v, 3);
  const auto multiply = [&](const Vector& into, const Vector& lanes) {
    with_operand(1, v, 2, [&](const auto& b) { is_signed ? vpmuldq(into, lanes, b) : vpmuludq(into, lanes, b); });
  };
  vpsrlq(vector(0), a, kLaneBits);
  multiply(vector(0), vector(0));
  multiply(vector(1), a);
  vpsrlq(vector(1), vector(1), kLaneBits);
  if (!is_wide_) return vpblendd(to, vector(1), vector(0), static_cast<uint8_t>(kOddLanes));
  mov(eax, kOddLanes);
  kmovw(k1, eax);
  vpblendmd(to | k1, vector(1), vector(0));
}

/// To the nearest bfloat16, ties to even; a NaN keeps its upper bits and becomes quiet. What is only stored may have
/// any lower bits.
void TileGenerator::round_to_half(StepKind kind, const Vector& value, bool is_only_stored) {
  // A product with one is the value, and of a NaN the quiet one.
  if (!makes_quiet_nans(kind)) vmulps(value, value, constant(kOne));
  if (is_exact(kind)) return;
  vpsrld(vector(0), value, 16);
  vandps(vector(0), vector(0), constant(1));
  vpaddd(vector(0), vector(0), constant(0x7FFF));
  // The NaN of an operand has no lower bits, nor has the processor's own: rounding leaves it as it is.
  const bool keeps_nans = makes_quiet_nans(kind) && std::all_of(operands_.begin(), operands_.end(), [&](uint16_t reg) {
                            return form(reg) == LaneForm::kHalf;
                          });
  if (keeps_nans) {
    vpaddd(value, value, vector(0));
  } else if (is_wide_) {
    vcmpps(k1, value, value, kOrdered);
    vpaddd(value | k1, value, vector(0));
  } else {
    vcmpps(vector(1), value, value, kOrdered);
    vandps(vector(0), vector(0), vector(1));
    vpaddd(value, value, vector(0));
  }
  if (!is_only_stored) vandps(value, value, constant(0xFFFF0000U));
}

}  // namespace meshd::kernels

#endif
