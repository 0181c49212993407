#include "service/mesh/processes.h"

#include <fmt/core.h>

#include <algorithm>

#include "service/core/error.h"

namespace meshd::mesh {

void Processes::check(int64_t process) const {
  if (process >= 0 && process < count) return;
  throw core::Error("invalid_query",
                    fmt::format("there is no process {}; this server has processes 0 to {}", process, count - 1));
}

void require_concrete(const Mesh& mesh, std::string_view what) {
  if (!mesh.device_ids.empty() || mesh.is_empty()) return;
  throw core::Error("invalid_mesh", "AbstractMesh does not implement " + std::string(what));
}

std::vector<int64_t> local_devices(const Mesh& mesh, const Processes& processes, int64_t process) {
  processes.check(process);
  require_concrete(mesh, "local_devices");
  std::vector<int64_t> out;
  for (const int64_t device : mesh.device_ids) {
    if (processes.of(device) == process) out.push_back(device);
  }
  return out;
}

bool is_multi_process(const Mesh& mesh, const Processes& processes, int64_t process) {
  require_concrete(mesh, "is_multi_process");
  return local_devices(mesh, processes, process).size() != mesh.device_ids.size();
}

Mesh local_mesh(const Mesh& mesh, const Processes& processes, int64_t process) {
  processes.check(process);
  require_concrete(mesh, "local_mesh");
  if (mesh.device_ids.empty()) return mesh;
  const size_t rank = mesh.axes.size();
  std::vector<int64_t> low(rank, INT64_MAX), high(rank, -1);
  // Coordinates of a position, first axis major.
  const auto coordinates = [&](int64_t position) {
    std::vector<int64_t> out(rank);
    for (size_t d = rank; d-- > 0;) {
      out[d] = position % mesh.axes[d].size;
      position /= mesh.axes[d].size;
    }
    return out;
  };
  bool any = false;
  for (size_t position = 0; position < mesh.device_ids.size(); ++position) {
    if (processes.of(mesh.device_ids[position]) != process) continue;
    any = true;
    const std::vector<int64_t> at = coordinates(static_cast<int64_t>(position));
    for (size_t d = 0; d < rank; ++d) {
      low[d] = std::min(low[d], at[d]);
      high[d] = std::max(high[d], at[d]);
    }
  }
  if (!any) {
    throw core::Error("invalid_mesh",
                      fmt::format("process has no device in mesh: process {} and {}", process, to_text(mesh)));
  }
  Mesh out;
  out.axis_types = mesh.axis_types;
  for (size_t d = 0; d < rank; ++d) out.axes.push_back({mesh.axes[d].name, high[d] - low[d] + 1});
  for (size_t position = 0; position < mesh.device_ids.size(); ++position) {
    const std::vector<int64_t> at = coordinates(static_cast<int64_t>(position));
    bool inside = true;
    for (size_t d = 0; d < rank; ++d) inside = inside && at[d] >= low[d] && at[d] <= high[d];
    if (!inside) continue;
    const int64_t device = mesh.device_ids[position];
    if (processes.of(device) != process) {
      throw core::Error("invalid_mesh", fmt::format("the devices of process {} in {} must form a contiguous subcube; "
                                                    "device {} lies between them and is process {}'s",
                                                    process, to_text(mesh), device, processes.of(device)));
    }
    out.device_ids.push_back(device);
  }
  return out;
}

Mesh abstract_form(const Mesh& mesh) { return {mesh.axes, {}, mesh.axis_types}; }

}  // namespace meshd::mesh
