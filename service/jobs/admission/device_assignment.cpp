#include "service/jobs/admission/device_assignment.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "service/core/error.h"
#include "service/jobs/admission/mesh_devices.h"
#include "service/jobs/admission/parts_assignment.h"
#include "service/mesh/positions.h"

namespace meshd::jobs {
namespace {

mesh::Mesh without_devices(const mesh::Mesh& mesh) { return {mesh.axes, {}, {}}; }

// Meshes that specs may name: those of the module, or the request's where the module has none.
struct Meshes {
  std::vector<std::pair<std::string, mesh::MeshRef>> named;

  [[nodiscard]] const std::pair<std::string, mesh::MeshRef>* find(const NamedSpec& spec) const {
    std::string_view wanted = spec.mesh_name;
    if (wanted.starts_with("@")) wanted.remove_prefix(1);
    for (const auto& entry : named) {
      if (!wanted.empty() ? entry.first == wanted : has_axes(*entry.second, spec)) return &entry;
    }
    return named.empty() ? nullptr : &named.front();
  }

 private:
  static bool has_axes(const mesh::Mesh& mesh, const NamedSpec& spec) {
    for (const auto& dim : spec.dims) {
      for (const std::string& axis : dim) {
        if (!mesh.axis_index(axis)) return false;
      }
    }
    return true;
  }
};

std::optional<sharding::TensorSharding> resolve(const NamedSpec& spec, const Meshes& meshes,
                                                const tensor::TensorType& type, const std::string& pointer,
                                                core::Diagnostics& wrong) {
  const auto* entry = meshes.find(spec);
  if (entry == nullptr) {
    if (std::all_of(spec.dims.begin(), spec.dims.end(), [](const auto& dim) { return dim.empty(); }))
      return std::nullopt;
    wrong.add(pointer, "there is no mesh: neither the request nor the program names one");
    return std::nullopt;
  }
  if (static_cast<int64_t>(spec.dims.size()) > type.rank()) {
    wrong.add(pointer + "/spec",
              fmt::format("a spec of {} dimensions is only valid for values of rank at least {}, this one has rank {}",
                          spec.dims.size(), spec.dims.size(), type.rank()));
    return std::nullopt;
  }
  sharding::TensorSharding out = sharding::fully_replicated(entry->first, entry->second, type.rank());
  for (size_t d = 0; d < spec.dims.size(); ++d) {
    for (const std::string& name : spec.dims[d]) {
      const auto axis = entry->second->axis_index(name);
      if (!axis) {
        wrong.add(fmt::format("{}/spec/{}", pointer, d),
                  fmt::format("axis '{}' is not an axis of {}", name, mesh::to_text(*entry->second)));
        return std::nullopt;
      }
      out.dims[d].axes.push_back({*axis, 1, 0});
    }
  }
  try {
    sharding::verify(out, type.rank());
  } catch (const core::Error& error) {
    wrong.add(pointer + "/spec", error.detail());
    return std::nullopt;
  }
  return out;
}

// A committed array's own sharding over the run's mesh, when every axis it uses is there with its size. `is_there` says
// whether the array is on the devices of a mesh.
std::optional<sharding::TensorSharding> carry_over(const sharding::TensorSharding& sharding, const Meshes& meshes,
                                                   const std::function<bool(const mesh::Mesh&)>& is_there) {
  for (const auto& [name, mesh] : meshes.named) {
    sharding::TensorSharding out = sharding::fully_replicated(name, mesh, sharding.rank());
    bool fits = is_there(*mesh);
    for (size_t d = 0; d < sharding.dims.size(); ++d) {
      for (const sharding::AxisRef& axis : sharding.dims[d].axes) {
        const mesh::Axis& from = sharding.mesh->axes[static_cast<size_t>(axis.axis)];
        const auto to = mesh->axis_index(from.name);
        fits = fits && to && mesh->axes[static_cast<size_t>(*to)].size == from.size;
        if (fits) out.dims[d].axes.push_back({*to, axis.pre, axis.size});
      }
    }
    if (fits) return out;
  }
  return std::nullopt;
}

void check_devices(const std::vector<int64_t>& devices, int64_t server_devices) {
  const auto count = static_cast<int64_t>(devices.size());
  for (const int64_t device : devices) {
    if (count > server_devices || device >= server_devices) {
      throw core::Error("too_few_devices", fmt::format("the program requires {} devices, only {} devices are available",
                                                       std::max(count, device + 1), server_devices));
    }
  }
}

void check_mesh(const JobRequest& request, const std::vector<const ir::NamedMesh*>& real, bool has_parts,
                int64_t span) {
  core::Diagnostics wrong;
  if (request.mesh && (has_parts || real.empty())) {
    // The request's mesh lists the devices; the program's meshes are made of them.
    if (const int64_t count = request.mesh->position_count(); count < span) {
      wrong.add("/mesh",
                fmt::format("the meshes of the program are over {} devices, the request's mesh has {}", span, count));
    }
  } else if (request.mesh) {
    const bool fits = std::any_of(real.begin(), real.end(),
                                  [&](const ir::NamedMesh* m) { return m->mesh->axes == request.mesh->axes; });
    if (!fits) {
      wrong.add("/mesh",
                fmt::format("the program's mesh @{} is {}, the request's is {}; a mesh beside a program with meshes "
                            "must have the same axes",
                            real.front()->name, mesh::to_text(*real.front()->mesh), mesh::to_text(*request.mesh)));
    }
  }
  for (const auto& [name, mesh] : request.meshes) {
    const auto found = std::find_if(real.begin(), real.end(), [&](const ir::NamedMesh* m) { return m->name == name; });
    if (found == real.end()) {
      wrong.add("/meshes/" + name, "the program has no mesh @" + name);
    } else if ((*found)->mesh->axes != mesh.axes) {
      wrong.add("/meshes/" + name, fmt::format("the program's mesh @{} is {}, the request's is {}", name,
                                               mesh::to_text(*(*found)->mesh), mesh::to_text(mesh)));
    }
  }
  wrong.throw_if_any("invalid_mesh");
  if (request.mesh) mesh::require_positions(*request.mesh, "/mesh");
  for (const auto& [name, mesh] : request.meshes) mesh::require_positions(mesh, "/meshes/" + name);
}

// Devices can be chosen only where nothing else fixes them.
void check_least_loaded(const JobRequest& request) {
  if (!request.least_loaded) return;
  core::Diagnostics wrong;
  const auto refuse = [&](const std::string& reason) { wrong.add("/devices", reason); };
  if (asks_for_parts(request)) refuse("integer specs count devices from 0; leave \"devices\" out");
  const auto names = [](const mesh::Mesh& mesh) { return !mesh.device_ids.empty() && !mesh.axes.empty(); };
  if (request.mesh && names(*request.mesh)) {
    refuse("the mesh names devices " + list_of(request.mesh->device_ids) +
           "; leave its devices out to have them chosen, or leave \"devices\" out");
  }
  for (const auto& [name, mesh] : request.meshes) {
    if (names(mesh))
      refuse(fmt::format("mesh @{} names devices {}; leave one of the two out", name, list_of(mesh.device_ids)));
  }
  for (size_t i = 0; i < request.arguments.size() && !request.reshard; ++i) {
    const auto* argument = std::get_if<ArrayArgument>(&request.arguments[i]);
    if (argument == nullptr || argument->slices || !argument->array->info().committed) continue;
    refuse(fmt::format(
        "argument {} is on devices {}; leave \"devices\" out to run there, or send \"reshard\": true to have it moved",
        i, list_of(devices_of(*argument->array->info().sharding.mesh))));
  }
  wrong.throw_if_any("invalid_request");
}

/// Without `server_devices` (a request that is only explained) devices outside of a mesh are not listed.
DeviceAssignment place(const JobRequest& request, std::optional<int64_t> server_devices);

}  // namespace

mesh::Mesh concrete_mesh(const mesh::Mesh& mesh, const std::vector<int64_t>& devices) {
  mesh::Mesh out = without_devices(mesh);
  for (int64_t position = 0; position < out.position_count(); ++position) {
    out.device_ids.push_back(devices[static_cast<size_t>(mesh.device_at(position))]);
  }
  return out;
}

DeviceAssignment assign_devices(const JobRequest& request, int64_t server_devices) {
  check_least_loaded(request);
  if (asks_for_parts(request)) return assign_parts(request);
  DeviceAssignment out = place(request, server_devices);
  check_devices(out.devices, server_devices);
  return out;
}

compile::LowerRequest assign_abstract(const JobRequest& request) {
  if (!asks_for_parts(request)) return place(request, std::nullopt).lower;
  JobRequest wide = request;
  wide.processes = {INT32_MAX, 1};
  return assign_parts(wide).lower;
}

namespace {

// The devices that a request or its stored arguments name, where all meshes of the program are over all devices.
std::optional<mesh::Mesh> chosen_mesh(const JobRequest& request, int64_t span) {
  std::optional<mesh::Mesh> chosen = request.mesh;
  for (const auto& [name, mesh] : request.meshes) {
    if (chosen && !mesh.device_ids.empty() && devices_of(*chosen) != mesh.device_ids) {
      core::Diagnostics wrong;
      wrong.add(
          "/meshes/" + name,
          fmt::format(
              "its devices {} are not {}, those of another mesh: device ids of all meshes of a program index one list",
              list_of(mesh.device_ids), list_of(devices_of(*chosen))));
      wrong.throw_if_any("invalid_mesh");
    }
    if (!chosen) chosen = mesh;
  }
  // Explicit devices do not move arrays that have others, unless the request reshards (behaviours A9, G38).
  if (request.mesh && !request.mesh->device_ids.empty() && !request.reshard) {
    for (size_t i = 0; i < request.arguments.size(); ++i) {
      const auto* argument = std::get_if<ArrayArgument>(&request.arguments[i]);
      if (argument == nullptr || argument->slices || !argument->array->info().committed) continue;
      const mesh::Mesh& mesh = *argument->array->info().sharding.mesh;
      if (devices_of(mesh) == request.mesh->device_ids) continue;
      throw core::Error(
          "device_mismatch",
          fmt::format("the request runs on devices {}, argument {} is on {}; send \"reshard\": true to have it moved",
                      list_of(request.mesh->device_ids), i, list_of(devices_of(mesh))));
    }
  }
  if (chosen) return chosen;
  // Devices of committed arrays, when the request names none.
  for (size_t i = 0; i < request.arguments.size(); ++i) {
    const auto* argument = std::get_if<ArrayArgument>(&request.arguments[i]);
    if (argument == nullptr || !argument->array->info().committed) continue;
    const mesh::Mesh& mesh = *argument->array->info().sharding.mesh;
    if (chosen && devices_of(*chosen) != devices_of(mesh)) {
      throw core::Error(
          "device_mismatch",
          fmt::format("arguments are on different devices: {} and, argument {}, {}; name a mesh, or move one of them",
                      list_of(devices_of(*chosen)), i, list_of(devices_of(mesh))));
    }
    if (!chosen) chosen = mesh;
  }
  const bool has_mesh = !compile::real_meshes(*request.program->module).empty();
  const auto count = chosen ? static_cast<int64_t>(devices_of(*chosen).size()) : span;
  if (has_mesh ? count != span : count < span) {
    throw core::Error("device_mismatch",
                      fmt::format("the program's mesh has {} positions, its arguments are on devices {}", span,
                                  list_of(devices_of(*chosen))));
  }
  return chosen;
}

DeviceAssignment place(const JobRequest& request, std::optional<int64_t> server_devices) {
  const ir::Module& module = *request.program->module;
  const auto real = compile::real_meshes(module);
  const int64_t span = compile::device_span(module);
  const bool has_parts = has_partial_meshes(*request.program);
  check_mesh(request, real, has_parts, span);

  DeviceAssignment out;
  std::optional<mesh::Mesh> chosen;
  std::optional<std::vector<int64_t>> named;
  if (has_parts) {
    named = named_devices(request);
  } else if ((chosen = chosen_mesh(request, span))) {
    named = devices_of(*chosen);
  }
  Meshes meshes;
  for (const ir::NamedMesh* one : real) meshes.named.emplace_back(one->name, one->mesh);
  int64_t count = 1;
  if (named) {
    out.devices = *std::move(named);
    count = static_cast<int64_t>(out.devices.size());
    if (real.empty() && chosen) {
      auto abstract = std::make_shared<const mesh::Mesh>(without_devices(*chosen));
      if (!abstract->axes.empty()) meshes.named.emplace_back("mesh", abstract);
      out.lower.mesh = *abstract;
    }
  } else {
    count = real.empty() || has_parts ? std::max({span, module.num_partitions, int64_t{1}}) : span;
    if (server_devices) {
      // Before they are listed: a text may name any number.
      if (count > *server_devices) {
        throw core::Error(
            "too_few_devices",
            fmt::format("the program requires {} devices, only {} devices are available", count, *server_devices));
      }
      out.devices.resize(static_cast<size_t>(count));
      std::iota(out.devices.begin(), out.devices.end(), int64_t{0});
    }
  }
  if (module.num_partitions > 1 && count != module.num_partitions) {
    throw core::Error("invalid_mesh", fmt::format("the program is for {} partitions, the mesh has {} devices",
                                                  module.num_partitions, count));
  }
  out.lower.device_count = count;
  out.lower.donate = request.donate;
  out.lower.is_unfused = request.nonfinite.is_on();
  if (has_parts && !out.devices.empty() && !request.reshard) check_places(request, out.devices);

  core::Diagnostics wrong;
  const auto take = [&](const std::vector<std::optional<NamedSpec>>& specs, size_t total, const char* field,
                        auto&& type_of) {
    std::vector<std::optional<sharding::TensorSharding>> list(total);
    if (specs.size() > total) {
      wrong.add(std::string("/") + field, fmt::format("{} entries for {} values", specs.size(), total));
      return list;
    }
    for (size_t i = 0; i < specs.size(); ++i) {
      if (specs[i]) list[i] = resolve(*specs[i], meshes, type_of(i), fmt::format("/{}/{}", field, i), wrong);
    }
    return list;
  };
  const compile::ParsedProgram& program = *request.program;
  out.lower.in_shardings = take(request.in_specs, program.arguments.size(), "in_shardings",
                                [&](size_t i) { return program.argument(i).type.tensor; });
  out.lower.out_shardings = take(request.out_specs, program.results.size(), "out_shardings",
                                 [&](size_t i) { return program.result(i).type.tensor; });
  wrong.throw_if_any("invalid_spec");
  for (size_t i = 0; i < request.arguments.size() && i < program.arguments.size(); ++i) {
    const auto* argument = std::get_if<ArrayArgument>(&request.arguments[i]);
    if (argument == nullptr || argument->slices || !argument->array->info().committed) continue;
    if (out.lower.in_shardings[i] || program.argument(i).sharding) continue;
    const sharding::TensorSharding& stored = argument->array->info().sharding;
    const auto is_there = [&](const mesh::Mesh& mesh) {
      return !has_parts || out.devices.empty() || is_on(*stored.mesh, mesh, out.devices);
    };
    out.lower.in_shardings[i] = carry_over(stored, meshes, is_there);
  }
  return out;
}

}  // namespace

}  // namespace meshd::jobs
