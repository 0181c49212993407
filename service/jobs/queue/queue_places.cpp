#include "service/jobs/queue/queue_places.h"

#include <fmt/core.h>

namespace meshd::jobs {

core::Error QueuePlaces::full(std::string_view whose, int64_t count, int64_t limit) {
  return core::Error("queue_full", fmt::format("{} {} wait already; at most {} may", count, whose, limit))
      .with_retry_after(1);
}

}  // namespace meshd::jobs
