#include "service/mesh/mesh_document.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "service/core/error.h"
#include "service/core/ids.h"

namespace meshd::mesh {
namespace {

constexpr std::string_view kTypeNames[] = {"auto", "explicit", "manual"};

}  // namespace

std::string to_document(const Mesh& mesh) {
  nlohmann::ordered_json out;
  out["axes"] = nlohmann::ordered_json::array();
  for (const Axis& axis : mesh.axes) out["axes"].push_back({{"name", axis.name}, {"size", axis.size}});
  if (!mesh.device_ids.empty()) out["device_ids"] = mesh.device_ids;
  if (std::any_of(mesh.axis_types.begin(), mesh.axis_types.end(),
                  [](AxisType type) { return type != AxisType::kAuto; })) {
    for (const AxisType type : mesh.axis_types) out["axis_types"].push_back(kTypeNames[static_cast<size_t>(type)]);
  }
  return out.dump();
}

Mesh from_document(std::string_view document) {
  const auto in = nlohmann::json::parse(document, nullptr, false);
  if (!in.is_object()) throw core::Error("internal", "a stored mesh cannot be read");
  Mesh mesh;
  for (const auto& axis : in.at("axes"))
    mesh.axes.push_back({axis.at("name").get<std::string>(), axis.at("size").get<int64_t>()});
  if (in.contains("device_ids")) mesh.device_ids = in.at("device_ids").get<std::vector<int64_t>>();
  if (in.contains("axis_types")) {
    for (const auto& type : in.at("axis_types")) {
      const auto found = std::find(std::begin(kTypeNames), std::end(kTypeNames), type.get<std::string>());
      mesh.axis_types.push_back(static_cast<AxisType>(found - std::begin(kTypeNames)));
    }
  }
  return mesh;
}

std::string to_repr(const Mesh& mesh) {
  if (mesh.device_ids.empty() && !mesh.axes.empty()) return "Abstract" + to_text(mesh);
  // A bracket opens before every position that begins a run of some axis, and closes after the last of it.
  std::string out = "Mesh(device_ids=";
  std::vector<int64_t> runs;
  int64_t run = 1;
  for (size_t d = mesh.axes.size(); d-- > 0;) runs.push_back(run *= mesh.axes[d].size);
  if (mesh.device_ids.empty()) out += "[]";
  for (size_t i = 0; i < mesh.device_ids.size(); ++i) {
    if (i > 0) out += ", ";
    for (const int64_t length : runs) out += static_cast<int64_t>(i) % length == 0 ? "[" : "";
    out += std::to_string(mesh.device_ids[i]);
    for (const int64_t length : runs) out += (static_cast<int64_t>(i) + 1) % length == 0 ? "]" : "";
  }
  out += ", axis_names=(";
  for (size_t i = 0; i < mesh.axes.size(); ++i) out += (i ? ", '" : "'") + mesh.axes[i].name + "'";
  return out + (mesh.axes.size() == 1 ? ",))" : "))");
}

std::vector<int64_t> sizes_of(const Mesh& mesh) {
  std::vector<int64_t> sizes;
  for (const Axis& axis : mesh.axes) sizes.push_back(axis.size);
  return sizes;
}

std::string mesh_id(const Mesh& mesh) { return core::digest_id("mesh", to_document(mesh)); }

}  // namespace meshd::mesh
