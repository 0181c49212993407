#include "service/kernels/fused/block_instruction.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "service/kernels/elementwise/lanes/lane_loop.h"
#include "service/kernels/elementwise/lanes/repeat_elements.h"
#include "service/kernels/fused/small_reduce.h"
#include "service/kernels/movement/index_value.h"

namespace meshd::kernels {
namespace {

using Kind = BlockInstruction::Kind;

/// Bytes from the array's beginning; nothing where the row is out of bounds and left out.
std::optional<int64_t> row_offset(const BlockInstruction& instruction, const std::byte* block) {
  int64_t offset = 0;
  for (const BlockInstruction::Index& index : instruction.indices) {
    const int64_t start = read_index(block + index.place, instruction.index_dtype);
    const int64_t clamped = clamp_start(start, 0, index.most);
    if (instruction.skips && clamped != start) return std::nullopt;
    offset += clamped * index.stride;
  }
  return offset;
}

}  // namespace

BoundInstructions::BoundInstructions(std::span<const BlockInstruction> instructions, std::byte* block, int64_t piece,
                                     std::byte* const* values)
    : block_(block) {
  bound_.reserve(instructions.size());
  for (const BlockInstruction& instruction : instructions) {
    Bound bound;
    bound.kernel = instruction.kernel;
    for (size_t k = 0; k < 3; ++k) bound.operands[k] = block + instruction.operands[k];
    bound.result = block + instruction.result;
    const int64_t first = instruction.lanes > kBlockLanes ? piece * kBlockLanes : 0;
    std::byte* const row = values[instruction.array] + first * instruction.element_bytes;
    if (instruction.kind == Kind::kReadRow) bound.operands[0] = row;
    if (instruction.kind == Kind::kWriteRow) bound.result = row;
    bound.lanes = std::min(kBlockLanes, instruction.lanes - first);
    bound.element_bytes = instruction.element_bytes;
    bound.from = &instruction;
    bound_.push_back(bound);
  }
}

void BoundInstructions::execute() const {
  for (const Bound& bound : bound_) {
    if (bound.kernel == nullptr) {
      execute_other(bound);
      continue;
    }
    bound.kernel(bound.operands.data(), bound.result, bound.lanes);
    pad_block(bound.result, bound.element_bytes, bound.lanes);
  }
}

void BoundInstructions::execute_other(const Bound& bound) const {
  const auto bytes = static_cast<size_t>(bound.lanes * bound.element_bytes);
  switch (bound.from->kind) {
    case Kind::kShuffle: {
      std::byte* to = bound.result;
      for (const size_t element : bound.from->elements) {
        std::memcpy(to, block_ + element, static_cast<size_t>(bound.element_bytes));
        to += bound.element_bytes;
      }
      break;
    }
    case Kind::kReadRow:
      std::memcpy(bound.result, bound.operands[0] + *row_offset(*bound.from, block_), bytes);
      break;
    case Kind::kReduce:
      bound.from->reduce->run(bound.operands[0], bound.operands[1], bound.result);
      break;
    case Kind::kWriteRow:
      if (const auto offset = row_offset(*bound.from, block_))
        std::memcpy(bound.result + *offset, bound.operands[0], bytes);
      return;
    default:
      std::memmove(bound.result, bound.operands[0], bytes);
  }
  pad_block(bound.result, bound.element_bytes, bound.lanes);
}

}  // namespace meshd::kernels
