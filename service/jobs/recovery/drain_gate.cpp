#include "service/jobs/recovery/drain_gate.h"

#include "service/jobs/job.h"

namespace meshd::jobs {

DrainGate::Entered::Entered(DrainGate& gate) : gate_(gate) {
  const std::lock_guard held(gate_.mutex_);
  if (gate_.closed_) throw draining();
  ++gate_.entered_;
}

DrainGate::Entered::~Entered() { gate_.leave(gate_.entered_); }

DrainGate::Running::Running(DrainGate& gate) : gate_(gate) {
  const std::lock_guard held(gate_.mutex_);
  ++gate_.running_;
}

DrainGate::Running::~Running() { gate_.leave(gate_.running_); }

void DrainGate::leave(int64_t& count) {
  {
    const std::lock_guard held(mutex_);
    --count;
  }
  changed_.notify_all();
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
