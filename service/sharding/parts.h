// Integer specs, as of sharded_jit: into how many parts each dimension is sharded, parts numbered row-major over
// devices 0, 1, 2, .... Pure functions. Behaviours S1 to S25.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "service/sharding/tensor_sharding.h"

namespace meshd::sharding {

/// One entry for each dimension; nothing: replicated.
using Parts = std::optional<std::vector<int64_t>>;

/// Into how many parts altogether: the product; 1 for none. Throws invalid_spec for more than a mesh has positions.
int64_t part_total(const std::vector<int64_t>& parts);
/// PartitionSpec(2, 1)
std::string to_text(const std::vector<int64_t>& parts);
/// OpSharding as XLA writes it: {devices=[2,1]0,1}, or {replicated}; more than kMaxListedDevices are written as the
/// iota {devices=[2048,1]<=[2048]}.
inline constexpr int64_t kMaxListedDevices = 1024;
std::string to_op_sharding(const Parts& parts);

/// The one number of partitions that all specs agree on; nothing when all are replicated. Throws invalid_spec "same
/// number of total partitions", listing them.
std::optional<int64_t> common_total(const std::vector<Parts>& specs);

/// A mesh of `count` devices with one axis named "parts".
mesh::MeshRef parts_mesh(int64_t count);
/// The sharding over a mesh of as many positions as the parts together; nothing gives the replicated one. Throws
/// invalid_spec when a spec has not `rank` entries or another total, unsupported_partition when the mesh's axes cannot
/// be divided so.
TensorSharding parts_sharding(const Parts& parts, std::string mesh_name, const mesh::MeshRef& mesh, int64_t rank);

/// Global shape of what a process has `local` of: each dimension times parts / local parts (behaviour S22). Throws
/// invalid_spec naming the two that do not divide.
std::vector<int64_t> global_shape(std::span<const int64_t> local, const std::vector<int64_t>& parts,
                                  const std::vector<int64_t>& local_parts);
/// The inverse (behaviour S23).
std::vector<int64_t> local_shape(std::span<const int64_t> global, const std::vector<int64_t>& parts,
                                 const std::vector<int64_t>& local_parts);

}  // namespace meshd::sharding
