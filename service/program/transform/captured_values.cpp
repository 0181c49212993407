#include "service/program/transform/captured_values.h"

#include <iterator>
#include <span>
#include <unordered_map>
#include <utility>

#include "service/ir/region_utils.h"
#include "service/ops/op_def.h"
#include "service/ops/rewrites/writer.h"

namespace meshd::program {
namespace {

using ir::ValueId;
using ops::RegionArguments;

RegionArguments arguments_of(const ir::Op& op) { return ops::op(op.code).region_arguments; }

void insert_at(std::vector<ValueId>& values, size_t place, ValueId value) {
  values.insert(values.begin() + static_cast<std::ptrdiff_t>(place), value);
}

/// One op while scalars become its operands.
class Captures {
 public:
  Captures(ir::Function& function, ir::Op& op, std::vector<ir::Op>& before)
      : function_(function), op_(op), region_(op.regions[0]), writer_(function, before, op) {}

  /// Adds operands that hold `scalar`, and returns the region's argument that is always it.
  ValueId add(ValueId scalar) {
    const ir::Type type = function_.type_of(scalar);
    const size_t inputs = input_count();
    const auto broadcast = [&](ValueId like) { return writer_.broadcast(scalar, function_.type_of(like).dims(), {}); };
    const ValueId first = function_.add_value(type);
    std::vector<ValueId>& arguments = region_.arguments;
    switch (arguments_of(op_)) {
      case RegionArguments::kEach:
        op_.operands.push_back(broadcast(op_.operands[0]));
        arguments.push_back(first);
        return first;
      case RegionArguments::kPairs:
        op_.operands.push_back(broadcast(op_.operands[0]));
        arguments.push_back(first);
        arguments.push_back(function_.add_value(type));
        add_result(type);
        return first;
      case RegionArguments::kReduction:
        op_.operands.push_back(scalar);
        insert_at(op_.operands, inputs, broadcast(op_.operands[0]));
        break;
      case RegionArguments::kScatter:
        op_.operands.push_back(broadcast(op_.operands.back()));
        insert_at(op_.operands, inputs, broadcast(op_.operands[0]));
        break;
      case RegionArguments::kOther:
      case RegionArguments::kFixed:
        break;
    }
    insert_at(arguments, inputs, first);
    arguments.push_back(function_.add_value(type));
    region_.ops.back().operands.push_back(first);
    add_result(type);
    return first;
  }

 private:
  [[nodiscard]] size_t input_count() const { return region_.arguments.size() / 2; }

  void add_result(const ir::Type& scalar) {
    const ir::Type type = ir::Type::of({scalar.dtype(), function_.type_of(op_.results[0]).dims()});
    op_.results.push_back(function_.add_value(type));
    for (auto& [name, value] : op_.attributes) {
      auto* held = std::get_if<ir::ShardingAttr>(&value.value);
      if (held == nullptr || !held->per_value || held->shardings.empty()) continue;
      const sharding::TensorSharding& like = held->shardings[0];
      held->shardings.push_back(sharding::fully_open(like.mesh_name, like.mesh, type.rank()));
    }
  }

  ir::Function& function_;
  ir::Op& op_;
  ir::Region& region_;
  ops::Writer writer_;
};

}  // namespace

bool captures_values(const ir::Op& op) {
  return arguments_of(op) != RegionArguments::kOther && !ir::used_values_defined_above(op.regions).empty();
}

void take_captured_values(ir::Function& function, ir::Op& op, const std::function<ops::SmallValue(ValueId)>& known,
                          std::vector<ir::Op>& before) {
  std::vector<ValueId> others;
  for (const ValueId id : ir::used_values_defined_above(op.regions)) {
    const ir::Type& type = function.type_of(id);
    if (!type.is_tensor() || type.rank() != 0) return;
    if (!known(id)) others.push_back(id);
  }
  const bool is_fixed = arguments_of(op) == RegionArguments::kFixed;
  if (is_fixed && !others.empty()) return;
  for (ir::Region& region : op.regions) {
    std::vector<ir::Op> constants;
    ir::OpBuilder inside(function, ops::code_of, constants, op.location);
    std::unordered_map<ValueId, ValueId> names;
    for (const ValueId id : ir::used_values_defined_above(std::span<const ir::Region>(&region, 1))) {
      if (const ops::SmallValue bytes = known(id))
        names[id] = inside.constant(ir::splat_attr(function.type_of(id).tensor, *bytes));
    }
    for (ir::Op& each : region.ops) ir::rename_values(each, names);
    region.ops.insert(region.ops.begin(), std::make_move_iterator(constants.begin()),
                      std::make_move_iterator(constants.end()));
  }
  if (others.empty()) return;
  Captures captures(function, op, before);
  std::unordered_map<ValueId, ValueId> names;
  for (const ValueId id : others) names[id] = captures.add(id);
  for (ir::Op& each : op.regions[0].ops) ir::rename_values(each, names);
}

}  // namespace meshd::program
