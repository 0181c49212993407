#include "service/partition/lower/lower_partial.h"

#include "service/partition/lower/identity.h"
#include "service/partition/lower/shard_writer.h"

namespace meshd::partition {

bool begins_once(const LoweringContext& context, const ops::Combine& combine, size_t result, LocalId start) {
  if (is_idempotent(combine.ops[result])) return false;
  const ir::DenseAttr* constant = context.builder.constant_of(start);
  return constant == nullptr || !is_identity(*constant, combine.ops[result]);
}

void begin_once(LoweringContext& context, const ir::Op& op, const ops::Combine& combine, sharding::SubAxisSet partial,
                int view, std::vector<LocalId>& operands) {
  for (size_t r = 0; r < combine.starts.size(); ++r) {
    if (combine.starts[r] < 0) continue;
    LocalId& start = operands[static_cast<size_t>(combine.starts[r])];
    if (!begins_once(context, combine, r, start)) continue;
    const LocalValue like = context.builder.value(start);
    ShardWriter shard(context.builder, op);
    const ir::ValueId value = shard.enter(start);
    const ir::ValueId nothing = shard.writer().constant(
        ir::splat_attr(like.type.local, *identity_element(combine.ops[r], like.type.local.dtype)));
    const ir::ValueId chosen =
        shard.writer().add("stablehlo.select", {shard.is_first(view, partial), value, nothing}, {}, like.local_type());
    start = shard.leave(chosen, like.type.logical(), like.type.layout, partial, like.name);
  }
}

void combine_partials(LoweringContext& context, const ir::Op& op, const ops::Combine& combine,
                      sharding::SubAxisSet partial, const Scope& scope) {
  Builder& builder = context.builder;
  for (size_t i = 0; i < op.results.size(); ++i) {
    const LocalId before = context.local(op.results[i]);
    const tensor::DType dtype = context.main.type_of(op.results[i]).dtype();
    LocalOp sum;
    sum.kind = LocalKind::kReduceShards;
    sum.name = "all_reduce";
    sum.reduced = partial;
    sum.location = op.location;
    sum.reason = "sharded reduction of " + op.name;
    sum.operands.push_back(before);
    const ShardLayout layout = builder.layout(before);
    const LocalId after = context.add_value(op.results[i], layout, builder.type(before).outer() & ~partial);
    sum.results.push_back(after);
    context.define(op.results[i], after);
    sum.regions.push_back(builder.reducer(combine.ops[i], combine.is_pick ? Builder::bits_dtype(dtype) : dtype));
    builder.append(std::move(sum));
    // Users of parts of a sum get a reduce-scatter; others reshard from there.
    const ShardLayout to = wanted(context, op.results[i], scope);
    if (to.view != layout.view || (to.mask() & partial) == 0) continue;
    const tensor::Dims& dims = context.main.type_of(op.results[i]).dims();
    if (lacking_elements(builder.view(layout.view), dims, layout, to) > 0) continue;
    context.define(op.results[i], builder.reshard(after, to, op.location, "result of " + op.name));
    builder.forget_source(context.local(op.results[i]));
  }
}

}  // namespace meshd::partition
