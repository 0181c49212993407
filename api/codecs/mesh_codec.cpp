#include "api/codecs/mesh_codec.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <set>

#include "service/mesh/mesh_document.h"
#include "service/mesh/positions.h"

namespace meshd::api {
namespace {

const std::vector<std::string_view> kTypeNames = {"auto", "explicit", "manual"};

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
      wrong.add(pointer, fmt::format("a mesh has at most {} positions", mesh::kMaxPositions));
      return false;
    }
    ids.push_back(number->i);
    return true;
  }
  const bool first = ids.empty() && depth == shape.size();
  const auto count = static_cast<int64_t>(json.size());
  if (first) shape.push_back(count);
  if (depth >= shape.size() || shape[depth] != count) {
    wrong.add(pointer, fmt::format("devices are nested unevenly: a list of {}{}", count,
                                   depth < shape.size() ? fmt::format(" where others have {}", shape[depth])
                                                        : " where others have a device"));
    return false;
  }
  bool good = true;
  json.each([&](size_t i, const Json& inner) {
    good = flatten_devices(inner, depth + 1, shape, ids, entry_pointer(pointer, i), wrong);
    return good;
  });
  return good;
}

// Checks of axes in any notation; the pointers are those of the fields that have them.
void check_axes(const mesh::Mesh& mesh, const std::function<std::string(size_t)>& name_pointer,
                const std::function<std::string(size_t)>& size_pointer, const std::string& names_pointer,
                core::Diagnostics& wrong) {
  if (mesh.axes.size() > mesh::kMaxAxes) {
    wrong.add(names_pointer, fmt::format("a mesh has at most {} axes, got {}", mesh::kMaxAxes, mesh.axes.size()));
    return;
  }
  std::set<std::string_view> names;
  std::vector<std::string> repeated;
  for (size_t i = 0; i < mesh.axes.size() && has_room(wrong); ++i) {
    if (mesh.axes[i].name.empty()) wrong.add(name_pointer(i), "an axis name must not be empty");
    if (const size_t bytes = mesh.axes[i].name.size(); bytes > mesh::kLongestAxisName)
      wrong.add(name_pointer(i),
                fmt::format("an axis name has at most {} bytes, got {}", mesh::kLongestAxisName, bytes));
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
      wrong.add(fmt::format("{}/{}", pointer, i), fmt::format("device {} is named twice", ids[i]));
  }
}

// Size as the reference counts it: no axes give 0 (behaviour M12).
int64_t size_of(const mesh::Mesh& mesh) { return mesh.axes.empty() ? 0 : mesh.position_count(); }

}  // namespace

struct MeshInput {
  std::optional<std::vector<mesh::Axis>> axes;
  std::optional<OneOrMore<std::string>> axis_names;
  std::optional<std::vector<int64_t>> shape;
  const Json* devices = nullptr;
  const Json* device_ids = nullptr;
  std::optional<std::vector<std::string>> axis_types;
  const Json* id = nullptr;
  const Json* abstract = nullptr;
  const Json* created = nullptr;
  std::optional<int64_t> size;
  std::optional<bool> empty, is_abstract;
};

template <>
Schema<mesh::Axis> make_schema() {
  return {"MeshAxis",
          {{"name", &mesh::Axis::name}, {"size", &mesh::Axis::size, {.low = 0, .high = mesh::kMaxPositions}}}};
}

template <>
Schema<MeshInput> make_schema() {
  static const Rules kDevices{.low = 0, .high = kLargestExact - 1, .like = json_type<std::vector<int64_t>>};
  return {"MeshInput",
          {{"axes", &MeshInput::axes},
           {"axis_names", &MeshInput::axis_names},
           {"shape", &MeshInput::shape, {.low = 0, .high = mesh::kMaxPositions}},
           {"devices", &MeshInput::devices, kDevices},
           {"device_ids", &MeshInput::device_ids, kDevices},
           {"axis_types", &MeshInput::axis_types, {.words = kTypeNames}},
           {"id", &MeshInput::id, {.like = json_type<std::string>}},
           {"abstract", &MeshInput::abstract, {.like = json_type<std::string>}},
           {"created", &MeshInput::created, {.like = json_type<std::string>}},
           {"size", &MeshInput::size, {.low = 0}},
           {"empty", &MeshInput::empty},
           {"is_abstract", &MeshInput::is_abstract}}};
}

template <>
Schema<MeshDocument> make_schema() {
  using Doc = MeshDocument;
  static constexpr double kMost = kLargestExact - 1;
  return {"Mesh",
          {{"id", [](const Doc& doc) -> std::string_view { return doc.stored.id; }},
           {"axes", [](const Doc& doc) -> std::span<const mesh::Axis> { return doc.stored.mesh.axes; }},
           {"shape",
            [](const Doc& doc) { return mesh::sizes_of(doc.stored.mesh); },
            {.low = 0, .high = mesh::kMaxPositions}},
           {"size", [](const Doc& doc) { return size_of(doc.stored.mesh); }, {.low = 0}},
           {"empty", [](const Doc& doc) { return size_of(doc.stored.mesh) == 0; }},
           {"is_abstract", [](const Doc& doc) { return doc.stored.mesh.device_ids.empty(); }},
           {"device_ids",
            [](const Doc& doc) {
              const auto& ids = doc.stored.mesh.device_ids;
              return ids.empty() ? std::nullopt : std::optional(std::span<const int64_t>(ids));
            },
            {.low = 0, .high = kMost}},
           {"abstract",
            [](const Doc& doc) {
              const mesh::Mesh& mesh = doc.stored.mesh;
              return mesh.device_ids.empty() ? std::nullopt : std::optional(mesh::mesh_id(mesh::abstract_form(mesh)));
            }},
           {"axis_types",
            [](const Doc& doc) -> std::optional<std::vector<std::string_view>> {
              if (doc.stored.mesh.axis_types.empty()) return std::nullopt;
              std::vector<std::string_view> names;
              for (const mesh::AxisType type : doc.stored.mesh.axis_types)
                names.push_back(kTypeNames[static_cast<size_t>(type)]);
              return names;
            },
            {.words = kTypeNames}},
           {"created", [](const Doc& doc) { return doc.stored.created; }},
           {"process",
            [](const Doc& doc) { return doc.processes ? std::optional(doc.as_process) : std::nullopt; },
            {.low = 0}},
           {"local_devices",
            [](const Doc& doc) {
              return doc.processes ? std::optional(mesh::local_devices(doc.stored.mesh, *doc.processes, doc.as_process))
                                   : std::nullopt;
            },
            {.low = 0, .high = kMost}},
           {"is_multi_process", [](const Doc& doc) {
              return doc.processes
                         ? std::optional(mesh::is_multi_process(doc.stored.mesh, *doc.processes, doc.as_process))
                         : std::nullopt;
            }}}};
}

std::optional<mesh::Mesh> read_mesh(const Json& json, const std::string& pointer, core::Diagnostics& wrong) {
  const size_t before = wrong.list().size();
  const auto in = read_json<MeshInput>(json, pointer, wrong);
  if (wrong.list().size() != before) return std::nullopt;
  const auto at = [&](std::string_view name) { return pointer + "/" + std::string(name); };
  mesh::Mesh mesh;
  std::vector<int64_t> nested_shape;
  const Json* given = in.devices != nullptr ? in.devices : in.device_ids;
  const std::string given_pointer = at(in.devices != nullptr ? "devices" : "device_ids");
  const bool has_axes = in.axes.has_value();
  const auto& shape = in.shape;
  if (given != nullptr) flatten_devices(*given, 0, nested_shape, mesh.device_ids, given_pointer, wrong);
  if (has_axes) {
    mesh.axes = *in.axes;
    std::vector<std::string> listed;
    for (const mesh::Axis& axis : mesh.axes) listed.push_back(axis.name);
    if (in.axis_names && listed != in.axis_names->values) wrong.add(at("axis_names"), "disagrees with axes");
    if (shape && *shape != mesh::sizes_of(mesh)) wrong.add(at("shape"), "disagrees with axes");
  } else if (!in.axis_names) {
    wrong.add(at("axis_names"), "is missing");
  } else {
    const std::vector<std::string>& names = in.axis_names->values;
    std::vector<int64_t> sizes = shape.value_or(nested_shape);
    if (given == nullptr && !shape) wrong.add(at("devices"), "is missing");
    if (sizes.size() != names.size()) {
      wrong.add(
          at("devices"),
          fmt::format("devices.ndim == {} and len(axis_names) == {} differ: every dimension of devices needs a name",
                      sizes.size(), names.size()));
      sizes.resize(names.size(), 1);
    }
    for (size_t i = 0; i < names.size(); ++i) mesh.axes.push_back({names[i], sizes[i]});
  }
  const std::string names_pointer = at(has_axes ? "axes" : "axis_names");
  const std::string sizes_pointer = has_axes ? names_pointer : shape ? at("shape") : given_pointer;
  check_axes(
      mesh, [&](size_t i) { return entry_pointer(names_pointer, i) + (has_axes ? "/name" : ""); },
      [&](size_t i) {
        return has_axes ? entry_pointer(sizes_pointer, i) + "/size"
               : shape  ? entry_pointer(sizes_pointer, i)
                        : sizes_pointer;
      },
      names_pointer, wrong);
  check_devices(mesh.device_ids, given_pointer, wrong);
  if (given != nullptr && wrong.list().size() == before &&
      static_cast<int64_t>(mesh.device_ids.size()) != mesh.position_count()) {
    wrong.add(given_pointer,
              fmt::format("{} devices for a mesh of {} positions", mesh.device_ids.size(), mesh.position_count()));
  }
  if (in.axis_types) {
    for (const std::string& type : *in.axis_types) {
      mesh.axis_types.push_back(
          static_cast<mesh::AxisType>(std::find(kTypeNames.begin(), kTypeNames.end(), type) - kTypeNames.begin()));
    }
    if (mesh.axis_types.size() != mesh.axes.size()) {
      wrong.add(at("axis_types"), fmt::format("number of axis names should match the number of axis_types: {} and {}",
                                              mesh.axes.size(), mesh.axis_types.size()));
    }
  }
  // Read-only fields of a document that is posted back.
  const bool is_sized = wrong.list().size() == before;
  if (in.size && is_sized && *in.size != size_of(mesh)) wrong.add(at("size"), "disagrees with axes");
  if (in.empty && is_sized && *in.empty != (size_of(mesh) == 0)) wrong.add(at("empty"), "disagrees with axes");
  if (in.is_abstract && *in.is_abstract != mesh.device_ids.empty())
    wrong.add(at("is_abstract"), "disagrees with devices");
  if (wrong.list().size() != before) return std::nullopt;
  return mesh;
}

bool JsonCodec<PartitionSpec>::read(const Json& json, const Place& place, PartitionSpec& out) {
  const size_t before = place.wrong.list().size();
  if (!json.is_array()) {
    place.wrong.add(place.pointer,
                    fmt::format("expected a list with an entry for each dimension, got {}", json.kind_name()));
    return false;
  }
  json.each([&](size_t d, const Json& entry) {
    std::vector<std::string>& axes = out.dims.emplace_back();
    const std::string pointer = entry_pointer(place.pointer, d);
    if (const auto* one = entry.as<std::string>()) {
      axes.push_back(*one);
    } else if (entry.is_array()) {
      entry.each([&](size_t i, const Json& axis) {
        if (const auto* name = axis.as<std::string>()) {
          axes.push_back(*name);
        } else {
          place.wrong.add(entry_pointer(pointer, i),
                          fmt::format("expected the name of an axis, got {}", axis.kind_name()));
        }
        return has_room(place.wrong);
      });
    } else if (!entry.is_null()) {
      place.wrong.add(pointer, fmt::format("expected a list of axis names, got {}", entry.kind_name()));
    }
    return has_room(place.wrong);
  });
  return place.wrong.list().size() == before;
}

template <>
Schema<ShardingInput> make_schema() {
  return {"ShardingInput",
          {{"spec", &ShardingInput::spec},
           {"parts", &ShardingInput::parts, {.low = 1, .high = mesh::kMaxPositions}},
           {"mesh", &ShardingInput::mesh},
           {"sdy", &ShardingInput::sdy, {.hidden = true}}}};
}

template <>
Schema<ShardingDocument> make_schema() {
  return {"Sharding",
          {{"spec", &ShardingDocument::spec}, {"sdy", &ShardingDocument::sdy}, {"mesh", &ShardingDocument::mesh}}};
}

std::optional<jobs::NamedSpec> read_spec(const Json& json, const std::string& pointer, core::Diagnostics& wrong) {
  if (json.as<JsonObject>() == nullptr) {
    wrong.add(pointer,
              fmt::format(R"(expected null or an object such as {{"spec": ["x", null]}}, got {})", json.kind_name()));
    return std::nullopt;
  }
  const size_t before = wrong.list().size();
  auto in = read_json<ShardingInput>(json, pointer, wrong);
  if (in.parts && in.spec) {
    wrong.add(pointer + "/parts", "is given beside spec; give one or the other");
  } else if (json.find("parts") == nullptr && json.find("spec") == nullptr) {
    in.sdy != nullptr
        ? wrong.add(pointer + "/sdy", R"(shardings as sdy text are not read from requests yet; give "spec")")
        : wrong.add(pointer + "/spec", "is missing");
  }
  if (wrong.list().size() != before) return std::nullopt;
  return jobs::NamedSpec{in.spec ? std::move(in.spec->dims) : std::vector<std::vector<std::string>>(),
                         in.mesh.value_or(""), std::move(in.parts)};
}

jobs::NamedSpec named_spec(const std::optional<PartitionSpec>& spec) {
  jobs::NamedSpec out;
  if (spec) out.dims = spec->dims;
  return out;
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
    throw core::Error(
        "invalid_spec",
        fmt::format("a spec of {} dimensions is only valid for values of rank at least {}, this array has rank {}",
                    count, count, rank));
  }
  for (size_t d = 0; d < count; ++d) {
    for (const std::string& name : spec.dims[d]) {
      const auto axis = mesh->axis_index(name);
      if (!axis)
        throw core::Error("invalid_spec", fmt::format("axis '{}' is not an axis of {}", name, mesh::to_text(*mesh)));
      out.dims[d].axes.push_back({*axis, 1, 0});
    }
  }
  sharding::verify(out, rank);
  return out;
}

ShardingDocument sharding_document(const std::optional<sharding::TensorSharding>& sharding, int64_t rank,
                                   bool several_meshes) {
  PartitionSpec spec;
  spec.dims.resize(static_cast<size_t>(rank));
  ShardingDocument out;
  if (!sharding) {
    out.spec = std::move(spec);
    return out;
  }
  bool says_all = sharding->unreduced.empty();
  for (size_t d = 0; d < spec.dims.size() && d < sharding->dims.size(); ++d) {
    const sharding::DimSharding& dim = sharding->dims[d];
    says_all = says_all && !dim.open && !dim.priority;
    for (const auto& axis : dim.axes) {
      says_all = says_all && axis.is_whole();
      spec.dims[d].push_back(sharding->mesh->axes[static_cast<size_t>(axis.axis)].name);
    }
  }
  if (says_all) {
    out.spec = std::move(spec);
  } else {
    out.sdy = sharding::to_sdy(*sharding);
  }
  if (several_meshes) out.mesh = "@" + sharding->mesh_name;
  return out;
}

}  // namespace meshd::api
