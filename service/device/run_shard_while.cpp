// Loops whose iterations need nothing of other shards, executed shard by shard: all iterations of one shard, then those
// of the next.
//
// 1. A chunk of iterations, of some ms at most, is cut into parts: ranges of shards (SharedStep). A thread copies the
//    run's table of pointers, lets those of what is its own point into its scratch, and exchanges pointers there.
// 2. Behind all shards the run's pointers are exchanged as often, and replicated values that live on are written back.
// 3. Then counters, cancel, and whether the time slice is over; another chunk, unless the condition has ended the loop.
// What the budgets do not allow is executed step by step, so that the step which exceeds them is named.
#include <algorithm>
#include <cstring>

#include "service/device/run_impl.h"
#include "service/device/shard_while.h"

namespace meshd::device {
namespace {

constexpr double kIterationsNs = 20'000'000;  // of a chunk, by the plan's estimate; progress is told in between

}  // namespace

int64_t RunImpl::worthwhile_iterations(const Frame& frame) const {
  const compile::Step& step = *frame.control;
  const double each = step.by_shard->iteration.estimated_ns;
  // As many as there have been, where data decides, so that a loop which soon ends is executed step by step; else those
  // that are left.
  const int64_t expected = step.trip_count < 0 ? frame.iteration : step.trip_count - frame.iteration;
  if (static_cast<double>(expected) * each < sharing().worth_ns) return 0;
  const int64_t most = std::max<int64_t>(1, at_most(is_lent_ ? kLentStepNs : kIterationsNs, each));
  return std::min(most, expected + 1);  // with the condition that ends it
}

bool RunImpl::is_at_shard_while(const Frame& frame) const {
  if (!frame.is_condition || frame.index != 0 || frame.is_by_steps || frame.control->by_shard == nullptr) return false;
  if (!owners_.is_alone || !frame.active->is_all() || !can_skip_steps()) return false;
  return is_even(plan().table(frame.control->by_shard->table).count()) && worthwhile_iterations(frame) > 0;
}

RunImpl::Next RunImpl::run_shard_while() {
  Frame& frame = frames_.back();
  const compile::Step& step = *frame.control;
  const compile::ShardWhileStep& form = *step.by_shard;
  if (is_lent_ && form.iteration.estimated_ns > kLentStepNs) return Next::kYield;
  const int64_t most = std::min(worthwhile_iterations(frame), affordable_iterations(form.condition, form.iteration));
  const std::span<const int32_t> shards = active_shards(*frame.active, form.table);
  if (most == 0 || shards.empty()) {
    frame.is_by_steps = true;
    return Next::kGoOn;
  }
  current_.store(&step, std::memory_order_release);
  const auto loop = std::make_shared<ShardWhile>(ShardWhile{step, form, most, shards.front()});
  const double estimated = form.iteration.estimated_ns * static_cast<double>(most);
  if (const std::optional<Next> next = share({&step, 1}, shards, estimated, loop)) return *next;
  loop->pointers.resize(1);
  RunCheckpoint checkpoint(*this, is_lent_);
  run_iterations(*loop, shards, 0, {}, checkpoint);
  return iterations_done(*loop);
}

void RunImpl::run_iterations(ShardWhile& loop, std::span<const int32_t> shards, int lane_number, Lane lane,
                             core::Checkpoint& checkpoint) {
  std::vector<std::byte*>& pointers = loop.pointers[static_cast<size_t>(lane_number)];
  if (pointers.empty()) pointers = pointers_;
  lane.pointers = pointers.data();
  const std::vector<compile::Step>& condition = plan().block(loop.step.blocks_first).steps;
  const std::vector<compile::Step>& body = plan().block(loop.step.blocks_first + 1).steps;
  const compile::SlotRef& predicate = loop.step.operands[0];
  const auto is_false = static_cast<size_t>(predicate.first + plan().slot_shard(predicate, 0));
  for (const int32_t shard : shards) {
    const auto place = [&](compile::SlotId id) {
      const compile::Slot& slot = plan().slot(id);
      return static_cast<size_t>(slot.first_pointer + (plan().table(slot.table).count() == 1 ? 0 : shard));
    };
    const auto run = [&](const std::vector<compile::Step>& steps) {
      for (const compile::Step& step : steps) {
        const int64_t count = plan().table(step.table).count();
        WorkItems work_items = work_items_of(step, count == 1 ? 0 : shard);
        work_items.estimated_ns = step.estimated_ns / static_cast<double>(count);
        run_work_groups(step, work_items, lane, checkpoint);
      }
    };
    for (const compile::ShardWhileStep::Own& own : loop.form.own) {
      std::byte*& pointer = pointers[place(own.slot)];
      pointer = scratch_ + lane.scratch_at + own.at;
      if (own.is_carried)
        std::memcpy(pointer, pointers_[place(own.slot)], static_cast<size_t>(plan().slot(own.slot).bytes));
    }
    int64_t iterations = 0;
    bool is_over = false;
    while (iterations < loop.most) {
      run(condition);
      is_over = *pointers[is_false] == std::byte{0};
      if (is_over) break;
      run(body);
      for (const auto& [a, b] : loop.step.exchanges) std::swap(pointers[place(a)], pointers[place(b)]);
      ++iterations;
      checkpoint.pass();
    }
    if (shard != loop.first_shard) continue;
    loop.iterations = iterations;
    loop.is_over = is_over;
    for (const compile::ShardWhileStep::Own& own : loop.form.own) {
      const std::byte* const from = pointers[place(own.slot)];
      if (own.is_carried) loop.carried.insert(loop.carried.end(), from, from + plan().slot(own.slot).bytes);
    }
  }
}

RunImpl::Next RunImpl::iterations_done(const ShardWhile& loop) {
  note_iterations(loop.form.condition, loop.form.iteration, loop.iterations, loop.is_over);
  if (loop.iterations % 2 != 0) exchange_slots(loop.step, *frames_.back().active);
  const std::byte* from = loop.carried.data();
  for (const compile::ShardWhileStep::Own& own : loop.form.own) {
    if (!own.is_carried) continue;
    const compile::Slot& slot = plan().slot(own.slot);
    std::memcpy(pointers_[static_cast<size_t>(slot.first_pointer)], from, static_cast<size_t>(slot.bytes));
    from += slot.bytes;
  }
  return loop.is_over ? leave_loop(loop.step) : look_at_slice();
}

}  // namespace meshd::device
