#include "service/core/waits/timers.h"

namespace meshd::core {
namespace {

const SystemClock& system_clock() {
  static const SystemClock clock;
  return clock;
}

}  // namespace

Timers::Timers() : Timers(system_clock()) {}

Timers::Timers(const Clock& clock)
    : clock_(clock), thread_([this] { run(); }), moves_(clock.on_move([this] {
        { const std::lock_guard held(mutex_); }  // whoever has looked at the clock waits by now
        changed_.notify_all();
      })) {}

Timers::~Timers() {
  moves_.reset();
  {
    const std::lock_guard held(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

Timers::Id Timers::at(SteadyTime time, std::function<void()> call) {
  Id id = 0;
  bool is_first = false;
  {
    const std::lock_guard held(mutex_);
    id = ++last_;
    const auto named = times_.emplace(id, time).first;
    try {
      const auto added = calls_.emplace(std::make_pair(time, id), std::move(call)).first;
      is_first = added == calls_.begin();
    } catch (...) {
      times_.erase(named);
      throw;
    }
  }
  if (is_first) changed_.notify_all();
  return id;
}

void Timers::cancel(Id id) {
  std::function<void()> dropped;  // release its captures without the lock
  const std::lock_guard held(mutex_);
  const auto time = times_.find(id);
  if (time == times_.end()) return;
  const auto call = calls_.find({time->second, id});
  dropped = std::move(call->second);
  calls_.erase(call);
  times_.erase(time);
}

void Timers::run() {
  std::unique_lock held(mutex_);
  while (!stopping_) {
    if (calls_.empty()) {
      changed_.wait(held);
      continue;
    }
    const auto first = calls_.begin();
    const SteadyTime time = first->first.first;
    if (time > clock_.steady()) {
      changed_.wait_until(held, time);
      continue;
    }
    const std::function<void()> call = std::move(first->second);
    times_.erase(first->first.second);
    calls_.erase(first);
    held.unlock();
    call();
    held.lock();
  }
}

}  // namespace meshd::core
