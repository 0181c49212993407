#include "service/kernels/fused/fused_loop.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory_resource>

#include "service/kernels/fused/fused_plan.h"
#include "service/kernels/fused/small_loop.h"
#include "service/kernels/stream_store.h"

namespace meshd::kernels {
namespace {

constexpr size_t kStackBytes = 6 * 1024;

/// How one output leaves its register.
enum class OutputWay : uint8_t {
  kDirect,  ///< the register is the result's memory
  kCopy,    ///< copied after each tile
  kStream,  ///< copied past the caches
};

/// Registers that an instruction writes; inputs and constants have memory that must stay what it is.
bool is_computed(const TileProgram& program, uint16_t reg) {
  return std::any_of(program.instructions.begin(), program.instructions.end(),
                     [&](const TileInstruction& instruction) { return instruction.result == reg; });
}

std::pmr::vector<OutputWay> ways_of(const FusedLoop& loop, const FusedPlan& plan, const FusedCall& call,
                                    std::pmr::memory_resource* memory) {
  const std::vector<uint16_t>& outputs = loop.program.outputs;
  std::pmr::vector<OutputWay> ways(outputs.size(), OutputWay::kDirect, memory);
  // A result that takes over an operand's memory may only be written when nothing reads the tile any more.
  bool takes_over = false;
  for (const FusedInput& input : loop.inputs) {
    if (input.kind == FusedInput::Kind::kIota) continue;
    const std::byte* const from = call.operands[input.operand];
    takes_over =
        takes_over || std::find(call.results, call.results + outputs.size(), from) != call.results + outputs.size();
  }
  for (size_t k = 0; k < outputs.size(); ++k) {
    const bool is_first = std::find(outputs.begin(), outputs.begin() + static_cast<std::ptrdiff_t>(k), outputs[k]) ==
                          outputs.begin() + static_cast<std::ptrdiff_t>(k);
    if (takes_over || !is_first || !is_computed(loop.program, outputs[k])) ways[k] = OutputWay::kCopy;
    if (plan.streams) ways[k] = OutputWay::kStream;
  }
  return ways;
}

void run_pointwise(const FusedLoop& loop, const FusedPlan& plan, const FusedCall& call) {
  const int64_t end = std::min(call.end * plan.work_item_elements, plan.region.size);
  int64_t at = call.begin * plan.work_item_elements;
  if (at >= end) return;
  const TileProgram& program = loop.program;
  // Small calls take no memory from the heap.
  alignas(64) std::array<std::byte, kStackBytes> stack;
  std::pmr::monotonic_buffer_resource memory(stack.data(), stack.size(), std::pmr::new_delete_resource());
  TileScratch scratch(program, plan.layout, std::min(plan.tile, end - at), &memory);
  TileReader reader(plan.region, scratch, &memory);
  set_bases(reader, loop, call, {});
  const std::pmr::vector<OutputWay> ways = ways_of(loop, plan, call, &memory);
  const auto element_bytes = [&](size_t k) { return tensor::size_bytes(program.registers[program.outputs[k]]); };
  const int64_t inner = plan.region.dims.empty() ? 1 : plan.region.dims.back();
  const bool by_rows = plan.region.dims.size() > 1 && inner >= plan.tile;
  const bool prefetches = plan.prefetches && !by_rows;
  while (at < end) {
    int64_t count = std::min(plan.tile, end - at);
    if (by_rows) count = std::min(count, inner - at % inner);
    core::pass(call.checkpoint);
    reader.read(at, count);
    for (size_t k = 0; k < ways.size(); ++k) {
      if (ways[k] == OutputWay::kDirect) scratch.bind(program.outputs[k], call.results[k] + at * element_bytes(k));
    }
    if (prefetches)
      run_tile(program, scratch, count, reader.ranges(at + count, std::min(plan.tile, end - at - count)));
    else
      run_tile(program, scratch, count);
    for (size_t k = 0; k < ways.size(); ++k) {
      if (ways[k] == OutputWay::kDirect) continue;
      const std::byte* const from = scratch.reg(program.outputs[k]);
      std::byte* const to = call.results[k] + at * element_bytes(k);
      if (ways[k] == OutputWay::kStream)
        stream_copy(to, from, count * element_bytes(k));
      else
        std::memmove(to, from, static_cast<size_t>(count * element_bytes(k)));
    }
    at += count;
  }
  if (plan.streams) stream_fence();
}

}  // namespace

struct FusedKernel::Prepared {
  FusedPlan plan;
  std::optional<SmallLoop> small;
};

FusedKernel::FusedKernel(FusedLoop loop) : loop_(std::move(loop)) {
  FusedPlan plan = make_fused_plan(loop_);
  std::optional<SmallLoop> small = SmallLoop::make(loop_, plan);
  prepared_ = std::make_shared<const Prepared>(Prepared{std::move(plan), std::move(small)});
  work_count_ = prepared_->plan.work_count;
}

const SmallLoop* FusedKernel::small() const { return prepared_->small ? &*prepared_->small : nullptr; }

void FusedKernel::run(const FusedCall& call) const {
  if (prepared_->small) return prepared_->small->run(call);
  if (loop_.reduce) return run_reduce(loop_, prepared_->plan, call);
  run_pointwise(loop_, prepared_->plan, call);
}

}  // namespace meshd::kernels
