// Time slices: when a run yields its devices, and how the threads inside one of its steps park until its next slice.
//
// Invariant: threads work on a step only while the run holds its devices (library calls under leave() excepted), and
// start_turn() wakes every thread that parked before it.
//
// Between two steps (step_done, goes_on_after_yield):
// 1. Every 16 steps, and after a step estimated at 20 us or more, the run reads the clock, if its devices or a thread
//    are requested or its thread is lent.
// 2. If the slice is 2 ms old, the scheduler charges it and queues the run again.
// 3. If the run is the next, and no other work waits for the thread, it continues here with a new slice. If it is the
//    next but the thread is requested or lent, the pool gets it. Else it is data until start_turn() posts it.
//
// Within a step (attend, wait_for_turn), at a checkpoint of each thread:
// 1. attend() returns unless others have the devices (kAway) or the slice is 4 ms old. The 2 ms more let runs of short
//    steps yield between two of them, without a parked thread.
// 2. The thread gives its place in the pool to a spare worker. If none can be had, it continues.
// 3. The first thread sets kAway and yields to the scheduler; later ones only park.
// 4. If the run is the next at once and no work waits for a thread, the first thread continues and wakes the others.
// 5. Else each parks until start_turn() posts it to the pool.
//
// Around a library call without checkpoints, leave_turn() steps aside (without other ranks) and releases the place;
// wait_for_turn() steps back when the call is over.
//
// Example: a step of 30 ms on two threads, a checkpoint each millisecond, and a second run that needs the device. At
// the first checkpoint after 4 ms one thread yields and parks; the other sees kAway at its next checkpoint, about 1 ms
// later. The second run holds the device until it yields or ends; then both threads are posted.
#include <algorithm>
#include <utility>

#include "service/device/run_impl.h"

namespace meshd::device {
namespace {

constexpr std::chrono::nanoseconds kSlice = std::chrono::milliseconds(2);
// Within a step a slice ends later: a run whose steps are short yields between two of them, without a parked thread.
constexpr std::chrono::nanoseconds kGrace = kSlice;
// The most that one slice is charged: a longer one was mostly without competition.
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
  // Between two steps no thread is parked: a thread of the pool continues the run.
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
    // Another thread may have finished the run by now; `self` keeps it.
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
  // With other ranks the order of runs on each device is fixed.
  const bool leaves = engine_.options.transport == nullptr && turn_.with([](Turn& turn) {
    if (turn.where != Turn::Where::kHere) return false;
    turn.where = Turn::Where::kLeft;
    return true;
  });
  if (leaves) start_all(engine_.scheduler.step_aside(shared_from_this(), turn_time()));
  thread.give_place();
}

// Steps 3 to 5 within a step, and the end of a library call.
void RunImpl::wait_for_turn(RunCheckpoint& thread) {
  const auto self = shared_from_this();
  enum class Part : uint8_t { kGoOn, kYield, kStepBack, kWait };
  std::shared_ptr<ParkedThread> parked;
  const Part part = turn_.with([&](Turn& turn) {
    // start_turn() runs after the flag is set: it finds every thread that parks here.
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
        // The thread has no other work either.
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
