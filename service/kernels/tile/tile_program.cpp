#include "service/kernels/tile/tile_program.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "service/core/error.h"
#include "service/kernels/cpu.h"
#include "service/kernels/elementwise/lanes/lane_loop.h"
#include "service/kernels/elementwise/lanes/repeat_elements.h"
#include "service/kernels/elementwise/reduce_precision.h"
#include "service/kernels/tile/prefetch.h"
#include "service/kernels/tile/tile_code.h"

namespace meshd::kernels {
namespace {

constexpr int64_t kMaxTileLanes = 1024;
/// Code runs over so many lanes between two prefetches.
constexpr int64_t kPrefetchLanes = 256;

core::Error unsupported(std::string_view what, tensor::DType in, tensor::DType out) {
  return core::Error("unsupported_dtype",
                     fmt::format("{} has no kernel for elements of type '{}' with a result of '{}'", what,
                                 tensor::name(in), tensor::name(out)));
}

/// Index of the last instruction that reads each register; those that must outlive the program never end.
std::vector<size_t> last_uses(const TileProgram& program) {
  constexpr size_t kForever = std::numeric_limits<size_t>::max();
  std::vector<size_t> last(program.registers.size(), 0);
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    const TileInstruction& instruction = program.instructions[i];
    for (int k = 0; k < used_operands(instruction); ++k) last[instruction.operands[static_cast<size_t>(k)]] = i;
    last[instruction.result] = std::max(last[instruction.result], i);
  }
  for (int reg = 0; reg < program.input_count; ++reg) last[static_cast<size_t>(reg)] = kForever;
  for (const TileConstant& constant : program.constants) last[constant.reg] = kForever;
  for (const uint16_t reg : program.outputs) last[reg] = kForever;
  return last;
}

}  // namespace

uint16_t TileProgram::add_register(tensor::DType dtype) {
  if (registers.size() > std::numeric_limits<uint16_t>::max()) {
    throw core::Error("unsupported_op", "a fused chain needs more than 65,536 registers");
  }
  registers.push_back(dtype);
  return static_cast<uint16_t>(registers.size() - 1);
}

uint16_t TileProgram::emit(ScalarOp op, std::initializer_list<uint16_t> operands, tensor::DType out) {
  const uint16_t typed = op == ScalarOp::kSelect ? operands.begin()[1] : operands.begin()[0];
  const tensor::DType in = registers[typed];
  TileInstruction instruction;
  instruction.op = op;
  instruction.kernel = find_scalar_kernel(op, in, out);
  instruction.is_lane_by_lane = is_lane_by_lane(op, in);
  if (instruction.kernel == nullptr) throw unsupported(name(op), in, out);
  std::copy(operands.begin(), operands.end(), instruction.operands.begin());
  instruction.result = add_register(out);
  instructions.push_back(instruction);
  return instruction.result;
}

uint16_t TileProgram::emit_reduce_precision(uint16_t operand, int exponent_bits, int mantissa_bits) {
  const tensor::DType dtype = registers[operand];
  if (!tensor::is_float(dtype)) throw unsupported("reduce_precision", dtype, dtype);
  TileInstruction instruction;
  instruction.operands[0] = operand;
  instruction.exponent_bits = exponent_bits;
  instruction.mantissa_bits = mantissa_bits;
  instruction.result = add_register(dtype);
  instructions.push_back(instruction);
  return instruction.result;
}

uint16_t TileProgram::constant(tensor::DType dtype, const std::byte* element) {
  TileConstant value;
  value.reg = add_register(dtype);
  std::memcpy(value.element.data(), element, static_cast<size_t>(tensor::size_bytes(dtype)));
  constants.push_back(value);
  return value.reg;
}

bool is_computed(const TileProgram& program, uint16_t reg) {
  return std::any_of(program.instructions.begin(), program.instructions.end(),
                     [&](const TileInstruction& instruction) { return instruction.result == reg; });
}

ScalarOp as_single_binary(const TileProgram& program) {
  if (program.input_count != 2 || program.instructions.size() != 1 || program.outputs.size() != 1)
    return ScalarOp::kCopy;
  const TileInstruction& instruction = program.instructions.front();
  if (instruction.kernel == nullptr || operand_count(instruction.op) != 2) return ScalarOp::kCopy;
  if (program.outputs.front() != instruction.result) return ScalarOp::kCopy;
  const bool straight = instruction.operands[0] == 0 && instruction.operands[1] == 1;
  const bool swapped = instruction.operands[0] == 1 && instruction.operands[1] == 0;
  return straight || (swapped && is_associative(instruction.op)) ? instruction.op : ScalarOp::kCopy;
}

int64_t tile_lanes(const TileProgram& program) {
  const int64_t lane_bytes = std::max<int64_t>(1, TileLayout(program).lane_bytes());
  const int64_t lanes = l1_data_bytes() / 2 / lane_bytes;
  return std::clamp(lanes - lanes % kBlockLanes, kBlockLanes, kMaxTileLanes);
}

TileLayout::TileLayout(const TileProgram& program) : offsets_(program.registers.size(), -1) {
  const std::vector<size_t> last = last_uses(program);
  std::vector<std::pair<int64_t, int64_t>> free_places;  // bytes of an element, offset
  const auto place = [&](uint16_t reg) {
    const int64_t bytes = tensor::size_bytes(program.registers[reg]);
    const auto found = std::find_if(free_places.rbegin(), free_places.rend(),
                                    [&](const auto& free_place) { return free_place.first == bytes; });
    if (found != free_places.rend()) {
      offsets_[reg] = found->second;
      free_places.erase(std::next(found).base());
      return;
    }
    offsets_[reg] = lane_bytes_;
    lane_bytes_ += bytes;
  };
  for (int reg = 0; reg < program.input_count; ++reg) place(static_cast<uint16_t>(reg));
  for (const TileConstant& constant : program.constants) place(constant.reg);
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    const TileInstruction& instruction = program.instructions[i];
    // An operand that dies here gives its register to the result: same element size, lane for lane (kernels allow it).
    const auto release = [&](uint16_t reg) {
      const std::pair<int64_t, int64_t> freed{tensor::size_bytes(program.registers[reg]), offsets_[reg]};
      if (last[reg] == i && std::find(free_places.begin(), free_places.end(), freed) == free_places.end()) {
        free_places.push_back(freed);
      }
    };
    for (int k = 0; k < used_operands(instruction); ++k) release(instruction.operands[static_cast<size_t>(k)]);
    place(instruction.result);
    release(instruction.result);  // an unused result
  }
}

TileScratch::TileScratch(const TileProgram& program, int64_t lanes)
    : TileScratch(program, TileLayout(program), lanes) {}

namespace {

/// Lanes [count, padded) become copies of the last one.
void pad_lanes(std::byte* lanes, int64_t element_bytes, int64_t count, int64_t padded) {
  std::byte* const end = lanes + count * element_bytes;
  repeat_element(end - element_bytes, element_bytes, end, padded - count);
}

/// Lanes [begin, begin + count) of one instruction, from registers at `registers` to them.
void run_instruction(const TileProgram& program, const TileInstruction& instruction, std::byte* const* registers,
                     int64_t begin, int64_t count) {
  // Operands that the operation does not have may be a register without memory.
  const auto at = [&](uint16_t reg) {
    return begin == 0 || registers[reg] == nullptr
               ? registers[reg]
               : registers[reg] + begin * tensor::size_bytes(program.registers[reg]);
  };
  const std::array<const std::byte*, 3> operands = {at(instruction.operands[0]), at(instruction.operands[1]),
                                                    at(instruction.operands[2])};
  std::byte* const result = at(instruction.result);
  if (instruction.kernel != nullptr) {
    instruction.kernel(operands.data(), result, count);
  } else {
    reduce_precision(program.registers[instruction.result], instruction.exponent_bits, instruction.mantissa_bits,
                     operands[0], result, count);
  }
}

/// A tile of fewer lanes than a block: it is computed in the registers' own memory, where there is room for the block.
/// `run` computes all of them there.
template <class Run>
void run_short_tile(const TileProgram& program, TileScratch& scratch, int64_t count, const Run& run) {
  const auto copy_lanes = [&](uint16_t reg, const std::byte* from, std::byte* to) {
    std::memcpy(to, from, static_cast<size_t>(count * tensor::size_bytes(program.registers[reg])));
  };
  for (uint16_t reg = 0; reg < program.input_count; ++reg) {
    std::byte* const home = scratch.home(reg);
    if (scratch.reg(reg) != home) copy_lanes(reg, scratch.reg(reg), home);
    pad_lanes(home, tensor::size_bytes(program.registers[reg]), count, kBlockLanes);
  }
  run();
  for (const uint16_t reg : program.outputs) {
    const bool is_input = reg < program.input_count;
    if (!is_input && scratch.reg(reg) != scratch.home(reg)) copy_lanes(reg, scratch.home(reg), scratch.reg(reg));
  }
}

/// A tile that ends within a block of lanes: the last block begins earlier, and its first lanes are computed twice.
void run_ragged_tile(const TileProgram& program, TileScratch& scratch, int64_t count) {
  if (count > kBlockLanes) {
    run_tile(program, scratch, count - count % kBlockLanes);
    for (const TileInstruction& instruction : program.instructions)
      run_instruction(program, instruction, scratch.pointers(), count - kBlockLanes, kBlockLanes);
    return;
  }
  run_short_tile(program, scratch, count, [&] {
    for (const TileInstruction& instruction : program.instructions) {
      const int64_t end = instruction.is_lane_by_lane ? count : kBlockLanes;
      run_instruction(program, instruction, scratch.homes(), 0, end);
      if (end < kBlockLanes)
        pad_lanes(scratch.home(instruction.result), tensor::size_bytes(program.registers[instruction.result]), count,
                  kBlockLanes);
    }
  });
}

/// The same by code.
void run_ragged_code(const TileProgram& program, const TileCode& code, TileScratch& scratch, int64_t count) {
  if (count > kBlockLanes) {
    code.run(scratch.pointers(), 0, count - count % kBlockLanes);
    return code.run(scratch.pointers(), count - kBlockLanes, count);
  }
  run_short_tile(program, scratch, count, [&] { code.run(scratch.homes(), 0, kBlockLanes); });
}

}  // namespace

constexpr size_t kStorageAlignment = 64;

TileScratch::TileScratch(const TileProgram& program, const TileLayout& layout, int64_t lanes,
                         std::pmr::memory_resource* memory)
    : lanes_((lanes + kBlockLanes - 1) / kBlockLanes * kBlockLanes),
      bytes_(static_cast<size_t>(layout.lane_bytes() * lanes_)),
      storage_(static_cast<std::byte*>(memory->allocate(bytes_, kStorageAlignment))),
      registers_(program.registers.size()),
      pointers_(2 * program.registers.size(), memory) {
  for (size_t reg = 0; reg < registers_; ++reg) {
    const int64_t offset = layout.offset(static_cast<uint16_t>(reg));
    pointers_[reg] = offset < 0 ? nullptr : storage_ + offset * lanes_;
    pointers_[registers_ + reg] = pointers_[reg];
  }
  for (const TileConstant& constant : program.constants) {
    repeat_element(constant.element.data(), tensor::size_bytes(program.registers[constant.reg]),
                   pointers_[constant.reg], lanes_);
  }
}

TileScratch::~TileScratch() { pointers_.get_allocator().resource()->deallocate(storage_, bytes_, kStorageAlignment); }

void run_tile(const TileProgram& program, const TileCode* code, TileScratch& scratch, int64_t count,
              std::span<const MemoryRange> soon) {
  const auto parts = static_cast<int64_t>(program.instructions.size());
  if (count % kBlockLanes != 0 || parts == 0) return run_tile(program, code, scratch, count);
  if (code != nullptr) {
    if (soon.empty()) return code->run(scratch.pointers(), 0, count);
    const int64_t pieces = (count + kPrefetchLanes - 1) / kPrefetchLanes;
    for (int64_t piece = 0; piece < pieces; ++piece) {
      for (const MemoryRange& range : soon) prefetch_parts(range, piece, 1, pieces);
      code->run(scratch.pointers(), piece * kPrefetchLanes, std::min(count, (piece + 1) * kPrefetchLanes));
    }
    return;
  }
  for (int64_t part = 0; part < parts; ++part) {
    for (const MemoryRange& range : soon) prefetch_parts(range, part, 1, parts);
    run_instruction(program, program.instructions[static_cast<size_t>(part)], scratch.pointers(), 0, count);
  }
}

void run_tile(const TileProgram& program, const TileCode* code, TileScratch& scratch, int64_t count) {
  if (code == nullptr) return run_tile(program, scratch, count);
  if (count % kBlockLanes != 0) return run_ragged_code(program, *code, scratch, count);
  code->run(scratch.pointers(), 0, count);
}

void run_tile(const TileProgram& program, TileScratch& scratch, int64_t count) {
  if (count % kBlockLanes != 0) return run_ragged_tile(program, scratch, count);
  for (const TileInstruction& instruction : program.instructions) {
    run_instruction(program, instruction, scratch.pointers(), 0, count);
  }
}

}  // namespace meshd::kernels
