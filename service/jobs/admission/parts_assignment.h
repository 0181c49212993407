// The device assignment of a job whose shardings are integer specs: how many partitions, on which devices, over which
// mesh. JAX: sharded_jit; behaviours S4 to S17.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "service/jobs/admission/device_assignment.h"

namespace meshd::jobs {

/// True when the request has an integer spec or a number of partitions.
bool asks_for_parts(const JobRequest& request);

/// Null specs are replicated. Uses the first devices of the process where they are enough, else all. Throws
/// invalid_spec (specs that disagree with each other, a rank or the program's own meshes), too_few_devices with both
/// numbers, not_implemented for some but not all devices of several processes, invalid_request where the local number
/// is missing or too large.
DeviceAssignment assign_parts(const JobRequest& request);

}  // namespace meshd::jobs
