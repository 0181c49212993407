// Collectives: steps whose result shards are made from shards of several positions. A collective is a list of sources
// for each result shard and one function; devices of one process share memory, so no rendezvous is needed: the step
// runs once for each distinct shard of its result. Sources on other ranks arrive as messages.
//
// Four kinds, on a mesh x=2, y=2 (positions 0 to 3 are (0,0), (0,1), (1,0), (1,1)) or x=4:
// 1. Reshard (reshard.cpp): block copies. Rows of 4x4 over (x, y) -> columns over y: four blocks for each result shard.
// 2. Halo exchange (halo.cpp): rows of neighbouring shards. x=4: part 1 reads row 1 of shard 0, both rows of shard 1
//    and row 0 of shard 2.
// 3. Reduction over shards (reduce_shards.cpp): in ascending position order, once for each distinct result.
//    {1, 2, 3} {10, 20, 30} {100, 200, 300} {1000, 2000, 3000} over x -> {101, 202, 303} {1010, 2020, 3030}.
// 4. Groups of the text, by device number. all_gather over x=4 with groups {0, 2} {3, 1}:
//    {0, 0} {1, 1} {2, 2} {3, 3} -> {0, 0, 2, 2} {3, 3, 1, 1} {0, 0, 2, 2} {3, 3, 1, 1}.
//
// A collective is built at its first run: on a mesh of 4,096 devices a list of all block copies is longer than the rest
// of the plan, and most such plans are only explained.
#pragma once

#include <cstdint>
#include <vector>

#include "service/compile/plan/plan_builder.h"

namespace meshd::compile {

/// Block copies from one layout to another. `operand` and `result` are values of the plan.
CollectiveMaker reshard_maker(LocalId operand, LocalId result);
/// Rows of a shard and of its neighbours (LocalKind::kHalo).
CollectiveMaker halo_maker(const LocalOp& op);
/// Reduction over the positions that differ in op.reduced, in ascending order. Throws when the reducer cannot be
/// compiled.
CollectiveMaker reduce_shards_maker(const PlanBuilder& builder, const LocalOp& op);
/// The sum over shards (`op`, a kReduceShards) of what `kernel` computes of the shards of `operands`: its operands are
/// those of the first position, then of the second, and so on (Fuse::summed).
CollectiveMaker sum_maker(const LocalOp& op, std::vector<LocalId> operands, ops::PreparedKernel kernel);
/// A collective of the text over groups of device numbers.
CollectiveMaker group_maker(const PlanBuilder& builder, const LocalOp& op);

/// If the reshard moves no byte: true, and the map from result shards to operand shards.
bool reshard_is_rename(const PlanBuilder& builder, const LocalOp& op, std::vector<int32_t>& map);

/// Shard `shard` of a value as a collective's source, all of it.
CollectiveSource source_of(const Plan& plan, int32_t operand, LocalId id, int64_t shard);

}  // namespace meshd::compile
