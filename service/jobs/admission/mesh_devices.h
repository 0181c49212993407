// The devices of a program whose meshes are over different devices of one run: meshes of several sizes, lists of device
// ids that overlap or are disjoint, arguments on one device. The device ids of each of its meshes index one list, the
// flat device list of the run, which a request gives in one of four ways.
//
// Example: @a is ["x"=2], @b is ["y"=3] with device_ids [2, 3, 4]; the flat list has 5 devices.
//   "mesh" of 5 devices [7, 6, 5, 4, 3]                      @a is on 7, 6 and @b on 5, 4, 3
//   "meshes" a: [7, 6], b: [5, 4, 3]                         the same: entries 0, 1 and entries 2, 3, 4
//   arguments that are stored, one over @a and one over @b   their devices
//   none of them                                             0, 1, 2, 3, 4
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "service/compile/pipeline.h"
#include "service/jobs/job_request.h"

namespace meshd::jobs {

/// True when some mesh of the program is not over all devices of its meshes, or an argument is on one device.
bool has_partial_meshes(const compile::ParsedProgram& program);

/// The flat device list, as the request or its stored arguments give it; nothing where none of them names a device.
/// Throws invalid_mesh where meshes of the request contradict each other or leave entries open, device_mismatch where
/// arguments do. The request's meshes are over as many positions as the program's.
std::optional<std::vector<int64_t>> named_devices(const JobRequest& request);

/// Throws device_mismatch for an argument that is stored on other devices than the program has it on.
void check_places(const JobRequest& request, const std::vector<int64_t>& devices);

/// True when the array with this mesh is on the devices of a mesh of the program.
bool is_on(const mesh::Mesh& stored, const mesh::Mesh& of_program, const std::vector<int64_t>& devices);

/// The devices of a mesh by position; of an abstract one 0, 1, 2, ...
std::vector<int64_t> devices_of(const mesh::Mesh& mesh);

/// [0,1,2], for messages.
std::string list_of(const std::vector<int64_t>& devices);

}  // namespace meshd::jobs
