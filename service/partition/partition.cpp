#include "service/partition/partition.h"

#include "service/core/checked_math.h"
#include "service/ir/walk.h"
#include "service/ops/rule_views.h"
#include "service/partition/lower/builder/views.h"
#include "service/partition/lower/lowering.h"

namespace meshd::partition {
namespace {

// Manual computations may use meshes that no value's sharding does.
void add_meshes_of(const ir::Region& region, Views& views) {
  ir::walk(region, [&](const ir::Op& op) {
    for (const auto& [name, attribute] : op.attributes) {
      const auto* list = attribute.as<ir::ShardingAttr>();
      if (list == nullptr) continue;
      for (const sharding::TensorSharding& sharding : list->shardings) views.add(sharding);
    }
  });
}

// A factor may end within an axis of its dimension: the axis is split there, so that each factor can have its part.
// Example: mesh x=8, y=2, 64 rows [{y, x}] of two factors of 8: the first one has y and "x":(1)4, the second "x":(4)2.
void add_factor_ends(const sharding::FactorRule& rule, const sharding::TensorFactors& tensor,
                     sharding::TensorSharding sharding, Views& views) {
  for (size_t d = 0; d < sharding.dims.size(); ++d) {
    std::vector<sharding::AxisRef> ends;
    int64_t end = 1;
    for (const int factor : tensor[d]) {
      end = core::checked_mul(end, rule.factors[static_cast<size_t>(factor)].size);
      int64_t before = 1;
      for (const sharding::AxisRef& axis : sharding.dims[d].axes) {
        const int64_t behind = before * sharding::axis_size(axis, *sharding.mesh);
        if (before < end && end < behind && end % before == 0 && behind % end == 0)
          ends.push_back({axis.axis, axis.pre, end / before});
        before = behind;
      }
    }
    sharding.dims[d].axes = std::move(ends);
  }
  views.add(sharding);
}

// Those of ops that change one shape into another.
void add_factor_ends(const PartitionInput& input, Views& views) {
  const ir::Function& main = input.module->main();
  ir::walk(main.body, [&](const ir::Op& op) {
    if (op.operands.size() != 1 || op.results.size() != 1 || !op.regions.empty()) return;
    const ops::OpInstance instance(main, op);
    const auto rule = ops::lowering_rule_of(ops::op(op.code), instance.view);
    if (!rule) return;
    const auto add = [&](ir::ValueId id, const sharding::TensorFactors& tensor) {
      const auto number = static_cast<size_t>(id);
      if (number >= input.value_shardings.size()) return;
      const auto& sharding = input.value_shardings[number];
      if (sharding && sharding->dims.size() == tensor.size()) add_factor_ends(*rule, tensor, *sharding, views);
    };
    add(op.operands[0], rule->operands[0]);
    add(op.results[0], rule->results[0]);
  });
}

}  // namespace

LocalProgram partition(const PartitionInput& input) {
  Views views(input.device_count);
  for (const auto* list : {&input.argument_shardings, &input.result_shardings, &input.value_shardings}) {
    for (const auto& sharding : *list) {
      if (sharding) views.add(*sharding);
    }
  }
  add_meshes_of(input.module->main().body, views);
  add_factor_ends(input, views);
  views.finish();
  return lower_program(input, views);
}

}  // namespace meshd::partition
