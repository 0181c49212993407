// The device assignment of a job: its mesh, its devices, and the shardings that the request and committed arrays fix.
#pragma once

#include <cstdint>
#include <vector>

#include "service/compile/pipeline.h"
#include "service/jobs/job_request.h"

namespace meshd::jobs {

struct DeviceAssignment {
  compile::LowerRequest lower;
  std::vector<int64_t> devices;              ///< device id by flat position
  std::optional<PartitionCount> partitions;  ///< with integer specs
};

/// JobRequest::least_loaded leaves the choice to the start of the job: as many devices as `devices` has then.
///
/// The request's mesh; else the devices of committed arguments (device_mismatch with both lists when they differ); else
/// 0, 1, 2, ... Throws invalid_mesh where the mesh does not fit the module's, too_few_devices with both numbers,
/// invalid_spec and invalid_request with pointers for wrong specs and counts, and for least_loaded beside devices that
/// the request or its arguments fix.
DeviceAssignment assign_devices(const JobRequest& request, int64_t server_devices);

/// The same for a request that is only explained: any number of devices, abstract meshes, meshes of the module of
/// several sizes.
compile::LowerRequest assign_abstract(const JobRequest& request);

/// The mesh of a sharding with the devices of the run.
mesh::Mesh concrete_mesh(const mesh::Mesh& mesh, const std::vector<int64_t>& devices);

}  // namespace meshd::jobs
