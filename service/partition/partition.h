// The SPMD partitioner: a module over global types and a sharding for every value -> one program over local types,
// which every device runs on its shards. Pure: no data, no devices.
//
// Invariant: run on the shards of the arguments, the local program gives the shards of the results. Only the order of
// floating-point reductions may differ from that of the unsharded program.
//
// Steps, after GSPMD (Xu et al. 2021, arXiv:2105.04663):
//   1. Split the axes of all meshes into sub-axes (views.h).
//   2. Resolve every sharding to a layout, which is sub-axes for each dimension (shard_layout.h, views.h).
//   3. Lower @main op by op (lowering.h). An op with a factor rule gets sub-axes for each factor, its operands are
//      resharded to them, and a sharded reduction ends in an all-reduce (lower_ops.h has these steps). An op without
//      a rule runs on replicated operands.
//   4. Match donated arguments with results (donation.h).
//
// Example, mesh x=4, y=2: dot_general of 8x16 [{x}, {y}] and 16x32 [{y}, {x}] with result [{}, {x}] ->
//   reshard operand 0 to [{}, {y}], 2x8 -> 8x8;  dot_general 8x8 . 8x8 -> 8x8 (partial over y);  all_reduce over y.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "service/ir/program.h"
#include "service/partition/local_program.h"
#include "service/sharding/tensor_sharding.h"

namespace meshd::partition {

/// The program, its shardings and the options of one partition() call.
struct PartitionInput {
  /// A module whose @main has no calls left.
  const ir::Module* module = nullptr;
  /// By ValueId of @main; nothing: replicated.
  std::vector<std::optional<sharding::TensorSharding>> value_shardings;
  /// By number of @main's arguments and results in the text (tokens counted); nothing: replicated.
  std::vector<std::optional<sharding::TensorSharding>> argument_shardings;
  std::vector<std::optional<sharding::TensorSharding>> result_shardings;
  /// Devices of the run. Meshes of the module are over all or some of them: their device ids are below.
  int64_t device_count = 1;
  /// Token-free argument positions that the caller donates; nothing: as the module's attributes say.
  std::optional<std::vector<int64_t>> donate;
  /// Iterations of loops by their first result, where they are known.
  std::unordered_map<ir::ValueId, int64_t> trip_counts = {};
};

/// Throws invalid_program with the op's line where a rule is broken, unsupported_op / unsupported_partition with the
/// op's name where it is not implemented.
LocalProgram partition(const PartitionInput& input);

}  // namespace meshd::partition
