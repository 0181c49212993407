#include "service/arrays/array_text.h"

#include <nlohmann/json.hpp>

#include "service/core/error.h"

namespace meshd::arrays {

std::string sharding_to_text(const sharding::TensorSharding& sharding) {
  nlohmann::ordered_json out;
  out["dims"] = nlohmann::ordered_json::array();
  for (const sharding::DimSharding& dim : sharding.dims) {
    nlohmann::ordered_json axes = nlohmann::ordered_json::array();
    for (const sharding::AxisRef& axis : dim.axes) {
      nlohmann::ordered_json entry = {sharding.mesh->axes[static_cast<size_t>(axis.axis)].name, axis.pre, axis.size};
      axes.push_back(axis.is_whole() ? entry[0] : entry);
    }
    out["dims"].push_back(std::move(axes));
  }
  if (!sharding.mesh_name.empty()) out["mesh_name"] = sharding.mesh_name;
  return out.dump();
}

sharding::TensorSharding sharding_from_text(std::string_view text, mesh::MeshRef mesh) {
  const auto in = nlohmann::json::parse(text, nullptr, false);
  if (!in.is_object() || !in.contains("dims")) throw core::Error("internal", "a stored sharding cannot be read");
  sharding::TensorSharding out;
  out.mesh_name = in.value("mesh_name", "");
  for (const auto& axes : in["dims"]) {
    sharding::DimSharding dim;
    for (const auto& entry : axes) {
      const bool part = entry.is_array();
      const auto axis = mesh->axis_index((part ? entry.at(0) : entry).get<std::string>());
      if (!axis) throw core::Error("internal", "a stored sharding names an axis that its mesh does not have");
      dim.axes.push_back({*axis, part ? entry.at(1).get<int64_t>() : 1, part ? entry.at(2).get<int64_t>() : 0});
    }
    out.dims.push_back(std::move(dim));
  }
  out.mesh = std::move(mesh);
  return out;
}

}  // namespace meshd::arrays
