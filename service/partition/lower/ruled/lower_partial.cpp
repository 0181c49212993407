#include "service/partition/lower/ruled/lower_partial.h"

#include <limits>

#include "service/core/error.h"
#include "service/partition/lower/builder/local_ops.h"
#include "service/partition/lower/builder/shard_writer.h"
#include "service/partition/lower/ruled/identity.h"

namespace meshd::partition {
namespace {

/// Type in which bits of `dtype` are or-ed: itself for booleans and integers, else the unsigned integer as wide as an
/// element or as a part of a complex one.
tensor::DType bits_dtype(tensor::DType dtype) {
  if (dtype == tensor::DType::kBool || tensor::is_integer(dtype)) return dtype;
  const int64_t bytes = tensor::size_bytes(dtype) / (tensor::is_complex(dtype) ? 2 : 1);
  switch (bytes) {
    case 1:
      return tensor::DType::kUint8;
    case 2:
      return tensor::DType::kUint16;
    case 4:
      return tensor::DType::kUint32;
    case 8:
      return tensor::DType::kUint64;
    default:
      throw core::Error("internal", "no integer has the bits of " + std::string(tensor::name(dtype)));
  }
}

// The layout of a reduce-scatter whose parts have a way to `to` that is not longer than that of the whole sum: `layout`
// with the sub-axes of `partial` that `to` has behind those of one dimension; `layout` where there is none.
ShardLayout scattered_towards(const sharding::MeshView& view, const tensor::Dims& dims, const ShardLayout& layout,
                              const ShardLayout& to, sharding::SubAxisSet partial) {
  const std::vector<int> kept = list_of(partial & to.mask());
  const double from_sum = lacking_elements(view, dims, layout, to);
  ShardLayout best = layout;
  double least = std::numeric_limits<double>::infinity();
  for (size_t d = 0; d < dims.size(); ++d) {
    ShardLayout parts = layout;
    parts.dims[d].insert(parts.dims[d].end(), kept.begin(), kept.end());
    const double lacking = lacking_elements(view, dims, parts, to);
    if (dims[d] % sharding::part_count(view, parts.dims[d]) != 0 || lacking > from_sum || lacking >= least) continue;
    least = lacking;
    best = std::move(parts);
  }
  return best;
}

}  // namespace

bool begins_once(const LoweringContext& context, const ops::Combine& combine, size_t result, LocalId start) {
  if (is_idempotent(combine.ops[result])) return false;
  const ir::DenseAttr* constant = constant_of(context.builder, start);
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
    const ShardLayout layout = builder.layout(before);
    const LocalId after = all_reduce(builder, before,
                                     {.reduced = partial,
                                      .op = combine.ops[i],
                                      .dtype = combine.is_pick ? bits_dtype(dtype) : dtype,
                                      .name = context.name(op.results[i]),
                                      .location = op.location,
                                      .reason = "sharded reduction of " + op.name});
    context.define(op.results[i], after);
    // Users of parts of a sum get a reduce-scatter; others reshard from there.
    const sharding::MeshView& view = builder.view(layout.view);
    ShardLayout to = wanted_by_reader(context, op.results[i], scope);
    if (to.view != layout.view || (to.mask() & partial) == 0) continue;
    const tensor::Dims& dims = context.main.type_of(op.results[i]).dims();
    if (lacking_elements(view, dims, layout, to) > 0) {
      if (context.uses.counts[static_cast<size_t>(op.results[i])] != 1) continue;
      to = scattered_towards(view, dims, layout, to, partial);
      if (to == layout) continue;
    }
    // Who wants finer parts slices them; who wants them together has fewer to gather.
    for (std::vector<int>& sub_axes : to.dims) {
      while (!sub_axes.empty() && ((partial | layout.mask()) >> sub_axes.back() & 1) == 0) sub_axes.pop_back();
    }
    context.define(op.results[i], builder.reshard(after, to, op.location, "result of " + op.name));
    builder.sources().forget_source(context.local(op.results[i]));
  }
}

}  // namespace meshd::partition
