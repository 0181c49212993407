#include "service/device/scheduler.h"

#include <algorithm>

namespace meshd::device {

Scheduler::Scheduler(int64_t device_count, int64_t memory_limit_bytes) : limit_(memory_limit_bytes) {
  state_.with([&](State& state) { state.queues.resize(static_cast<size_t>(device_count)); });
}

std::vector<SeatRef> Scheduler::add(const SeatRef& seat, uint64_t ticket, std::vector<int64_t> devices, int64_t bytes) {
  std::sort(devices.begin(), devices.end());
  devices.erase(std::unique(devices.begin(), devices.end()), devices.end());
  return state_.with([&](State& state) {
    seat->ticket_ = ticket == 0 ? state.last_ticket + 1 : ticket;
    state.last_ticket = std::max(state.last_ticket, seat->ticket_);
    seat->number_ = state.next_number++;
    seat->devices_ = std::move(devices);
    seat->bytes_ = bytes;
    seat->is_seated_ = true;
    state.seated.insert(seat);
    enqueue(state, seat);
    return start(state);
  });
}

void Scheduler::enqueue(State& state, const SeatRef& seat) {
  const auto goes_before = [&](const Seat& other) {
    if (other.has_bytes_) return false;  // runs, or ran and came back earlier
    return seat->has_bytes_ || other.ticket_ > seat->ticket_;
  };
  for (const int64_t device : seat->devices_) {
    auto& queue = state.queues[static_cast<size_t>(device)];
    auto at = queue.end();
    while (at != queue.begin() && goes_before(**std::prev(at))) --at;
    if (at == queue.begin()) {
      ++seat->first_in_;
      if (!queue.empty()) {
        state.ready.erase(order(*queue.front()));
        --queue.front()->first_in_;
      }
    }
    queue.insert(at, seat);
  }
  look_at(state, seat);
}

void Scheduler::look_at(State& state, const SeatRef& seat) {
  if (seat->is_running_ || seat->first_in_ != seat->devices_.size()) return;
  if (seat->has_bytes_) {
    state.returning.push_back(seat);
  } else {
    state.ready.emplace(order(*seat), seat);
  }
}

std::vector<SeatRef> Scheduler::start(State& state) const {
  std::vector<SeatRef> out = std::move(state.returning);
  state.returning.clear();
  while (!state.ready.empty()) {
    SeatRef next = state.ready.begin()->second;
    if (limit_ > 0 && state.bytes + next->bytes_ > limit_) break;
    state.ready.erase(state.ready.begin());
    state.bytes += next->bytes_;
    next->has_bytes_ = true;
    out.push_back(std::move(next));
  }
  for (const SeatRef& seat : out) seat->is_running_ = true;
  state.running += static_cast<int64_t>(out.size());
  return out;
}

void Scheduler::dequeue(State& state, const SeatRef& seat) {
  state.ready.erase(order(*seat));
  if (seat->is_running_) --state.running;
  seat->is_running_ = false;
  seat->first_in_ = 0;
  for (const int64_t device : seat->devices_) {
    auto& queue = state.queues[static_cast<size_t>(device)];
    const bool was_first = queue.front() == seat;
    queue.erase(std::find(queue.begin(), queue.end(), seat));
    if (!was_first || queue.empty()) continue;
    ++queue.front()->first_in_;
    look_at(state, queue.front());
  }
}

void Scheduler::put_aside(State& state, const SeatRef& seat) {
  dequeue(state, seat);
  seat->is_aside_ = true;
  ++state.aside;
}

void Scheduler::leave(State& state, const SeatRef& seat) {
  if (seat->is_aside_) {
    --state.aside;
  } else {
    dequeue(state, seat);
  }
  seat->is_seated_ = false;
  if (seat->has_bytes_) state.bytes -= seat->bytes_;
  state.seated.erase(seat);
}

std::vector<SeatRef> Scheduler::step_aside(const SeatRef& seat) {
  return state_.with([&](State& state) {
    if (!seat->is_running_) return std::vector<SeatRef>();
    put_aside(state, seat);
    return start(state);
  });
}

std::vector<SeatRef> Scheduler::step_back(const SeatRef& seat) {
  return state_.with([&](State& state) {
    if (!seat->is_aside_) return std::vector<SeatRef>();
    seat->is_aside_ = false;
    --state.aside;
    enqueue(state, seat);
    return start(state);
  });
}

std::vector<SeatRef> Scheduler::remove(const SeatRef& seat) {
  return state_.with([&](State& state) {
    if (seat->is_seated_) leave(state, seat);
    return start(state);
  });
}

bool Scheduler::withdraw(const SeatRef& seat, std::vector<SeatRef>& starting) {
  return state_.with([&](State& state) {
    if (!seat->is_seated_ || seat->is_running_ || seat->is_aside_) return false;
    if (seat->has_bytes_) {
      put_aside(state, seat);  // it keeps its memory until it is over
    } else {
      leave(state, seat);
    }
    starting = start(state);
    return true;
  });
}

std::vector<SeatRef> Scheduler::everybody() const {
  return state_.with([](const State& state) { return std::vector<SeatRef>(state.seated.begin(), state.seated.end()); });
}

Scheduler::Stats Scheduler::stats() const {
  return state_.with([](const State& state) {
    Stats out;
    out.running = state.running;
    out.aside = state.aside;
    out.queued = static_cast<int64_t>(state.seated.size()) - state.running - state.aside;
    out.planned_bytes = state.bytes;
    for (const auto& queue : state.queues) out.device_queue.push_back(static_cast<int64_t>(queue.size()));
    return out;
  });
}

}  // namespace meshd::device
