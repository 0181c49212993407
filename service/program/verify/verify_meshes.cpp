// Rules about the meshes of a module together. Shardy has each mesh over devices 0 to n - 1; here a mesh may be over
// any of the run's devices, so that a module may have several that overlap or are disjoint.
#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "service/ir/program.h"
#include "service/program/verify/verify.h"

namespace meshd::program {

void verify_meshes(const ir::Module& module) {
  const auto has_list = [](const ir::NamedMesh& named) {
    return !named.mesh->axes.empty() && !named.mesh->device_ids.empty();
  };
  std::set<int64_t> listed;
  int64_t counted = 0;  // the largest mesh without a list is over 0, 1, 2, ...
  for (const ir::NamedMesh& named : module.meshes) {
    if (has_list(named)) {
      listed.insert(named.mesh->device_ids.begin(), named.mesh->device_ids.end());
    } else if (!named.mesh->axes.empty()) {
      counted = std::max(counted, named.mesh->position_count());
    }
  }
  const auto beyond = static_cast<int64_t>(std::distance(listed.lower_bound(counted), listed.end()));
  const int64_t bound = std::max(counted + beyond, module.num_partitions);
  if (listed.empty() || *listed.rbegin() < bound) return;
  for (const ir::NamedMesh& named : module.meshes) {
    if (!has_list(named)) continue;
    for (const int64_t device : named.mesh->device_ids) {
      if (device < bound) continue;
      ir::fail("invalid_mesh", named.location,
               fmt::format("mesh @{} names device {}, but all meshes together have {} devices, which are 0 to {}; a "
                           "module of more devices has them in mhlo.num_partitions",
                           named.name, device, counted + beyond, counted + beyond - 1));
    }
  }
}

}  // namespace meshd::program
