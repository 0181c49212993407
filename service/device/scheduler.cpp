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
    for (const int64_t device : seat->devices_) {
      auto& queue = state.queues[static_cast<size_t>(device)];
      auto at = queue.end();
      while (at != queue.begin() && !(*std::prev(at))->has_started_ && (*std::prev(at))->ticket_ > seat->ticket_) --at;
      if (at == queue.begin()) {
        ++seat->first_in_;
        if (!queue.empty()) {
          state.ready.erase(order(*queue.front()));
          --queue.front()->first_in_;
        }
      }
      queue.insert(at, seat);
    }
    if (seat->first_in_ == seat->devices_.size()) state.ready.emplace(order(*seat), seat);
    return start(state);
  });
}

std::vector<SeatRef> Scheduler::start(State& state) const {
  std::vector<SeatRef> out;
  while (!state.ready.empty()) {
    SeatRef next = state.ready.begin()->second;
    if (limit_ > 0 && state.bytes + next->bytes_ > limit_) break;
    state.ready.erase(state.ready.begin());
    state.bytes += next->bytes_;
    ++state.running;
    next->has_started_ = true;
    out.push_back(std::move(next));
  }
  return out;
}

void Scheduler::leave(State& state, const SeatRef& seat) const {
  seat->is_seated_ = false;
  state.ready.erase(order(*seat));
  if (seat->has_started_) {
    state.bytes -= seat->bytes_;
    --state.running;
  }
  for (const int64_t device : seat->devices_) {
    auto& queue = state.queues[static_cast<size_t>(device)];
    const bool was_first = queue.front() == seat;
    queue.erase(std::find(queue.begin(), queue.end(), seat));
    if (!was_first || queue.empty()) continue;
    const SeatRef& next = queue.front();
    if (++next->first_in_ == next->devices_.size() && !next->has_started_) state.ready.emplace(order(*next), next);
  }
  state.seated.erase(seat);
}

std::vector<SeatRef> Scheduler::remove(const SeatRef& seat) {
  return state_.with([&](State& state) {
    if (seat->is_seated_) leave(state, seat);
    return start(state);
  });
}

bool Scheduler::withdraw(const SeatRef& seat, std::vector<SeatRef>& starting) {
  return state_.with([&](State& state) {
    if (!seat->is_seated_ || seat->has_started_) return false;
    leave(state, seat);
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
    out.queued = static_cast<int64_t>(state.seated.size()) - state.running;
    out.planned_bytes = state.bytes;
    for (const auto& queue : state.queues) out.device_queue.push_back(static_cast<int64_t>(queue.size()));
    return out;
  });
}

}  // namespace meshd::device
