#include "service/partition/partition.h"

#include "service/ir/walk.h"
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

}  // namespace

LocalProgram partition(const PartitionInput& input) {
  Views views(input.device_count);
  for (const auto* list : {&input.argument_shardings, &input.result_shardings, &input.value_shardings}) {
    for (const auto& sharding : *list) {
      if (sharding) views.add(*sharding);
    }
  }
  add_meshes_of(input.module->main().body, views);
  views.finish();
  return lower_program(input, views);
}

}  // namespace meshd::partition
