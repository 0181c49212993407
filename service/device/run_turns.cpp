// Turns: when a run gives its devices to others, and how the threads in the middle of its step wait for them.
#include <algorithm>
#include <utility>

#include "service/device/run_impl.h"

namespace meshd::device {
namespace {

constexpr std::chrono::nanoseconds kSlice = std::chrono::milliseconds(2);
// Within a step a turn ends later: a run whose steps are short yields between two of them, without a thread that waits.
constexpr std::chrono::nanoseconds kGrace = kSlice;
// A turn that nobody else wanted costs no more than this when somebody does at last.
constexpr std::chrono::nanoseconds kMostCharged = 5 * kSlice;

}  // namespace

void start_all(const std::vector<QueueEntryRef>& entries) {
  for (const QueueEntryRef& entry : entries) std::static_pointer_cast<RunImpl>(entry)->start_turn();
}

void RunImpl::begin_turn() {
  turn_begin_.store(std::chrono::steady_clock::now().time_since_epoch().count(), std::memory_order_relaxed);
}

std::chrono::nanoseconds RunImpl::turn_time() const {
  const auto begin = turn_begin_.load(std::memory_order_relaxed);
  const std::chrono::nanoseconds now = std::chrono::steady_clock::now().time_since_epoch();
  return begin == 0 ? std::chrono::nanoseconds(0) : std::min(now - std::chrono::nanoseconds(begin), kMostCharged);
}

bool RunImpl::is_turn_over(core::SteadyTime now) const {
  return now.time_since_epoch() >= std::chrono::nanoseconds(turn_begin_.load(std::memory_order_relaxed)) + kSlice;
}

void RunImpl::start_turn() {
  std::vector<std::shared_ptr<ParkedThread>> parked;
  const bool was_here = turn_.with([&](Turn& turn) {
    begin_turn();
    attention_.fetch_and(~kAway, std::memory_order_relaxed);
    parked.swap(turn.parked);
    return std::exchange(turn.where, Turn::Where::kHere) == Turn::Where::kHere;
  });
  // Between two steps there is nobody who waits: a thread of the pool goes on with the run.
  if (was_here) return engine_.workers.post(shared_from_this());
  for (const auto& thread : parked) engine_.workers.post(thread);
}

void RunImpl::withdraw_if_cancelled() {
  std::vector<QueueEntryRef> starting;
  if (!is_cancelled() || !engine_.scheduler.withdraw(shared_from_this(), starting)) return;
  start_all(starting);
  start_turn();
}

// ---- between two steps

bool RunImpl::goes_on_after_yield() {
  const auto self = shared_from_this();
  const bool was_lent = std::exchange(is_lent_, false);
  std::vector<QueueEntryRef> starting = engine_.scheduler.yield(self, turn_time());
  const bool is_next = std::erase(starting, QueueEntryRef(self)) > 0;
  start_all(starting);
  if (!is_next) {
    // Whoever has the run may have finished it by now; `self` keeps it.
    withdraw_if_cancelled();
    return false;
  }
  if (!was_lent && engine_.workers.waiting() == 0) {
    begin_turn();
    return true;
  }
  ++stats_.handoffs;
  start_turn();
  return false;
}

// ---- within a step

void RunImpl::attend(RunCheckpoint& thread) {
  throw_if_cancelled();
  const bool is_away = (attention_.load(std::memory_order_relaxed) & kAway) != 0;
  if (!is_away && !is_turn_over(std::chrono::steady_clock::now() - kGrace)) return;
  if (thread.give_place()) wait_for_turn(thread);
}

void RunImpl::leave_turn(RunCheckpoint& thread) {
  throw_if_cancelled();
  // Other ranks count on the order of runs on each device.
  const bool leaves = engine_.options.transport == nullptr && turn_.with([](Turn& turn) {
    if (turn.where != Turn::Where::kHere) return false;
    turn.where = Turn::Where::kLeft;
    return true;
  });
  if (leaves) start_all(engine_.scheduler.step_aside(shared_from_this(), turn_time()));
  thread.give_place();
}

// (1) The first thread that gets here tells the scheduler; those that come later wait with it. (2) Who is next at once
// goes on, unless others wait for a thread. (3) Else the thread parks until start_turn() queues it.
void RunImpl::wait_for_turn(RunCheckpoint& thread) {
  const auto self = shared_from_this();
  enum class Part : uint8_t { kGoOn, kYield, kStepBack, kWait };
  std::shared_ptr<ParkedThread> parked;
  const Part part = turn_.with([&](Turn& turn) {
    // start_turn() comes after the flag is set: who parks now is found by it.
    if (is_cancelled()) return Part::kGoOn;
    const Turn::Where where = turn.where;
    if (where == Turn::Where::kHere && !is_turn_over(std::chrono::steady_clock::now())) return Part::kGoOn;
    turn.where = Turn::Where::kWaiting;
    attention_.fetch_or(kAway, std::memory_order_relaxed);
    parked = thread.park();
    turn.parked.push_back(parked);
    return where == Turn::Where::kHere ? Part::kYield : where == Turn::Where::kLeft ? Part::kStepBack : Part::kWait;
  });
  if (part == Part::kGoOn) {
    thread.take_place();
    return throw_if_cancelled();
  }
  if (part != Part::kWait) {
    std::vector<QueueEntryRef> starting =
        part == Part::kYield ? engine_.scheduler.yield(self, turn_time()) : engine_.scheduler.step_back(self);
    const bool is_next = std::erase(starting, QueueEntryRef(self)) > 0;
    start_all(starting);
    if (is_next) {
      if (engine_.workers.waiting() == 0) {
        // Nobody else wants the thread either.
        turn_.with([&](Turn& turn) { std::erase(turn.parked, parked); });
        start_turn();
        return parked->work();
      }
      start_turn();
    } else {
      withdraw_if_cancelled();
    }
  }
  WorkerPool::park(*parked);
  throw_if_cancelled();
}

}  // namespace meshd::device
