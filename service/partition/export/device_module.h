// The local program as StableHLO again: @main of the same global arguments around one sdy.manual_computation over all
// axes, whose body is what every device runs. For people who want to read it, and for other compilers.
#pragma once

#include "service/ir/program.h"
#include "service/partition/local_program.h"

namespace meshd::partition {

/// A module that parses and runs again with the same results. `local` was made with PartitionInput::plain_ops.
///
/// Block copies become slices, all_to_alls and all_gathers; reductions over shards become all_reduces; where a device
/// stands is asked with partition_id. Uneven arguments are padded before the manual computation, uneven results cut
/// behind it. Effects that happen once happen on partition 0. Throws unsupported_partition with a line for what cannot
/// be said that way.
ir::Module device_module(const LocalProgram& local);

}  // namespace meshd::partition
