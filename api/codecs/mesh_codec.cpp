#include "api/codecs/mesh_codec.h"

#include <algorithm>
#include <functional>
#include <set>

#include "service/mesh/mesh_document.h"
#include "service/mesh/positions.h"

namespace meshd::api {
namespace {

constexpr std::string_view kTypeNames[] = {"auto", "explicit", "manual"};

// Device ids given flat or nested; `shape` gets the nesting. False with a note when ragged.
bool flatten_devices(const Json& json, size_t depth, std::vector<int64_t>& shape, std::vector<int64_t>& ids,
                     const std::string& pointer, core::Diagnostics& wrong) {
  if (!json.is_array()) {
    const auto* number = json.as<JsonNumber>();
    if (number == nullptr || number->kind != JsonNumber::Kind::kSigned || number->i < 0) {
      wrong.add(pointer, "expected a device id, got " + std::string(json.kind_name()));
      return false;
    }
    if (depth != shape.size()) {
      wrong.add(pointer, "devices are nested unevenly");
      return false;
    }
    if (static_cast<int64_t>(ids.size()) == mesh::kMaxPositions) {
      wrong.add(pointer, "a mesh has at most " + std::to_string(mesh::kMaxPositions) + " positions");
      return false;
    }
    ids.push_back(number->i);
    return true;
  }
  const bool first = ids.empty() && depth == shape.size();
  const auto count = static_cast<int64_t>(json.size());
  if (first) shape.push_back(count);
  if (depth >= shape.size() || shape[depth] != count) {
    wrong.add(pointer, "devices are nested unevenly: a list of " + std::to_string(count) +
                           (depth < shape.size() ? " where others have " + std::to_string(shape[depth])
                                                 : " where others have a device"));
    return false;
  }
  for (size_t i = 0; i < json.size(); ++i) {
    if (!flatten_devices(json.at(i), depth + 1, shape, ids, pointer + "/" + std::to_string(i), wrong)) return false;
  }
  return true;
}

void read_axes(const Json& axes, const std::string& pointer, mesh::Mesh& mesh, core::Diagnostics& wrong) {
  for (size_t i = 0; i < axes.size() && has_room(wrong); ++i) {
    const Json item = axes.at(i);
    ObjectReader axis(item, pointer + "/" + std::to_string(i), wrong);
    const auto name = axis.string("name");
    const auto size = axis.integer("size", 0, mesh::kMaxPositions);
    if (axis.field("name") == nullptr) axis.missing("name");
    if (axis.field("size") == nullptr) axis.missing("size");
    axis.finish();
    mesh.axes.push_back({name.value_or(""), size.value_or(1)});
  }
  if (!axes.is_array()) wrong.add(pointer, "expected a list of axes, got " + std::string(axes.kind_name()));
}

// What holds for axes however they are written; the pointers are those of the fields that brought them.
void check_axes(const mesh::Mesh& mesh, const std::function<std::string(size_t)>& name_pointer,
                const std::function<std::string(size_t)>& size_pointer, const std::string& names_pointer,
                core::Diagnostics& wrong) {
  if (mesh.axes.size() > mesh::kMaxAxes) {
    wrong.add(names_pointer, "a mesh has at most " + std::to_string(mesh::kMaxAxes) + " axes, got " +
                                 std::to_string(mesh.axes.size()));
    return;
  }
  std::set<std::string_view> names;
  std::vector<std::string> repeated;
  for (size_t i = 0; i < mesh.axes.size() && has_room(wrong); ++i) {
    if (mesh.axes[i].name.empty()) wrong.add(name_pointer(i), "an axis name must not be empty");
    if (!names.insert(mesh.axes[i].name).second) repeated.push_back(mesh.axes[i].name);
  }
  if (!repeated.empty())
    wrong.add(names_pointer, "axis names must differ; given more than once: " + mesh::quoted_sorted(repeated));
  if (const mesh::Positions positions = mesh::count_positions(mesh.axes); positions.fault)
    wrong.add(size_pointer(*positions.fault), positions.problem);
}

void check_devices(const std::vector<int64_t>& ids, const std::string& pointer, core::Diagnostics& wrong) {
  std::set<int64_t> seen;
  for (size_t i = 0; i < ids.size() && has_room(wrong); ++i) {
    if (!seen.insert(ids[i]).second)
      wrong.add(pointer + "/" + std::to_string(i), "device " + std::to_string(ids[i]) + " is named twice");
  }
}

std::string axes_json(const mesh::Mesh& mesh) {
  std::string out = "[";
  for (size_t i = 0; i < mesh.axes.size(); ++i) {
    out += (i ? "," : "") + std::string("{\"name\":") + quote(mesh.axes[i].name) +
           ",\"size\":" + std::to_string(mesh.axes[i].size) + "}";
  }
  return out + "]";
}

// Size as the reference counts it: no axes give 0 (behaviour M12).
int64_t size_of(const mesh::Mesh& mesh) { return mesh.axes.empty() ? 0 : mesh.position_count(); }

}  // namespace

std::optional<mesh::Mesh> read_mesh(const Json& json, const std::string& pointer, core::Diagnostics& wrong) {
  const size_t before = wrong.list().size();
  ObjectReader reader(json, pointer, wrong);
  mesh::Mesh mesh;
  const Json* axes = reader.field("axes");
  const Json* names = reader.field("axis_names");
  const Json* devices = reader.field("devices");
  const Json* device_ids = reader.field("device_ids");
  const auto shape = reader.integers("shape", 0, mesh::kMaxPositions);
  std::vector<std::string> axis_names;
  std::vector<int64_t> nested_shape;

  if (names != nullptr) {
    if (const auto* one = names->as<std::string>()) {
      axis_names.push_back(*one);
    } else if (auto list = reader.strings("axis_names")) {
      axis_names = std::move(*list);
    }
  }
  const Json* given = devices != nullptr ? devices : device_ids;
  const std::string given_pointer = reader.pointer(devices != nullptr ? "devices" : "device_ids");
  if (given != nullptr) flatten_devices(*given, 0, nested_shape, mesh.device_ids, given_pointer, wrong);
  if (axes != nullptr) {
    read_axes(*axes, reader.pointer("axes"), mesh, wrong);
    std::vector<std::string> listed;
    for (const mesh::Axis& axis : mesh.axes) listed.push_back(axis.name);
    if (names != nullptr && listed != axis_names) wrong.add(reader.pointer("axis_names"), "disagrees with axes");
    std::vector<int64_t> sizes;
    for (const mesh::Axis& axis : mesh.axes) sizes.push_back(axis.size);
    if (shape && *shape != sizes) wrong.add(reader.pointer("shape"), "disagrees with axes");
  } else if (names == nullptr) {
    reader.missing("axis_names");
  } else {
    std::vector<int64_t> sizes = shape.value_or(nested_shape);
    if (given == nullptr && !shape) reader.missing("devices");
    if (sizes.size() != axis_names.size()) {
      wrong.add(reader.pointer("devices"), "devices.ndim == " + std::to_string(sizes.size()) +
                                               " and len(axis_names) == " + std::to_string(axis_names.size()) +
                                               " differ: every dimension of devices needs a name");
      sizes.resize(axis_names.size(), 1);
    }
    for (size_t i = 0; i < axis_names.size(); ++i) mesh.axes.push_back({axis_names[i], sizes[i]});
  }
  const auto place = [](const std::string& list, size_t i) { return list + "/" + std::to_string(i); };
  const bool has_axes = axes != nullptr;
  const std::string names_pointer = reader.pointer(has_axes ? "axes" : "axis_names");
  const std::string sizes_pointer = has_axes ? names_pointer : shape ? reader.pointer("shape") : given_pointer;
  check_axes(
      mesh, [&](size_t i) { return place(names_pointer, i) + (has_axes ? "/name" : ""); },
      [&](size_t i) {
        return has_axes ? place(sizes_pointer, i) + "/size" : shape ? place(sizes_pointer, i) : sizes_pointer;
      },
      names_pointer, wrong);
  check_devices(mesh.device_ids, given_pointer, wrong);
  if (given != nullptr && wrong.list().size() == before &&
      static_cast<int64_t>(mesh.device_ids.size()) != mesh.position_count()) {
    wrong.add(given_pointer, std::to_string(mesh.device_ids.size()) + " devices for a mesh of " +
                                 std::to_string(mesh.position_count()) + " positions");
  }
  if (const auto types = reader.strings("axis_types")) {
    for (size_t i = 0; i < types->size() && has_room(wrong); ++i) {
      const auto found = std::find(std::begin(kTypeNames), std::end(kTypeNames), (*types)[i]);
      if (found == std::end(kTypeNames)) {
        wrong.add(reader.pointer("axis_types") + "/" + std::to_string(i),
                  "expected \"auto\", \"explicit\" or \"manual\"");
      } else {
        mesh.axis_types.push_back(static_cast<mesh::AxisType>(found - std::begin(kTypeNames)));
      }
    }
    if (types->size() != mesh.axes.size()) {
      wrong.add(reader.pointer("axis_types"),
                "number of axis names should match the number of axis_types: " + std::to_string(mesh.axes.size()) +
                    " and " + std::to_string(types->size()));
    }
  }
  // Read-only fields of a document that is posted back.
  static_cast<void>(reader.field("id"));
  static_cast<void>(reader.field("abstract"));
  static_cast<void>(reader.field("created"));
  const bool is_sized = wrong.list().size() == before;
  if (const auto size = reader.integer("size", 0, INT64_MAX); size && is_sized && *size != size_of(mesh))
    wrong.add(reader.pointer("size"), "disagrees with axes");
  if (const auto empty = reader.boolean("empty"); empty && is_sized && *empty != (size_of(mesh) == 0))
    wrong.add(reader.pointer("empty"), "disagrees with axes");
  if (const auto abstract = reader.boolean("is_abstract"); abstract && *abstract != mesh.device_ids.empty()) {
    wrong.add(reader.pointer("is_abstract"), "disagrees with devices");
  }
  reader.finish();
  if (wrong.list().size() != before) return std::nullopt;
  return mesh;
}

std::string mesh_document(const registry::StoredMesh& stored, const mesh::Processes& processes, int64_t as_process) {
  std::string out = mesh_document(stored);
  out.pop_back();
  return out + ",\"process\":" + std::to_string(as_process) +
         ",\"local_devices\":" + integer_list(mesh::local_devices(stored.mesh, processes, as_process)) +
         ",\"is_multi_process\":" + (mesh::is_multi_process(stored.mesh, processes, as_process) ? "true" : "false") +
         "}";
}

std::string mesh_document(const registry::StoredMesh& stored) {
  const mesh::Mesh& mesh = stored.mesh;
  std::string out = "{\"id\":" + quote(stored.id) + ",\"axes\":" + axes_json(mesh) + ",\"shape\":[";
  for (size_t i = 0; i < mesh.axes.size(); ++i) out += (i ? "," : "") + std::to_string(mesh.axes[i].size);
  out += "],\"size\":" + std::to_string(size_of(mesh)) + ",\"empty\":" + (size_of(mesh) == 0 ? "true" : "false");
  out += std::string(",\"is_abstract\":") + (mesh.device_ids.empty() ? "true" : "false");
  if (!mesh.device_ids.empty()) {
    out += ",\"device_ids\":" + integer_list(mesh.device_ids) +
           ",\"abstract\":" + quote(mesh::mesh_id(mesh::abstract_form(mesh)));
  }
  if (!mesh.axis_types.empty()) {
    out += ",\"axis_types\":[";
    for (size_t i = 0; i < mesh.axis_types.size(); ++i) {
      out += (i ? "," : "") + quote(kTypeNames[static_cast<size_t>(mesh.axis_types[i])]);
    }
    out += "]";
  }
  return out + ",\"created\":" + quote(core::to_rfc3339(stored.created)) + "}";
}

std::optional<jobs::NamedSpec> read_spec(const Json& json, const std::string& pointer, core::Diagnostics& wrong) {
  const size_t before = wrong.list().size();
  ObjectReader reader(json, pointer, wrong);
  jobs::NamedSpec spec;
  spec.mesh_name = reader.string("mesh").value_or("");
  const Json* list = reader.field("spec");
  if (reader.field("parts") != nullptr) {
    spec.parts = reader.integers("parts");
    for (const int64_t part : spec.parts.value_or(std::vector<int64_t>{})) {
      if (part >= 1 && part <= mesh::kMaxPositions) continue;
      wrong.add(reader.pointer("parts"), "a dimension has 1 part or more, and at most " +
                                             std::to_string(mesh::kMaxPositions) + ", got " + std::to_string(part));
    }
    if (list != nullptr) wrong.add(reader.pointer("parts"), "stands beside spec; give one or the other");
    reader.finish();
    if (wrong.list().size() != before) return std::nullopt;
    return spec;
  }
  static_cast<void>(reader.field("sdy"));
  if (list == nullptr) {
    if (reader.field("sdy") != nullptr) {
      wrong.add(reader.pointer("sdy"), "shardings as sdy text are not read from requests yet; give \"spec\"");
    } else {
      reader.missing("spec");
    }
  } else if (!list->is_array()) {
    wrong.add(reader.pointer("spec"),
              "expected a list with an entry for each dimension, got " + std::string(list->kind_name()));
  } else {
    for (size_t d = 0; d < list->size() && has_room(wrong); ++d) {
      const Json entry = list->at(d);
      const std::string place = reader.pointer("spec") + "/" + std::to_string(d);
      std::vector<std::string> axes;
      if (const auto* one = entry.as<std::string>()) {
        axes.push_back(*one);
      } else if (entry.is_array()) {
        for (size_t i = 0; i < entry.size() && has_room(wrong); ++i) {
          const Json axis = entry.at(i);
          if (const auto* name = axis.as<std::string>()) {
            axes.push_back(*name);
          } else {
            wrong.add(place + "/" + std::to_string(i),
                      "expected the name of an axis, got " + std::string(axis.kind_name()));
          }
        }
      } else if (!entry.is_null()) {
        wrong.add(place, "expected a list of axis names, got " + std::string(entry.kind_name()));
      }
      spec.dims.push_back(std::move(axes));
    }
  }
  reader.finish();
  if (wrong.list().size() != before) return std::nullopt;
  return spec;
}

jobs::NamedSpec parse_spec_query(std::string_view text) {
  jobs::NamedSpec spec;
  for (;;) {
    const size_t comma = text.find(',');
    std::string_view field = text.substr(0, comma);
    std::vector<std::string> axes;
    while (!field.empty()) {
      const size_t dot = field.find('.');
      axes.emplace_back(field.substr(0, dot));
      if (dot == std::string_view::npos) break;
      field.remove_prefix(dot + 1);
    }
    spec.dims.push_back(std::move(axes));
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
  }
  return spec;
}

sharding::TensorSharding sharding_on(const mesh::MeshRef& mesh, const jobs::NamedSpec& spec, int64_t rank) {
  sharding::TensorSharding out = sharding::fully_replicated("mesh", mesh, rank);
  // "spec=" of a scalar is one empty field.
  const size_t count = rank == 0 && spec.dims.size() == 1 && spec.dims.front().empty() ? 0 : spec.dims.size();
  if (static_cast<int64_t>(count) > rank) {
    throw core::Error("invalid_spec", "a spec of " + std::to_string(count) +
                                          " dimensions is only valid for values of rank at least " +
                                          std::to_string(count) + ", this array has rank " + std::to_string(rank));
  }
  for (size_t d = 0; d < count; ++d) {
    for (const std::string& name : spec.dims[d]) {
      const auto axis = mesh->axis_index(name);
      if (!axis) throw core::Error("invalid_spec", "axis '" + name + "' is not an axis of " + mesh::to_text(*mesh));
      out.dims[d].axes.push_back({*axis, 1, 0});
    }
  }
  sharding::verify(out, rank);
  return out;
}

std::string sharding_document(const std::optional<sharding::TensorSharding>& sharding, int64_t rank,
                              bool several_meshes) {
  std::string spec = "[";
  bool says_all = true;
  for (int64_t d = 0; d < rank; ++d) {
    spec += d ? ",[" : "[";
    if (sharding && static_cast<size_t>(d) < sharding->dims.size()) {
      const sharding::DimSharding& dim = sharding->dims[static_cast<size_t>(d)];
      says_all = says_all && !dim.open && !dim.priority;
      for (size_t a = 0; a < dim.axes.size(); ++a) {
        says_all = says_all && dim.axes[a].is_whole();
        spec += (a ? "," : "") + quote(sharding->mesh->axes[static_cast<size_t>(dim.axes[a].axis)].name);
      }
    }
    spec += "]";
  }
  spec += "]";
  if (!sharding) return "{\"spec\":" + spec + "}";
  says_all = says_all && sharding->unreduced.empty();
  std::string out = says_all ? "{\"spec\":" + spec : "{\"sdy\":" + quote(sharding::to_sdy(*sharding));
  if (several_meshes) out += ",\"mesh\":" + quote("@" + sharding->mesh_name);
  return out + "}";
}

}  // namespace meshd::api
