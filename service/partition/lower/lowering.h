// Lowers @main to local ops: every op over global types becomes ops over local types, reshards and collectives.
//
// Steps of lower_program():
//   1. lower_arguments: each argument gets the layout that its sharding resolves to.
//   2. lower_block: for each op, a recv behind its send (channel_order.h), the stage that its ops::Body selects:
//
//      | body | stage |
//      |---|---|
//      | constants, ops without operands whose result may have any layout (iota) | lower_rematerialised, lower_ops.h |
//      | scalar math, local kernels; custom calls that are functions of their operands | lower_ruled, lower_ops.h |
//      | loops, branches, named computations | lower_regions.h |
//      | manual computations | lower_manual.h |
//      | constraints, reshards, barriers | lower_constraints.h |
//      | collectives, partition_id, replica_id | lower_collectives.h |
//      | callbacks and other custom calls | lower_effects.h |
//      | infeed, outfeed, send, recv | lower_host_transfers.h |
//
//   3. lower_results: each result is resharded to its sharding.
//   4. plan_donation.
#pragma once

#include <vector>

#include "service/ops/op_def.h"
#include "service/partition/lower/context.h"

namespace meshd::partition {

/// Throws what partition() throws.
LocalProgram lower_program(const PartitionInput& input, const Views& views);
/// The ops of a region, in the builder's current block. Returns the operands of its return. Throws invalid_program for
/// a send without a recv in the same block.
std::vector<ir::ValueId> lower_block(LoweringContext& context, const ir::Region& region, const Scope& scope);

}  // namespace meshd::partition
