// Lowers the collectives of the text. Where their groups are all positions that differ in some sub-axes, and every
// member gets the same result, they become reductions over shards; otherwise they stay groups of device numbers
// (kGroup).
//
// Example, mesh x=2, y=2: all_reduce with groups {0, 1} {2, 3} -> kReduceShards over y; with groups {0, 3} {1, 2} -> a
// group.
#pragma once

#include "service/partition/lower/context.h"

namespace meshd::partition {

/// Throws unsupported_partition for a collective over another mesh than its operand's.
void lower_collective(LoweringContext& context, const ir::Op& op, const Scope& scope);
/// partition_id: the position's number.
void lower_partition_id(LoweringContext& context, const ir::Op& op, const Scope& scope);
/// replica_id: 0, there is one replica.
void lower_replica_id(LoweringContext& context, const ir::Op& op, const Scope& scope);

}  // namespace meshd::partition
