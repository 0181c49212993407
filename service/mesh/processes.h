// Processes as labels on devices: "local" devices of a client that is one of several processes. Pure functions. JAX:
// Mesh.local_devices, Mesh.local_mesh, is_multi_process in jax/_src/mesh.py.
#pragma once

#include <cstdint>
#include <vector>

#include "service/mesh/mesh.h"

namespace meshd::mesh {

/// Devices dealt out to processes in equal runs: 8 devices and 2 processes give 0..3 and 4..7.
struct Processes {
  int64_t devices = 1;
  int64_t count = 1;  ///< divides `devices`

  [[nodiscard]] int64_t of(int64_t device) const { return device * count / devices; }
  /// Devices of one process.
  [[nodiscard]] int64_t local_count() const { return devices / count; }
  /// Throws invalid_query naming both numbers when there is no such process.
  void check(int64_t process) const;
};

/// Devices of the mesh that the process has, in flat order. Throws invalid_mesh for an abstract mesh.
std::vector<int64_t> local_devices(const Mesh& mesh, const Processes& processes, int64_t process);
/// Not all devices of the mesh are the process's own. Throws invalid_mesh for an abstract mesh.
bool is_multi_process(const Mesh& mesh, const Processes& processes, int64_t process);
/// The smallest part of each axis that covers the process's devices (behaviours M18 to M21). An empty mesh is its own.
/// Throws invalid_mesh: an abstract mesh, a process without a device in it, devices that are no contiguous subcube.
Mesh local_mesh(const Mesh& mesh, const Processes& processes, int64_t process);

/// Axes and types alone.
Mesh abstract_form(const Mesh& mesh);
/// Throws invalid_mesh "AbstractMesh does not implement WHAT" for a mesh that has axes and no devices.
void require_concrete(const Mesh& mesh, std::string_view what);

}  // namespace meshd::mesh
