#include "api/app/periodic.h"

#include <utility>

namespace meshd::api {

Periodic::Periodic(std::chrono::milliseconds period, std::function<void()> call)
    : period_(period), call_(std::move(call)), thread_([this] { run(); }) {}

Periodic::~Periodic() {
  {
    const std::lock_guard held(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void Periodic::run() {
  std::unique_lock held(mutex_);
  while (!wake_.wait_for(held, period_, [this] { return stopping_; })) {
    held.unlock();
    call_();
    held.lock();
  }
}

}  // namespace meshd::api
