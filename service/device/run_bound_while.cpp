// Loops of short steps, executed as calls with bound pointers (bound_while.h) by the thread that drives the run.
//
// 1. A chunk of iterations, of some ms at most by the plan's estimate and as many as the budgets allow; a checkpoint
//    behind each.
// 2. Then the run's own pointers are exchanged as often, counters are counted, and the thread looks whether the time
//    slice is over. The next chunk is bound anew.
// Steps that are worth several threads are executed one by one, and so are the first iterations of a loop whose number
// of iterations is not known: it may soon end, and binding costs as much as an iteration or two.
#include <algorithm>

#include "service/device/bound_while.h"
#include "service/device/run_impl.h"

namespace meshd::device {
namespace {

constexpr double kBoundChunkNs = 20'000'000;  // of a chunk; progress is told in between
constexpr int64_t kWorthBinding = 3;          // iterations

}  // namespace

bool RunImpl::is_at_bound_while(const Frame& frame) const {
  if (!frame.is_condition || frame.index != 0 || frame.is_by_steps || frame.control->bound == nullptr) return false;
  if (!owners_.is_alone || !frame.active->is_all() || !can_skip_steps()) return false;
  const compile::BoundWhileStep& form = *frame.control->bound;
  const int64_t trips = frame.control->trip_count;
  if ((trips < 0 ? frame.iteration : trips - frame.iteration) < kWorthBinding) return false;
  const bool has_budget = request_.step_budget > 0 || request_.operation_budget > 0 || request_.byte_budget > 0;
  return form.longest_ns < sharing().worth_ns && (form.is_known || !has_budget);
}

RunImpl::Next RunImpl::run_bound_while() {
  const compile::Step& step = *frames_.back().control;
  const compile::BoundWhileStep& form = *step.bound;
  if (is_lent_ && form.all.estimated_ns > kLentStepNs) return Next::kYield;
  auto chunk = std::max<int64_t>(1, at_most(is_lent_ ? kLentStepNs : kBoundChunkNs, form.all.estimated_ns));
  // After as many iterations as are worth several threads, those may have the shards.
  if (step.by_shard != nullptr)
    chunk = std::min(chunk, std::max<int64_t>(1, at_most(sharing().worth_ns, form.all.estimated_ns)));
  const int64_t most = std::min(chunk, affordable_iterations(form.condition, form.all));
  const auto execute_by_steps = [&] {
    frames_.back().is_by_steps = true;
    return Next::kGoOn;
  };
  if (most == 0) return execute_by_steps();
  current_.store(&step, std::memory_order_release);
  RunCheckpoint checkpoint(*this, is_lent_);
  std::vector<std::byte*> table = pointers_;
  BoundWhile loop({plan(), scratch_, checkpoint}, step, table);
  if (!loop.is_periodic()) return execute_by_steps();
  const BoundWhile::Outcome outcome = loop.run(most);
  note_iterations(form.condition, form.iteration, outcome.iterations, outcome.is_over);
  note_cost(loop.inner_cost(), 1);
  if (outcome.iterations % 2 != 0) {
    BoundWhile::for_each_exchange(plan(), step,
                                  [&](const compile::Step& inner) { exchange_slots(inner, *frames_.back().active); });
  }
  return outcome.is_over ? leave_loop(step) : look_at_slice();
}

}  // namespace meshd::device
