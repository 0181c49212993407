// Loops of small steps, executed as one step.
//
// 1. load: each shard's values come into its block of registers, or piece by piece into several.
// 2. A chunk of iterations, of about 20 us; then counters, cancel, and whether the time slice is over.
// 3. store: when the loop is over, yields, or its budgets allow no further iteration. What is left then is executed
//    step by step, so that the step which exceeds the budget is named.
#include <algorithm>

#include "service/device/run_impl.h"
#include "service/device/small_while_blocks.h"

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
  SmallWhileBlocks blocks(small, scratch_, pointers_);
  blocks.load();
  const int64_t chunk = std::max<int64_t>(1, at_most(kChunkNs, std::max(small.iteration.estimated_ns, kLeastNs)));
  while (true) {
    if (is_cancelled()) throw cancel_reason();
    const int64_t most = std::min(chunk, affordable_iterations(small.condition, small.iteration));
    const kernels::SmallWhile::Outcome outcome = blocks.run(most);
    note_small_while(step, outcome.iterations, outcome.is_over);
    if (outcome.is_over) {
      blocks.store();
      return leave_loop(step);
    }
    if (most < chunk) {
      blocks.store();
      frames_.back().is_by_steps = true;
      return Next::kGoOn;
    }
    if (look_at_slice() == Next::kYield) {
      blocks.store();
      return Next::kYield;
    }
  }
}

}  // namespace meshd::device
