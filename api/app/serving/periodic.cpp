#include "api/app/serving/periodic.h"

#include <exception>
#include <utility>

#include "service/core/error.h"

namespace meshd::api {

Periodic::Periodic(std::chrono::milliseconds period, std::function<void()> call,
                   std::function<void(const std::string&)> failed)
    : period_(period), call_(std::move(call)), failed_(std::move(failed)), thread_([this] { run(); }) {}

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
    try {
      call_();
    } catch (const core::Error& error) {
      failed_(error.detail() + " (" + error.internal() + ")");
    } catch (const std::exception& error) {
      failed_(error.what());
    }
    held.lock();
  }
}

}  // namespace meshd::api
