// Appends an op of the text on local types: as itself, or as its row's per-shard lowering. In: local operands in the
// layouts of the choice, the layouts of the results. Out: local results, defined in the context.
#pragma once

#include <vector>

#include "service/ops/op_def.h"
#include "service/partition/lower/context.h"

namespace meshd::partition {

/// The op on local types, with OpDef::localize's attributes; its results vary over `partial` too.
/// Example, x=4: slice [0:8] of dimension 1 of 8x16 [{x}, {}] -> on 2x16, limits [8, 8] become [2, 8].
void emit_op(LoweringContext& context, const ir::Op& op, const ops::OpDef& def, std::vector<LocalId> operands,
             const std::vector<ShardLayout>& result_layouts, sharding::SubAxisSet partial);
/// Lowers the op by its row's per-shard lowering (OpDef::on_shard); false where the row has none for this choice.
bool emit_on_shard(LoweringContext& context, const ir::Op& op, const ops::OpDef& def,
                   const std::vector<LocalId>& operands, const std::vector<ShardLayout>& result_layouts,
                   sharding::SubAxisSet partial);

}  // namespace meshd::partition
