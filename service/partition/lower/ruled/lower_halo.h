// Lowers an op that reads its neighbours' rows: halo exchanges, then the op on what was fetched. halo_rule.h has the
// algorithm and the numbers.
//
// In: a halo of the op (OpDef::halo), operands resharded to fetched_from(). Out: one kHalo for each operand that is
// fetched, and the op without padding; for an op that only moves rows the exchange replaces the op.
//
// Example, mesh x=4, maximum over windows of 3, stride 1, padding 1, of 16 rows: %0 4 rows [{x}] ->
//   %1 = halo_exchange(%0)          blocks of 6 rows: part 1 holds rows 3 to 8
//   %2 = reduce_window(%1)          no padding: 4 rows [{x}]
#pragma once

#include <optional>
#include <vector>

#include "service/ops/op_def.h"
#include "service/ops/shards/shard_rules.h"
#include "service/partition/lower/context.h"

namespace meshd::partition {

/// The halos that the op's row offers (OpDef::halo), the reads of each in the order of is_read_before(); none where a
/// tensor has no elements.
std::vector<ops::Halo> halos_of(const ops::OpDef& def, const ops::OpView& view);
/// Drops the reads where the fill value beyond the operand would change a result. False where none is left, or where
/// the rows are too far apart or too many to count.
bool keep_fetchable(const LoweringContext& context, ops::Halo& halo, const ir::Op& op,
                    const std::optional<ops::Combine>& combine);
/// The halo exchanges, then the op on the fetched rows. `operands` have the layouts of fetched_from(); results vary
/// over `partial` too.
void emit_fetching(LoweringContext& context, const ops::Halo& halo, const ir::Op& op, const ops::OpDef& def,
                   const ops::OpView& view, std::vector<LocalId> operands,
                   const std::vector<ShardLayout>& result_layouts, sharding::SubAxisSet partial);

}  // namespace meshd::partition
