// Time slices: when a run yields its devices, and how the threads inside one of its steps park until its next slice.
//
// Invariant: threads work on a step only while the run holds its devices (library calls under leave() excepted), and
// start_slice() wakes every thread that parked before it.
//
// Between two steps (step_done, goes_on_after_yield):
// 1. Every 16 steps, and after a step estimated at 20 us or more, the run reads the clock, if its devices or a thread
//    are requested or its thread is lent.
// 2. If the slice is 2 ms old, the scheduler charges it and queues the run again.
// 3. If the run is the next, and no other work waits for the thread, it continues here with a new slice. If it is the
//    next but the thread is requested or lent, the pool gets it. Else it is data until start_slice() posts it.
//
// Within a step (attend, wait_for_slice), at a checkpoint of each thread:
// 1. attend() returns unless others have the devices (kAway) or the slice is 4 ms old. The 2 ms more let runs of short
//    steps yield between two of them, without a parked thread.
// 2. The thread gives its place in the pool to a spare worker. If none can be had, it continues: threads that parked
//    with all places would have nobody to wake them.
// 3. The first thread sets kAway and yields to the scheduler; later ones only park.
// 4. If the run is the next at once and no work waits for a thread, the first thread continues and wakes the others.
// 5. Else each parks until start_slice() posts it to the pool.
//
// Around a library call without checkpoints, leave_slice() steps aside (without other ranks) and releases the place;
// wait_for_slice() steps back when the call is over. A thread whose call ends before another one has stepped aside
// parks, and that one steps back at once (kLeaving): to the scheduler the two always come in this order.
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
  for (const QueueEntryRef& entry : entries) std::static_pointer_cast<RunImpl>(entry)->start_slice();
}

void RunImpl::begin_slice_clock() {
  slice_begin_.store(std::chrono::steady_clock::now().time_since_epoch().count(), std::memory_order_relaxed);
}

std::chrono::nanoseconds RunImpl::slice_time() const {
  const auto begin = slice_begin_.load(std::memory_order_relaxed);
  const std::chrono::nanoseconds now = std::chrono::steady_clock::now().time_since_epoch();
  return begin == 0 ? std::chrono::nanoseconds(0) : std::min(now - std::chrono::nanoseconds(begin), kMostCharged);
}

bool RunImpl::is_slice_over(core::SteadyTime now) const {
  return now.time_since_epoch() >= std::chrono::nanoseconds(slice_begin_.load(std::memory_order_relaxed)) + kSlice;
}

void RunImpl::start_slice() {
  std::vector<std::shared_ptr<ParkedThread>> parked;
  const bool was_here = slice_.with([&](TimeSlice& slice) {
    begin_slice_clock();
    attention_.fetch_and(~kAway, std::memory_order_relaxed);
    parked.swap(slice.parked);
    return std::exchange(slice.where, TimeSlice::Where::kHere) == TimeSlice::Where::kHere;
  });
  // Between two steps no thread is parked: a thread of the pool continues the run.
  if (was_here) return engine_.workers.post(shared_from_this());
  for (const auto& thread : parked) engine_.workers.post(thread);
}

void RunImpl::withdraw_if_cancelled() {
  std::vector<QueueEntryRef> starting;
  if (!is_cancelled() || !engine_.scheduler.withdraw(shared_from_this(), starting)) return;
  start_all(starting);
  start_slice();
}

// ---- between two steps

bool RunImpl::goes_on_after_yield() {
  const auto self = shared_from_this();
  const bool was_lent = std::exchange(is_lent_, false);
  std::vector<QueueEntryRef> starting = engine_.scheduler.yield(self, slice_time());
  const bool is_next = std::erase(starting, QueueEntryRef(self)) > 0;
  start_all(starting);
  if (!is_next) {
    // Another thread may have finished the run by now; `self` keeps it.
    withdraw_if_cancelled();
    return false;
  }
  if (!was_lent && engine_.workers.waiting() == 0) {
    begin_slice_clock();
    return true;
  }
  ++stats_.handoffs;
  start_slice();
  return false;
}

// ---- within a step

void RunImpl::attend(RunCheckpoint& thread) {
  throw_if_cancelled();
  const bool is_away = (attention_.load(std::memory_order_relaxed) & kAway) != 0;
  if (!is_away && !is_slice_over(std::chrono::steady_clock::now() - kGrace)) return;
  wait_for_slice(thread);
}

void RunImpl::leave_slice(RunCheckpoint& thread) {
  throw_if_cancelled();
  // A thread that keeps its place could not park when it comes back: the run keeps its devices, too.
  if (!thread.give_place()) return;
  // A run of several ranks keeps its devices, and other ranks than 0 take the order of tickets.
  const bool may_leave = engine_.options.transport == nullptr || (engine_.options.rank == 0 && owners_.is_alone);
  const bool leaves = may_leave && slice_.with([](TimeSlice& slice) {
    if (slice.where != TimeSlice::Where::kHere) return false;
    slice.where = TimeSlice::Where::kLeaving;
    return true;
  });
  if (!leaves) return;
  const auto self = shared_from_this();
  start_all(engine_.scheduler.step_aside(self, slice_time()));
  const bool is_wanted = slice_.with([](TimeSlice& slice) {
    const bool has_parked = !slice.parked.empty();
    slice.where = has_parked ? TimeSlice::Where::kWaiting : TimeSlice::Where::kLeft;
    return has_parked;
  });
  if (!is_wanted) return;
  start_all(engine_.scheduler.step_back(self));
  withdraw_if_cancelled();
}

// Steps 2 to 5 within a step, and the end of a library call.
void RunImpl::wait_for_slice(RunCheckpoint& thread) {
  // Without a place to give it goes on, with the run's devices or without: the thread that gave them back has a part of
  // the step left, and asks for them again before the step can end.
  if (!thread.give_place()) return throw_if_cancelled();
  const auto self = shared_from_this();
  enum class Part : uint8_t { kGoOn, kYield, kStepBack, kWait };
  std::shared_ptr<ParkedThread> parked;
  const Part part = slice_.with([&](TimeSlice& slice) {
    // start_slice() runs after the flag is set: it finds every thread that parks here.
    if (is_cancelled()) return Part::kGoOn;
    const TimeSlice::Where where = slice.where;
    if (where == TimeSlice::Where::kHere && !is_slice_over(std::chrono::steady_clock::now())) return Part::kGoOn;
    // Others park behind a thread that has said it would ask for the devices: from here on nothing throws.
    parked = thread.park();
    core::keep_trying([&] { slice.parked.push_back(parked); });
    // The thread that is leaving finds those that have parked.
    if (where != TimeSlice::Where::kLeaving) slice.where = TimeSlice::Where::kWaiting;
    attention_.fetch_or(kAway, std::memory_order_relaxed);
    return where == TimeSlice::Where::kHere   ? Part::kYield
           : where == TimeSlice::Where::kLeft ? Part::kStepBack
                                              : Part::kWait;
  });
  if (part == Part::kGoOn) {
    thread.take_place();
    return throw_if_cancelled();
  }
  if (part != Part::kWait) {
    std::vector<QueueEntryRef> starting =
        part == Part::kYield ? engine_.scheduler.yield(self, slice_time()) : engine_.scheduler.step_back(self);
    const bool is_next = std::erase(starting, QueueEntryRef(self)) > 0;
    start_all(starting);
    if (is_next) {
      if (engine_.workers.waiting() == 0) {
        // The thread has no other work either.
        slice_.with([&](TimeSlice& slice) { std::erase(slice.parked, parked); });
        start_slice();
        return parked->work();
      }
      start_slice();
    } else {
      withdraw_if_cancelled();
    }
  }
  WorkerPool::park(*parked);
  throw_if_cancelled();
}

}  // namespace meshd::device
