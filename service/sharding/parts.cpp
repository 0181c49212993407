#include "service/sharding/parts.h"

#include <fmt/core.h>

#include <memory>

#include "service/core/checked_math.h"
#include "service/core/error.h"
#include "service/mesh/positions.h"

namespace meshd::sharding {
namespace {

// Factor by which each dimension grows from local to global.
std::vector<int64_t> scales(size_t rank, const std::vector<int64_t>& parts, const std::vector<int64_t>& local_parts) {
  if (parts.size() != rank || local_parts.size() != rank) {
    throw core::Error("invalid_spec", fmt::format("{} and local {} must have an entry for each of the {} dimensions",
                                                  to_text(parts), to_text(local_parts), rank));
  }
  std::vector<int64_t> out;
  for (size_t d = 0; d < rank; ++d) {
    if (local_parts[d] < 1 || parts[d] % local_parts[d] != 0) {
      throw core::Error("invalid_spec",
                        fmt::format("dimension {}: {} % {} != 0; the parts must divide by the local parts", d, parts[d],
                                    local_parts[d]));
    }
    out.push_back(parts[d] / local_parts[d]);
  }
  return out;
}

}  // namespace

int64_t part_total(const std::vector<int64_t>& parts) {
  const mesh::Positions positions = mesh::count_positions(parts);
  if (!positions.fault) return positions.count;
  throw core::Error("invalid_spec", fmt::format("dimension {}: {}", *positions.fault, positions.problem));
}

std::string to_text(const std::vector<int64_t>& parts) {
  std::string out = "PartitionSpec(";
  for (size_t d = 0; d < parts.size(); ++d) out += fmt::format("{}{}", d ? ", " : "", parts[d]);
  return out + ")";
}

std::string to_op_sharding(const Parts& parts) {
  if (!parts || part_total(*parts) == 1) return "{replicated}";
  std::string out = "{devices=[";
  for (size_t d = 0; d < parts->size(); ++d) out += fmt::format("{}{}", d ? "," : "", (*parts)[d]);
  out += "]";
  const int64_t total = part_total(*parts);
  if (total > kMaxListedDevices) return fmt::format("{}<=[{}]}}", out, total);
  for (int64_t device = 0; device < total; ++device) out += fmt::format("{}{}", device ? "," : "", device);
  return out + "}";
}

std::optional<int64_t> common_total(const std::vector<Parts>& specs) {
  std::optional<int64_t> total;
  bool same = true, has_scalar = false;
  std::string listed;
  for (const Parts& spec : specs) {
    if (!spec) continue;
    listed += (listed.empty() ? "" : ", ") + to_text(*spec);
    same = same && (!total || *total == part_total(*spec));
    has_scalar = has_scalar || spec->empty();
    total = part_total(*spec);
  }
  if (same) return total;
  throw core::Error("invalid_spec",
                    "all specs must have the same number of total partitions: " + listed +
                        (has_scalar ? "; a scalar has one part, say null for values that are replicated" : ""));
}

mesh::MeshRef parts_mesh(int64_t count) {
  return std::make_shared<const mesh::Mesh>(mesh::Mesh{{{"parts", count}}, {}, {}});
}

TensorSharding parts_sharding(const Parts& parts, std::string mesh_name, const mesh::MeshRef& mesh, int64_t rank) {
  TensorSharding out = fully_replicated(std::move(mesh_name), mesh, rank);
  if (!parts) return out;
  if (static_cast<int64_t>(parts->size()) != rank) {
    throw core::Error("invalid_spec",
                      fmt::format("{} has {} entries, the value has rank {}", to_text(*parts), parts->size(), rank));
  }
  if (part_total(*parts) != mesh->position_count()) {
    throw core::Error("invalid_spec", fmt::format("{} has total partitions: {}, expected {}", to_text(*parts),
                                                  part_total(*parts), mesh->position_count()));
  }
  // Devices count row-major over the parts as they do over the axes: each dimension takes the next axes.
  size_t axis = 0;
  int64_t pre = 1;  // taken of the axis so far
  for (int64_t d = 0; d < rank; ++d) {
    int64_t left = (*parts)[static_cast<size_t>(d)];
    while (left > 1) {
      const int64_t size = mesh->axes[axis].size;
      const int64_t rest = size / pre;
      const int64_t taken = left % rest == 0 ? rest : left;
      if (rest % taken != 0) {
        throw core::Error("unsupported_partition",
                          to_text(*parts) + " does not go with the axes of " + mesh::to_text(*mesh));
      }
      out.dims[static_cast<size_t>(d)].axes.push_back(
          {static_cast<int>(axis), taken == size ? 1 : pre, taken == size ? 0 : taken});
      left /= taken;
      pre *= taken;
      if (pre == size) {
        ++axis;
        pre = 1;
      }
    }
  }
  return out;
}

std::vector<int64_t> global_shape(std::span<const int64_t> local, const std::vector<int64_t>& parts,
                                  const std::vector<int64_t>& local_parts) {
  std::vector<int64_t> out = scales(local.size(), parts, local_parts);
  for (size_t d = 0; d < out.size(); ++d) out[d] = core::checked_mul(out[d], local[d]);
  return out;
}

std::vector<int64_t> local_shape(std::span<const int64_t> global, const std::vector<int64_t>& parts,
                                 const std::vector<int64_t>& local_parts) {
  std::vector<int64_t> out = scales(global.size(), parts, local_parts);
  for (size_t d = 0; d < out.size(); ++d) {
    if (global[d] % out[d] != 0) {
      throw core::Error("invalid_spec", fmt::format("dimension {}: {} % {} != 0", d, global[d], out[d]));
    }
    out[d] = global[d] / out[d];
  }
  return out;
}

}  // namespace meshd::sharding
