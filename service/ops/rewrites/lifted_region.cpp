#include "service/ops/rewrites/lifted_region.h"

#include <algorithm>
#include <span>
#include <unordered_map>

#include "service/ops/checks.h"

namespace meshd::ops {
namespace {

std::span<const ir::Op> without_return(const ir::Region& region) {
  return std::span(region.ops).first(region.ops.size() - 1);
}

bool is_constant(const ir::Op& op) { return role_of(ops::op(op.code).body) == Structural::kConstant; }

}  // namespace

bool is_pointwise(const ir::Function& function, const ir::Region& region) {
  const std::span<const ir::Op> all = without_return(region);
  return std::all_of(all.begin(), all.end(), [&](const ir::Op& op) {
    const OpInstance instance(function, op);
    return is_constant(op) || std::holds_alternative<ScalarMath>(body_of(ops::op(op.code), instance.view));
  });
}

std::vector<ir::ValueId> lifted_region(const ir::Region& region, const std::vector<ir::ValueId>& arguments,
                                       const tensor::Dims& dims, Writer& writer) {
  std::unordered_map<ir::ValueId, ir::ValueId> names;
  for (size_t i = 0; i < arguments.size(); ++i) names[region.arguments.at(i)] = arguments[i];
  const auto repeated = [&](ir::ValueId scalar) { return dims.empty() ? scalar : writer.broadcast(scalar, dims, {}); };
  const auto named = [&](const std::vector<ir::ValueId>& ids) {
    std::vector<ir::ValueId> out;
    for (const ir::ValueId id : ids) {
      if (!names.contains(id)) names[id] = repeated(id);
      out.push_back(names.at(id));
    }
    return out;
  };
  for (const ir::Op& op : without_return(region)) {
    std::vector<ir::Type> types = writer.function().types_of(op.results);
    if (!is_constant(op)) {
      for (ir::Type& type : types) type = with_dims(type, dims);
    }
    const std::vector<ir::ValueId> made = writer.create(op.name, named(op.operands), types, op.attributes);
    for (size_t i = 0; i < made.size(); ++i) names[op.results[i]] = is_constant(op) ? repeated(made[i]) : made[i];
  }
  return named(region.ops.back().operands);
}

}  // namespace meshd::ops
