#include "service/ops/expansions.h"

#include <unordered_map>

namespace meshd::ops {

ExpandFn expansion_of(std::string_view name) {
  static const std::unordered_map<std::string_view, ExpandFn> kByName = [] {
    std::unordered_map<std::string_view, ExpandFn> out;
    for (const std::span<const Expansion> family :
         {composed_expansions(), dynamic_expansions(), chlo_broadcast_expansions(), chlo_other_expansions()}) {
      for (const Expansion& row : family) out.emplace(row.name, row.expand);
    }
    return out;
  }();
  const auto found = kByName.find(name);
  return found == kByName.end() ? nullptr : found->second;
}

}  // namespace meshd::ops
