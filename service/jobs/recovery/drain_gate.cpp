#include "service/jobs/recovery/drain_gate.h"

#include "service/jobs/job.h"

namespace meshd::jobs {

DrainGate::Counted DrainGate::enter() {
  const std::lock_guard held(mutex_);
  if (closed_) throw draining();
  ++entered_;
  return {*this, entered_};
}

DrainGate::Counted DrainGate::run() {
  const std::lock_guard held(mutex_);
  ++running_;
  return {*this, running_};
}

DrainGate::Counted::~Counted() {
  {
    const std::lock_guard held(gate_.mutex_);
    --count_;
  }
  gate_.changed_.notify_all();
}

void DrainGate::close() {
  const std::lock_guard held(mutex_);
  closed_ = true;
}

bool DrainGate::is_closed() const {
  const std::lock_guard held(mutex_);
  return closed_;
}

bool DrainGate::wait_until_empty(std::chrono::milliseconds time) {
  std::unique_lock held(mutex_);
  return changed_.wait_for(held, time, [&] { return running_ == 0 && entered_ == 0; });
}

int64_t DrainGate::running() const {
  const std::lock_guard held(mutex_);
  return running_;
}

}  // namespace meshd::jobs
