#include "service/jobs/admission/parts_assignment.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>

#include "service/core/error.h"
#include "service/sharding/parts.h"

namespace meshd::jobs {
namespace {

using sharding::Parts;

bool has_parts(const std::vector<std::optional<NamedSpec>>& specs) {
  return std::any_of(specs.begin(), specs.end(), [](const auto& spec) { return spec && spec->parts; });
}

// One for each value; null and what is missing at the end are replicated.
std::vector<Parts> parts_of(const std::vector<std::optional<NamedSpec>>& specs, size_t total, const char* field) {
  if (specs.size() > total) {
    throw core::Error("invalid_spec", fmt::format("/{}: {} entries for {} values", field, specs.size(), total));
  }
  std::vector<Parts> out(total);
  for (size_t i = 0; i < specs.size(); ++i) {
    if (!specs[i]) continue;
    if (!specs[i]->parts) {
      throw core::Error("invalid_spec",
                        fmt::format("/{}/{}: names of axes and integer specs do not go together", field, i));
    }
    out[i] = specs[i]->parts;
  }
  return out;
}

// How many devices, of which how many are the process's own.
PartitionCount count_of(const JobRequest& request, std::optional<int64_t> total) {
  const mesh::Processes& processes = request.processes;
  const int64_t local = request.as_process ? processes.local_count() : processes.devices;
  PartitionCount out;
  out.count = total.value_or(1);
  if (out.count > processes.devices) {
    throw core::Error("too_few_devices", fmt::format("the program requires {} devices, only {} devices are available",
                                                     out.count, processes.devices));
  }
  if (out.count > local && out.count < processes.devices) {
    throw core::Error(
        "not_implemented",
        fmt::format("{} partitions over several processes: a program that leaves its process needs all {} devices",
                    out.count, processes.devices));
  }
  if (!request.local_num_partitions && out.count > local) {
    throw core::Error("invalid_request", fmt::format("local_num_partitions: {} partitions are more than the {} devices "
                                                     "of the process; say how many of them are local",
                                                     out.count, local));
  }
  out.local = request.local_num_partitions.value_or(out.count);
  if (out.local > local) {
    throw core::Error(
        "invalid_request",
        fmt::format("local_num_partitions: {} are more than the {} devices of the process", out.local, local));
  }
  out.devices.resize(static_cast<size_t>(out.count));
  const int64_t first = out.count <= local ? request.as_process.value_or(0) * local : 0;
  std::iota(out.devices.begin(), out.devices.end(), first);
  return out;
}

}  // namespace

bool asks_for_parts(const JobRequest& request) {
  return request.num_partitions || request.local_num_partitions || has_parts(request.in_specs) ||
         has_parts(request.out_specs);
}

DeviceAssignment assign_parts(const JobRequest& request) {
  const compile::ParsedProgram& program = *request.program;
  if (request.mesh || !request.meshes.empty()) {
    const bool is_abstract = request.mesh && request.mesh->device_ids.empty();
    throw core::Error("invalid_spec",
                      std::string("integer specs count devices by position and take no mesh, ") +
                          (is_abstract ? "least of all an abstract one" : "give specs by names beside it"));
  }
  const std::vector<Parts> in = parts_of(request.in_specs, program.arguments.size(), "in_shardings");
  const std::vector<Parts> out_parts = parts_of(request.out_specs, program.results.size(), "out_shardings");
  std::vector<Parts> all = in;
  all.insert(all.end(), out_parts.begin(), out_parts.end());
  std::optional<int64_t> total = sharding::common_total(all);
  if (request.num_partitions) total = request.num_partitions;

  // The program's own constraints decide where nothing outside does, and must agree where something does.
  const auto real = compile::real_meshes(*program.module);
  for (const ir::NamedMesh* named : real) {
    const int64_t inner = named->mesh->position_count();
    if (!total) total = inner;
    if (*total != inner) {
      throw core::Error("invalid_spec",
                        fmt::format("a constraint over {} has total partitions: {}, expected {}; make it agree with "
                                    "in_shardings, out_shardings, num_partitions and other constraints",
                                    mesh::to_sdy(*named->mesh), inner, *total));
    }
  }
  DeviceAssignment out;
  out.partitions = count_of(request, total);
  out.devices = out.partitions->devices;
  mesh::MeshRef mesh = sharding::parts_mesh(out.partitions->count);
  std::string name = "parts";
  if (real.empty()) {
    out.lower.mesh = *mesh;
  } else {
    mesh = real.front()->mesh;
    name = real.front()->name;
  }
  out.lower.device_count = out.partitions->count;
  out.lower.donate = request.donate;
  out.lower.is_unfused = request.nonfinite.is_on();
  for (size_t i = 0; i < in.size(); ++i) {
    const ir::Parameter& parameter = program.argument(i);
    const bool left_to_text = !in[i] && parameter.sharding.has_value();
    out.lower.in_shardings.push_back(
        left_to_text ? std::nullopt
                     : std::optional(sharding::parts_sharding(in[i], name, mesh, parameter.type.tensor.rank())));
  }
  for (size_t i = 0; i < out_parts.size(); ++i) {
    const ir::Parameter& parameter = program.result(i);
    const bool left_to_text = !out_parts[i] && parameter.sharding.has_value();
    out.lower.out_shardings.push_back(
        left_to_text ? std::nullopt
                     : std::optional(sharding::parts_sharding(out_parts[i], name, mesh, parameter.type.tensor.rank())));
  }
  return out;
}

}  // namespace meshd::jobs
