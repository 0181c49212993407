#include "service/jobs/dependency.h"

#include "service/arrays/array_store.h"

namespace meshd::jobs {

std::string how_it_ended(const storage::JobRow& maker) {
  if (maker.state == storage::JobState::kCancelled) return "was cancelled";
  if (maker.state != storage::JobState::kFailed) return "cannot run again";
  // Of a chain of jobs the first failure is told once: the details would grow with the chain.
  if (maker.error_code == "dependency_failed") return "failed with dependency_failed";
  return "failed: " + maker.error_detail;
}

core::Error dependency_failed(std::string_view array, const storage::JobRow& maker) {
  return arrays::not_made(array, arrays::why_not_made(maker.id, how_it_ended(maker)));
}

}  // namespace meshd::jobs
