#include "service/jobs/admission/mesh_devices.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>

#include "service/core/error.h"
#include "service/tensor/shape.h"

namespace meshd::jobs {
namespace {

constexpr int64_t kOpen = -1;  // an entry of the flat list that nothing has named yet

// The flat list while it is put together.
class FlatList {
 public:
  explicit FlatList(int64_t size) : devices_(static_cast<size_t>(size), kOpen) {}

  // Entry `index` is `device`; false where it is another one already, or another entry is this device.
  bool set(int64_t index, int64_t device) {
    int64_t& entry = devices_[static_cast<size_t>(index)];
    if (entry == device) return true;
    if (entry != kOpen || std::find(devices_.begin(), devices_.end(), device) != devices_.end()) return false;
    entry = device;
    return true;
  }

  // Open entries become the devices of their number; nothing where one of these is taken.
  [[nodiscard]] std::optional<std::vector<int64_t>> filled() const {
    FlatList out = *this;
    for (size_t i = 0; i < devices_.size(); ++i) {
      const auto device = static_cast<int64_t>(i);
      if (devices_[i] == kOpen && !out.set(device, device)) return std::nullopt;
    }
    return out.devices_;
  }

  [[nodiscard]] std::vector<int64_t> open() const {
    std::vector<int64_t> out;
    for (size_t i = 0; i < devices_.size(); ++i) {
      if (devices_[i] == kOpen) out.push_back(static_cast<int64_t>(i));
    }
    return out;
  }

 private:
  std::vector<int64_t> devices_;
};

// The entries of the flat list that a mesh of the program is over, by position.
std::vector<int64_t> entries_of(const mesh::Mesh& mesh) { return devices_of(mesh); }

// A stored argument that keeps its devices; null for any other.
const arrays::Array* committed(const JobRequest& request, size_t argument) {
  const auto* found = std::get_if<ArrayArgument>(&request.arguments[argument]);
  return found == nullptr || found->slices || !found->array->info().committed ? nullptr : found->array.get();
}

// The mesh that the program's text gives an argument; null where it gives none.
const mesh::Mesh* mesh_of_argument(const compile::ParsedProgram& program, size_t argument) {
  if (argument >= program.arguments.size()) return nullptr;
  const auto& sharding = program.argument(argument).sharding;
  return sharding && sharding->mesh != nullptr && !sharding->mesh->is_empty() ? sharding->mesh.get() : nullptr;
}

std::optional<std::vector<int64_t>> from_meshes(const JobRequest& request, int64_t span) {
  const ir::Module& module = *request.program->module;
  FlatList list(span);
  core::Diagnostics wrong;
  bool is_named = false;
  for (const auto& [name, given] : request.meshes) {
    if (given.device_ids.empty()) continue;
    is_named = true;
    // Entry i of the request's list is the mesh's i-th lowest device id: a list of all devices is the flat list itself.
    std::vector<int64_t> entries = entries_of(*module.find_mesh(name)->mesh);
    std::sort(entries.begin(), entries.end());
    for (size_t i = 0; i < entries.size(); ++i) {
      if (list.set(entries[i], given.device_ids[i])) continue;
      wrong.add("/meshes/" + name,
                fmt::format("device {} for device_id {} of the program contradicts another mesh of the request: device "
                            "ids of all meshes of a program index one list of devices",
                            given.device_ids[i], entries[i]));
      break;
    }
  }
  wrong.throw_if_any("invalid_mesh");
  if (!is_named) return std::nullopt;
  std::optional<std::vector<int64_t>> out = list.filled();
  if (!out) {
    throw core::Error("invalid_mesh", "the meshes of the request name no devices for device ids " +
                                          list_of(list.open()) + " of the program; name meshes for them, too");
  }
  return out;
}

std::optional<std::vector<int64_t>> from_arguments(const JobRequest& request, int64_t span) {
  FlatList list(span);
  bool is_named = false;
  for (size_t i = 0; i < request.arguments.size() && !request.reshard; ++i) {
    const arrays::Array* array = committed(request, i);
    if (array == nullptr) continue;
    const mesh::Mesh* mesh = mesh_of_argument(*request.program, i);
    const std::vector<int64_t> has = devices_of(*array->info().sharding.mesh);
    std::vector<int64_t> entries;
    if (mesh != nullptr) {
      entries = entries_of(*mesh);
    } else if (static_cast<int64_t>(has.size()) == span) {
      for (int64_t entry = 0; entry < span; ++entry) entries.push_back(entry);
    } else {
      continue;  // on some of the devices: check_places() looks for a mesh over them
    }
    is_named = true;
    bool fits = entries.size() == has.size();
    for (size_t p = 0; p < has.size() && fits; ++p) fits = list.set(entries[p], has[p]);
    if (fits) continue;
    throw core::Error(
        "device_mismatch",
        fmt::format("argument {} is on devices {}, the program has it on its devices {}, which other arguments say "
                    "or which are not as many; name a mesh and send \"reshard\": true to have it moved",
                    i, list_of(has), list_of(entries)));
  }
  if (!is_named) return std::nullopt;
  std::optional<std::vector<int64_t>> out = list.filled();
  if (!out) {
    throw core::Error("device_mismatch", "the arguments name no devices for device ids " + list_of(list.open()) +
                                             " of the program, and some of these devices are taken; name a mesh");
  }
  return out;
}

}  // namespace

std::string list_of(const std::vector<int64_t>& devices) {
  return tensor::to_string(std::span<const int64_t>(devices));
}

std::vector<int64_t> devices_of(const mesh::Mesh& mesh) {
  if (!mesh.device_ids.empty()) return mesh.device_ids;
  std::vector<int64_t> devices(static_cast<size_t>(mesh.position_count()));
  for (size_t i = 0; i < devices.size(); ++i) devices[i] = static_cast<int64_t>(i);
  return devices;
}

bool has_partial_meshes(const compile::ParsedProgram& program) {
  const int64_t span = std::max(compile::device_span(*program.module), program.module->num_partitions);
  for (const ir::NamedMesh* named : compile::real_meshes(*program.module)) {
    if (named->mesh->position_count() != span) return true;
  }
  for (size_t i = 0; i < program.arguments.size(); ++i) {
    const mesh::Mesh* mesh = mesh_of_argument(program, i);
    if (mesh != nullptr && mesh->is_maximal()) return true;
  }
  return false;
}

std::optional<std::vector<int64_t>> named_devices(const JobRequest& request) {
  if (request.mesh) return devices_of(*request.mesh);
  // Not of mhlo.num_partitions, which may be any number.
  const int64_t span = compile::device_span(*request.program->module);
  if (!request.meshes.empty()) return from_meshes(request, span);
  return from_arguments(request, span);
}

bool is_on(const mesh::Mesh& stored, const mesh::Mesh& of_program, const std::vector<int64_t>& devices) {
  std::vector<int64_t> wanted;
  for (const int64_t entry : entries_of(of_program)) wanted.push_back(devices[static_cast<size_t>(entry)]);
  return devices_of(stored) == wanted;
}

void check_places(const JobRequest& request, const std::vector<int64_t>& devices) {
  for (size_t i = 0; i < request.arguments.size(); ++i) {
    const arrays::Array* array = committed(request, i);
    if (array == nullptr) continue;
    const mesh::Mesh& stored = *array->info().sharding.mesh;
    const mesh::Mesh* mesh = mesh_of_argument(*request.program, i);
    bool fits = false;
    if (mesh != nullptr) {
      fits = is_on(stored, *mesh, devices);
    } else {
      const auto real = compile::real_meshes(*request.program->module);
      fits = devices_of(stored) == devices || std::any_of(real.begin(), real.end(), [&](const ir::NamedMesh* named) {
               return is_on(stored, *named->mesh, devices);
             });
    }
    if (fits) continue;
    throw core::Error(
        "device_mismatch",
        fmt::format("the program runs on devices {}, argument {} is on {}{}; send \"reshard\": true to have it moved",
                    list_of(devices), i, list_of(devices_of(stored)),
                    mesh != nullptr ? ", which are not those of its mesh " + mesh::to_sdy(*mesh)
                                    : ", which are not those of a mesh of the program"));
  }
}

}  // namespace meshd::jobs
