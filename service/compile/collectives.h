// What brings shards of several positions together, made when a plan is first run: on a mesh of 4,096 devices a list of
// all block copies is longer than the rest of the plan, and most such plans are only asked about.
#pragma once

#include <cstdint>
#include <vector>

#include "service/compile/plan_builder.h"

namespace meshd::compile {

/// Block copies from one layout to another. `operand` and `result` are values of the plan.
CollectiveMaker reshard_maker(LocalId operand, LocalId result);
/// Rows of other shards beside a shard's own (LocalKind::kHalo).
CollectiveMaker halo_maker(const LocalOp& op);
/// Reduction over the positions that differ in op.reduced, in ascending order. Throws when the reducer cannot be
/// compiled.
CollectiveMaker reduce_shards_maker(const PlanBuilder& builder, const LocalOp& op);
/// A collective of the text over groups of device numbers.
CollectiveMaker group_maker(const PlanBuilder& builder, const LocalOp& op);

/// If the reshard moves no byte: true, and the map from result shards to operand shards.
bool reshard_is_rename(const PlanBuilder& builder, const LocalOp& op, std::vector<int32_t>& map);

/// Shard `shard` of a value as a collective's source; the whole of it.
CollectiveSource source_of(const Plan& plan, int32_t operand, LocalId id, int64_t shard);

}  // namespace meshd::compile
