#include "service/device/scheduler.h"

#include <algorithm>
#include <utility>

#include "service/core/keep_trying.h"

namespace meshd::device {
namespace {

constexpr size_t kMostIdleFlows = 256;  // remembered, so that a short pause forgives no debt

// Forgets idle flows whose virtual time is over, or all idle ones when there are too many.
template <typename Flows, typename Time>
void forget_idle(Flows& flows, Time floor) {
  const bool too_many = flows.size() > kMostIdleFlows;
  std::erase_if(flows,
                [&](const auto& flow) { return flow.second.entries == 0 && (too_many || flow.second.used <= floor); });
}

}  // namespace

Scheduler::Scheduler(int64_t device_count, int64_t memory_limit_bytes, Order order, std::function<void()> on_bytes_back)
    : limit_(memory_limit_bytes), order_(order), on_bytes_back_(std::move(on_bytes_back)) {
  state_.with([&](State& state) {
    state.holders.resize(static_cast<size_t>(device_count));
    state.reserved_in.resize(static_cast<size_t>(device_count));
  });
}

std::vector<QueueEntryRef> Scheduler::add(const QueueEntryRef& entry, QueueRequest request) {
  std::sort(request.devices.begin(), request.devices.end());
  request.devices.erase(std::unique(request.devices.begin(), request.devices.end()), request.devices.end());
  return state_.with([&](State& state) {
    entry->ticket_ = request.ticket == 0 ? state.last_ticket + 1 : request.ticket;
    state.last_ticket = std::max(state.last_ticket, entry->ticket_);
    entry->number_ = state.next_number++;
    entry->devices_ = std::move(request.devices);
    entry->bytes_ = request.bytes;
    entry->principal_ = std::move(request.principal);
    entry->session_ = std::move(request.session);
    entry->keeps_devices_ = request.keeps_devices;
    join(state, entry);
    return start(state);  // allocates with keep_trying: what was changed is not left half done
  });
}

void Scheduler::join(State& state, const QueueEntryRef& entry) {
  // What allocates comes first; flows without entries are forgotten like idle ones.
  Principal& principal = state.principals[entry->principal_];
  Session& session = principal.sessions[entry->session_];
  // For all that may wait, so that coming back allocates nothing.
  if (state.waiting.capacity() <= state.members.size()) state.waiting.reserve(2 * state.members.size() + 8);
  state.members.insert(entry);
  if (principal.entries++ == 0) {
    principal.used = std::max(principal.used, state.floor);
    forget_idle(state.principals, state.floor);
  }
  if (session.entries++ == 0) {
    session.used = std::max(session.used, principal.floor);
    forget_idle(principal.sessions, principal.floor);
  }
  entry->used_ = session.floor;
  entry->state_ = QueueEntry::State::kWaiting;
  state.waiting.push_back(entry);
}

Scheduler::Key Scheduler::key_of(const State& state, const QueueEntry& entry) {
  const Principal& principal = state.principals.find(entry.principal_)->second;
  const Session& session = principal.sessions.find(entry.session_)->second;
  return {principal.used, session.used, !entry.comes_back_, entry.used_, entry.ticket_, entry.number_};
}

std::vector<QueueEntryRef> Scheduler::start(State& state) const {
  std::vector<QueueEntryRef> out;
  if (state.waiting.empty()) return out;
  core::keep_trying([&] { out.reserve(state.waiting.size()); });
  if (state.waiting.size() > 1) {
    std::vector<std::pair<Key, QueueEntryRef>> order;
    core::keep_trying([&] { order.reserve(state.waiting.size()); });
    for (QueueEntryRef& entry : state.waiting) {
      const Key key = key_of(state, *entry);
      order.emplace_back(key, std::move(entry));
    }
    std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (size_t i = 0; i < order.size(); ++i) state.waiting[i] = std::move(order[i].second);
  }
  ++state.round;
  bool bytes_are_short = false;
  for (QueueEntryRef& entry : state.waiting) {
    const bool is_free = std::all_of(entry->devices_.begin(), entry->devices_.end(), [&](int64_t device) {
      const auto d = static_cast<size_t>(device);
      return state.holders[d] == nullptr && state.reserved_in[d] != state.round;
    });
    if ((is_free || order_ == Order::kTickets) && !entry->has_bytes_) {
      bytes_are_short = bytes_are_short || (limit_ > 0 && state.bytes + entry->bytes_ > limit_);
      if (bytes_are_short) continue;
      state.bytes += entry->bytes_;
      entry->has_bytes_ = true;
    }
    for (const int64_t device : entry->devices_) {
      const auto d = static_cast<size_t>(device);
      if (is_free) {
        state.holders[d] = entry.get();
      } else if (state.holders[d] != nullptr && order_ == Order::kFair && !state.holders[d]->keeps_devices_) {
        state.holders[d]->attention_.fetch_or(QueueEntry::kWanted, std::memory_order_relaxed);
      }
      state.reserved_in[d] = state.round;
    }
    if (!is_free) continue;
    entry->attention_.fetch_and(~QueueEntry::kWanted, std::memory_order_relaxed);
    entry->state_ = QueueEntry::State::kRunning;
    entry->comes_back_ = false;
    ++state.running;
    Principal& principal = state.principals.find(entry->principal_)->second;
    Session& session = principal.sessions.find(entry->session_)->second;
    state.floor = std::max(state.floor, principal.used);
    principal.floor = std::max(principal.floor, session.used);
    session.floor = std::max(session.floor, entry->used_);
    out.push_back(std::move(entry));
  }
  std::erase(state.waiting, nullptr);
  return out;
}

void Scheduler::charge(State& state, QueueEntry& entry, Time used) const {
  if (order_ == Order::kTickets) return;
  Principal& principal = state.principals.find(entry.principal_)->second;
  principal.used += used;
  principal.sessions.find(entry.session_)->second.used += used;
  entry.used_ += used;
}

void Scheduler::stop(State& state, QueueEntry& entry) {
  for (const int64_t device : entry.devices_) state.holders[static_cast<size_t>(device)] = nullptr;
  --state.running;
}

void Scheduler::leave(State& state, const QueueEntryRef& entry) {
  switch (entry->state_) {
    case QueueEntry::State::kGone:
      return;
    case QueueEntry::State::kWaiting:
      std::erase(state.waiting, entry);
      break;
    case QueueEntry::State::kRunning:
      stop(state, *entry);
      break;
    case QueueEntry::State::kAside:
      --state.aside;
      break;
  }
  entry->state_ = QueueEntry::State::kGone;
  if (entry->has_bytes_) state.bytes -= entry->bytes_;
  Principal& principal = state.principals.find(entry->principal_)->second;
  --principal.entries;
  --principal.sessions.find(entry->session_)->second.entries;
  state.members.erase(entry);
}

std::vector<QueueEntryRef> Scheduler::yield(const QueueEntryRef& entry, std::chrono::nanoseconds used) {
  return state_.with([&](State& state) {
    if (entry->state_ != QueueEntry::State::kRunning) return std::vector<QueueEntryRef>();
    if (order_ == Order::kTickets || entry->keeps_devices_)
      return core::keep_trying([&] { return std::vector<QueueEntryRef>{entry}; });
    charge(state, *entry, used);
    stop(state, *entry);
    entry->state_ = QueueEntry::State::kWaiting;
    state.waiting.push_back(entry);
    return start(state);
  });
}

std::vector<QueueEntryRef> Scheduler::step_aside(const QueueEntryRef& entry, std::chrono::nanoseconds used) {
  return state_.with([&](State& state) {
    if (entry->state_ != QueueEntry::State::kRunning) return std::vector<QueueEntryRef>();
    charge(state, *entry, used);
    stop(state, *entry);
    entry->state_ = QueueEntry::State::kAside;
    ++state.aside;
    return start(state);
  });
}

std::vector<QueueEntryRef> Scheduler::step_back(const QueueEntryRef& entry) {
  return state_.with([&](State& state) {
    if (entry->state_ != QueueEntry::State::kAside) return std::vector<QueueEntryRef>();
    --state.aside;
    entry->state_ = QueueEntry::State::kWaiting;
    entry->comes_back_ = true;
    state.waiting.push_back(entry);
    return start(state);
  });
}

std::vector<QueueEntryRef> Scheduler::remove(const QueueEntryRef& entry, std::chrono::nanoseconds used,
                                             int64_t kept_bytes) {
  auto starting = state_.with([&](State& state) {
    if (entry->state_ == QueueEntry::State::kRunning) charge(state, *entry, used);
    state.bytes += kept_bytes;
    leave(state, entry);
    return start(state);
  });
  note_bytes_back();
  return starting;
}

bool Scheduler::try_take(int64_t bytes) {
  return state_.with([&](State& state) {
    if (limit_ > 0 && state.bytes + bytes > limit_) return false;
    state.bytes += bytes;
    return true;
  });
}

std::vector<QueueEntryRef> Scheduler::give_back(int64_t bytes) {
  auto starting = state_.with([&](State& state) {
    state.bytes -= bytes;
    return start(state);
  });
  note_bytes_back();
  return starting;
}

void Scheduler::note_bytes_back() const {
  if (on_bytes_back_ != nullptr) on_bytes_back_();
}

bool Scheduler::withdraw(const QueueEntryRef& entry, std::vector<QueueEntryRef>& starting) {
  return state_.with([&](State& state) {
    if (entry->state_ != QueueEntry::State::kWaiting) return false;
    if (entry->has_bytes_) {
      // It keeps its memory until it is over.
      std::erase(state.waiting, entry);
      entry->state_ = QueueEntry::State::kAside;
      ++state.aside;
    } else {
      leave(state, entry);
    }
    starting = start(state);
    return true;
  });
}

std::vector<QueueEntryRef> Scheduler::entries() const {
  return state_.with(
      [](const State& state) { return std::vector<QueueEntryRef>(state.members.begin(), state.members.end()); });
}

Scheduler::Stats Scheduler::stats() const {
  return state_.with([](const State& state) {
    Stats out;
    out.running = state.running;
    out.aside = state.aside;
    out.queued = static_cast<int64_t>(state.waiting.size());
    out.planned_bytes = state.bytes;
    for (const QueueEntry* holder : state.holders) out.device_queue.push_back(holder != nullptr ? 1 : 0);
    for (const QueueEntryRef& entry : state.waiting) {
      for (const int64_t device : entry->devices_) ++out.device_queue[static_cast<size_t>(device)];
    }
    return out;
  });
}

}  // namespace meshd::device
