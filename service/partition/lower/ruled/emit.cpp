#include "service/partition/lower/ruled/emit.h"

#include "service/partition/lower/builder/shard_writer.h"

namespace meshd::partition {

void emit_op(LoweringContext& context, const ir::Op& op, const ops::OpDef& def, std::vector<LocalId> operands,
             const std::vector<ShardLayout>& result_layouts, sharding::SubAxisSet partial) {
  Builder& builder = context.builder;
  sharding::SubAxisSet outer = partial;
  for (const LocalId operand : operands) outer |= builder.type(operand).varies;

  LocalOp made;
  made.def = &def;
  made.name = op.name;
  made.operands = operands;
  made.attributes = op.attributes;
  made.regions = op.regions;
  made.location = op.location;
  const std::vector<ir::Type> local_operands = builder.program().local_types(operands);
  for (size_t i = 0; i < op.results.size(); ++i) {
    const LocalId id = context.add_value(op.results[i], result_layouts[i], outer);
    made.results.push_back(id);
    context.define(op.results[i], id);
  }
  if (def.localize != nullptr) {
    const ops::OpInstance global(context.main, op);
    const std::vector<ir::Type> local_results = builder.program().local_types(made.results);
    made.attributes = def.localize(
        global.view, {local_operands, local_results, &op.attributes, op.regions, &context.main, &op.location});
  }
  if (ir::find(made.attributes, ops::kResultsApart) != nullptr) {
    for (size_t i = 0; i < op.results.size(); ++i) {
      LocalOp one = made;
      one.results = {made.results[i]};
      one.attributes.emplace_back(std::string(ops::kOnlyResult),
                                  ir::Attribute{ir::IntegerAttr{static_cast<int64_t>(i), "i64"}});
      builder.append(std::move(one));
    }
    return;
  }
  builder.append(std::move(made));
}

bool emit_on_shard(LoweringContext& context, const ir::Op& op, const ops::OpDef& def,
                   const std::vector<LocalId>& operands, const std::vector<ShardLayout>& result_layouts,
                   sharding::SubAxisSet partial) {
  Builder& builder = context.builder;
  if (def.on_shard == nullptr) return false;
  ShardWriter shard(builder, op);
  std::vector<ir::ValueId> entered;
  const std::vector<ir::Type> local_operands = builder.program().local_types(operands);
  sharding::SubAxisSet outer = partial;
  for (const LocalId id : operands) {
    entered.push_back(shard.enter(id));
    outer |= builder.type(id).varies;
  }
  const ops::OpInstance global(context.main, op);
  std::vector<ShardedType> likes;
  std::vector<ir::Type> local_results;
  for (size_t i = 0; i < global.results.size(); ++i) {
    const ShardLayout& layout = result_layouts[i];
    likes.push_back(ShardedType::of(builder.view(layout.view), global.results[i].tensor, layout));
    local_results.push_back(ir::Type::of(likes.back().local));
  }
  const ops::ShardStarts starts{
      [&](size_t operand, size_t dim) { return shard.start(builder.type(operands[operand]), dim); },
      [&](size_t result, size_t dim) { return shard.start(likes[result], dim); },
  };
  const auto written = def.on_shard(
      global.view, {local_operands, local_results, &op.attributes, op.regions, &context.main, &op.location}, entered,
      starts, shard.writer());
  if (!written) return false;
  for (size_t i = 0; i < op.results.size(); ++i) {
    const std::string& name = context.name(op.results[i]);
    context.define(op.results[i], shard.leave((*written)[i], global.results[i].tensor, result_layouts[i], outer, name));
  }
  return true;
}

}  // namespace meshd::partition
