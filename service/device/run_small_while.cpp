// Loops of small steps, executed as one step.
//
// 1. load: each shard's values come into its block of registers, or piece by piece into several.
// 2. A chunk of iterations, of about 20 us; then counters, cancel, and whether the time slice is over.
// 3. store: when the loop is over, yields, or its budgets allow no further iteration. What is left then is executed
//    step by step, so that the step which exceeds the budget is named.
//
// A shard whose condition is false stays as it is while others go on: its condition is false again in the next chunk.
#include <algorithm>

#include "service/device/run_impl.h"
#include "service/kernels/fused/small_while.h"

namespace meshd::device {
namespace {

// By the plan's estimate, which is several times what a step costs here.
constexpr double kChunkNs = 100'000;
constexpr double kLeastNs = 20;  // of an iteration without steps

}  // namespace

bool RunImpl::is_at_small_while(const Frame& frame) const {
  return frame.is_condition && frame.index == 0 && !frame.is_by_steps && frame.control->small != nullptr &&
         owners_.is_alone && frame.active->is_all() && !seeks_nonfinite() && !request_.pause_before;
}

void RunImpl::note_small_while(const compile::Step& step, int64_t iterations, bool is_over) {
  note_iterations(step.small->condition, step.small->iteration, iterations, is_over);
  if (!profiler_) return;
  for (const compile::Step& inner : plan().block(step.blocks_first).steps)
    profiler_->count(inner.number, iterations + (is_over ? 1 : 0));
  for (const compile::Step& inner : plan().block(step.blocks_first + 1).steps)
    profiler_->count(inner.number, iterations);
}

RunImpl::Next RunImpl::run_small_while() {
  const compile::Step& step = *frames_.back().control;
  const compile::SmallWhileStep& small = *step.small;
  const kernels::SmallWhile& loop = *small.loop;
  const auto values = static_cast<size_t>(small.value_count);
  std::vector<std::byte*> memory(small.pointers.size());
  for (size_t i = 0; i < memory.size(); ++i) memory[i] = pointers_[static_cast<size_t>(small.pointers[i])];
  const auto block = [&](int64_t shard, int64_t piece) {
    return scratch_ + (shard * loop.pieces() + piece) * loop.block_bytes();
  };
  const auto values_of = [&](int64_t shard) { return memory.data() + static_cast<size_t>(shard) * values; };
  const auto for_each_block = [&](const auto& use) {
    for (int64_t shard = 0; shard < small.shard_count; ++shard) {
      for (int64_t piece = 0; piece < loop.pieces(); ++piece) use(shard, piece);
    }
  };
  for_each_block([&](int64_t shard, int64_t piece) { loop.load(block(shard, piece), piece, values_of(shard)); });
  const auto store = [&] {
    for_each_block([&](int64_t shard, int64_t piece) { loop.store(block(shard, piece), piece, values_of(shard)); });
  };
  const int64_t chunk = std::max<int64_t>(1, at_most(kChunkNs, std::max(small.iteration.estimated_ns, kLeastNs)));
  while (true) {
    if (is_cancelled()) throw cancel_reason();
    const int64_t most = std::min(chunk, affordable_iterations(small.condition, small.iteration));
    int64_t iterations = 0;
    bool is_over = true;
    for_each_block([&](int64_t shard, int64_t piece) {
      const kernels::SmallWhile::Outcome outcome = loop.run(block(shard, piece), piece, values_of(shard), most);
      iterations = std::max(iterations, outcome.iterations);
      is_over = is_over && outcome.is_over;
    });
    note_small_while(step, iterations, is_over);
    if (is_over) {
      store();
      return leave_loop(step);
    }
    if (most < chunk) {
      store();
      frames_.back().is_by_steps = true;
      return Next::kGoOn;
    }
    if ((is_lent_ || has_to_attend()) && is_slice_over(std::chrono::steady_clock::now())) {
      store();
      return Next::kYield;
    }
  }
}

}  // namespace meshd::device
