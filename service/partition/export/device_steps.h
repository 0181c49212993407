// Steps of the local program as ops of StableHLO on one device: what :partition prints in place of a kernel, a reshard
// or an exchange that no single op of the dialect expresses.
//
// Example, mesh x=4, y=2, f32 8x16 [{"x"}, {}], local 2x16, to [{}, {"y"}], local 8x8:
//   reshard -> all_gather along dimension 0 over x: 8x16;  dynamic_slice of 8 columns from row part(y) * 8: 8x8
#pragma once

#include <span>
#include <vector>

#include "service/partition/export/device_function.h"

namespace meshd::partition {

/// True when the op on shards is the same op of the dialect: it has no attributes that only its kernel reads, or none
/// of its values is sharded.
bool is_in_dialect(const LocalProgram& local, const LocalOp& op);
/// True when is_in_dialect() is false and the row has no per-shard lowering either: then every device runs the op on
/// replicated values and slices its shard.
bool runs_replicated(const LocalProgram& local, const LocalOp& op);

/// Writes a kOp, kConstant, kMask, kReshard, kHalo or kReduceShards into `to` and returns its results. `operands` are
/// those of the op. Throws unsupported_partition for what StableHLO cannot express.
std::vector<ir::ValueId> write_step(DeviceFunction& to, const LocalOp& op, std::span<const ir::ValueId> operands);

}  // namespace meshd::partition
