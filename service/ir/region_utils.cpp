#include "service/ir/region_utils.h"

#include <unordered_set>

#include "service/ir/walk.h"

namespace meshd::ir {

std::vector<ValueId> used_values_defined_above(std::span<const Region* const> regions) {
  std::unordered_set<ValueId> known;
  for (const Region* region : regions) {
    known.insert(region->arguments.begin(), region->arguments.end());
    walk(*region, [&](const Op& op) {
      known.insert(op.results.begin(), op.results.end());
      for (const Region& nested : op.regions) known.insert(nested.arguments.begin(), nested.arguments.end());
    });
  }
  std::vector<ValueId> out;
  for (const Region* region : regions) {
    walk(*region, [&](const Op& op) {
      for (const ValueId id : op.operands) {
        if (known.insert(id).second) out.push_back(id);
      }
    });
  }
  return out;
}

std::vector<ValueId> used_values_defined_above(std::span<const Region> regions) {
  std::vector<const Region*> pointers;
  for (const Region& region : regions) pointers.push_back(&region);
  return used_values_defined_above(pointers);
}

}  // namespace meshd::ir
