#include "service/device/result_memory.h"

#include <utility>

#include "service/device/run_impl.h"
#include "service/device/scheduler.h"

namespace meshd::device {

ResultMemory::ResultMemory(std::shared_ptr<Scheduler> scheduler, int64_t bytes)
    : scheduler_(std::move(scheduler)), bytes_(bytes) {}

ResultMemory::ResultMemory(ResultMemory&& other) noexcept
    : scheduler_(std::move(other.scheduler_)), bytes_(std::exchange(other.bytes_, 0)) {}

ResultMemory& ResultMemory::operator=(ResultMemory&& other) noexcept {
  ResultMemory taken(std::move(other));
  std::swap(scheduler_, taken.scheduler_);
  std::swap(bytes_, taken.bytes_);
  return *this;
}

// While runs wait there is an engine: its end waits for them.
ResultMemory::~ResultMemory() {
  if (bytes_ > 0) start_all(scheduler_->give_back(bytes_));
}

}  // namespace meshd::device
