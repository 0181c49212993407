// Arguments that are results of other jobs, as futures: what a job is told when the job that was to make its argument
// did not.
#pragma once

#include <string>
#include <string_view>

#include "service/core/error.h"
#include "storage/rows/rows.h"

namespace meshd::jobs {

/// How a job ended that did not make its results, for those that were to read them: "was cancelled", "failed: ...".
std::string how_it_ended(const storage::JobRow& maker);

/// What a job ends with whose argument `array` the other job was to make, and did not.
core::Error dependency_failed(std::string_view array, const storage::JobRow& maker);

}  // namespace meshd::jobs
