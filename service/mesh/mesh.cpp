#include "service/mesh/mesh.h"

#include <fmt/core.h>

#include <algorithm>

#include "service/core/error.h"
#include "service/mesh/positions.h"

namespace meshd::mesh {

int64_t Mesh::position_count() const {
  const Positions positions = count_positions(axes);
  if (!positions.fault) return positions.count;
  throw core::Error("invalid_mesh", "axis '" + axes[*positions.fault].name + "': " + positions.problem);
}

std::optional<int> Mesh::axis_index(std::string_view name) const {
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[i].name == name) return static_cast<int>(i);
  }
  return std::nullopt;
}

std::string quoted_sorted(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "`" : ", `") + name + "`";
  return out;
}

std::string to_text(const Mesh& mesh) {
  std::string out = "Mesh(";
  for (size_t i = 0; i < mesh.axes.size(); ++i) {
    out += fmt::format("{}{}': {}", i ? ", '" : "'", mesh.axes[i].name, mesh.axes[i].size);
  }
  return out + ")";
}

std::string to_sdy(const Mesh& mesh) {
  std::string out = "<[";
  for (size_t i = 0; i < mesh.axes.size(); ++i) {
    out += fmt::format("{}{}\"={}", i ? ", \"" : "\"", mesh.axes[i].name, mesh.axes[i].size);
  }
  out += "]";
  bool iota = static_cast<int64_t>(mesh.device_ids.size()) == mesh.position_count();
  for (size_t i = 0; i < mesh.device_ids.size(); ++i) iota = iota && mesh.device_ids[i] == static_cast<int64_t>(i);
  if (!mesh.device_ids.empty() && (!iota || mesh.axes.empty())) {
    out += ", device_ids=[";
    for (size_t i = 0; i < mesh.device_ids.size(); ++i) out += fmt::format("{}{}", i ? ", " : "", mesh.device_ids[i]);
    out += "]";
  }
  return out + ">";
}

}  // namespace meshd::mesh
