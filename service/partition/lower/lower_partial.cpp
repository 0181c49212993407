// Ops whose reductions are cut: what each shard does, and how partial results become results.
#include "service/partition/lower/identity.h"
#include "service/partition/lower/lowering.h"
#include "service/partition/lower/shard_writer.h"

namespace meshd::partition {

bool Lowering::begins_once(const ops::Combine& combine, size_t result, LocalId start) const {
  if (is_idempotent(combine.ops[result])) return false;
  const ir::DenseAttr* constant = builder_.constant_of(start);
  return constant == nullptr || !is_identity(*constant, combine.ops[result]);
}

bool Lowering::emit_on_shard(const ir::Op& op, const ops::OpDef& def, const std::vector<LocalId>& operands,
                             const std::vector<ShardLayout>& result_layouts, sharding::SubAxisSet partial) {
  if (def.on_shard == nullptr) return false;
  ShardWriter shard(builder_, op);
  std::vector<ir::ValueId> entered;
  std::vector<ir::Type> local_operands;
  sharding::SubAxisSet outer = partial;
  for (const LocalId id : operands) {
    entered.push_back(shard.enter(id));
    local_operands.push_back(builder_.value(id).local_type());
    outer |= builder_.type(id).varies;
  }
  const std::vector<ir::Type> operand_types = types_of(op.operands);
  const std::vector<ir::Type> result_types = types_of(op.results);
  std::vector<ShardedType> likes;
  std::vector<ir::Type> local_results;
  for (size_t i = 0; i < result_types.size(); ++i) {
    const ShardLayout& layout = result_layouts[i];
    likes.push_back(ShardedType::of(builder_.view(layout.view), result_types[i].tensor, layout));
    local_results.push_back(ir::Type::of(likes.back().local));
  }
  const ops::ShardStarts starts{
      [&](size_t operand, size_t dim) { return shard.start(builder_.type(operands[operand]), dim); },
      [&](size_t result, size_t dim) { return shard.start(likes[result], dim); },
  };
  const auto written =
      def.on_shard({operand_types, result_types, &op.attributes, op.regions, &module_main_, &op.location},
                   {local_operands, local_results, &op.attributes, op.regions, &module_main_, &op.location}, entered,
                   starts, shard.writer());
  if (!written) return false;
  for (size_t i = 0; i < op.results.size(); ++i) {
    const std::string& name = module_main_.values[static_cast<size_t>(op.results[i])].name;
    define(op.results[i], shard.leave((*written)[i], result_types[i].tensor, result_layouts[i], outer, name));
  }
  return true;
}

void Lowering::begin_once(const ir::Op& op, const ops::Combine& combine, sharding::SubAxisSet partial, int view,
                          std::vector<LocalId>& operands) {
  for (size_t r = 0; r < combine.starts.size(); ++r) {
    if (combine.starts[r] < 0) continue;
    LocalId& start = operands[static_cast<size_t>(combine.starts[r])];
    if (!begins_once(combine, r, start)) continue;
    const LocalValue like = builder_.value(start);
    ShardWriter shard(builder_, op);
    const ir::ValueId value = shard.enter(start);
    const ir::ValueId nothing =
        shard.writer().constant(like.local_type(), *identity_element(combine.ops[r], like.type.local.dtype), true);
    const ir::ValueId chosen =
        shard.writer().add("stablehlo.select", {shard.is_first(view, partial), value, nothing}, {}, like.local_type());
    start = shard.leave(chosen, like.type.logical(), like.type.layout, partial, like.name);
  }
}

void Lowering::combine_partials(const ir::Op& op, const ops::Combine& combine, sharding::SubAxisSet partial,
                                const Scope& scope) {
  for (size_t i = 0; i < op.results.size(); ++i) {
    const LocalId before = local(op.results[i]);
    const tensor::DType dtype = module_main_.type_of(op.results[i]).dtype();
    LocalOp sum;
    sum.kind = LocalKind::kReduceShards;
    sum.name = "all_reduce";
    sum.reduced = partial;
    sum.location = op.location;
    sum.reason = "cut reduction of " + op.name;
    sum.operands.push_back(before);
    const ShardLayout layout = builder_.layout(before);
    const LocalId after =
        builder_.add_value(module_main_.type_of(op.results[i]).tensor, layout, builder_.type(before).outer() & ~partial,
                           module_main_.values[static_cast<size_t>(op.results[i])].name);
    sum.results.push_back(after);
    define(op.results[i], after);
    sum.regions.push_back(builder_.reducer(combine.ops[i], combine.is_pick ? Builder::bits_dtype(dtype) : dtype));
    builder_.append(std::move(sum));
    // Who wants parts of what is summed gets the sums of those parts only; whoever wants more starts from there.
    const ShardLayout to = wanted(op.results[i], scope);
    if (to.view != layout.view || (to.mask() & partial) == 0) continue;
    const tensor::Dims& dims = module_main_.type_of(op.results[i]).dims();
    if (lacking_elements(builder_.view(layout.view), dims, layout, to) > 0) continue;
    define(op.results[i], builder_.reshard(after, to, op.location, "result of " + op.name));
    builder_.forget_source(local(op.results[i]));
  }
}

}  // namespace meshd::partition
