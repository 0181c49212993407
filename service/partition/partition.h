// From the global program and a sharding for every value to the program that every device runs. Pure: no data, no
// devices.
//
// How an op is cut: its factor rule says which dimensions go together; each factor gets the sub-axes that most of the
// op's bytes already have; operands whose layout differs are resharded; factors that the op needs whole are not cut; a
// cut reduction factor ends in a reduction over shards, with padding masked by the identity. Ops without a rule run on
// whole values.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "service/ir/program.h"
#include "service/partition/local_program.h"
#include "service/sharding/tensor_sharding.h"

namespace meshd::partition {

/// What partition is told beside the program.
struct PartitionInput {
  /// A module whose @main has no calls left.
  const ir::Module* module = nullptr;
  /// By ValueId of @main; nothing means that nothing cuts the value.
  std::vector<std::optional<sharding::TensorSharding>> value_shardings;
  /// By number of @main's arguments and results in the text (tokens counted); nothing: whole.
  std::vector<std::optional<sharding::TensorSharding>> argument_shardings;
  std::vector<std::optional<sharding::TensorSharding>> result_shardings;
  /// Positions of the request's mesh. Meshes of the module that are neither empty nor maximal have as many.
  int64_t device_count = 1;
  /// Token-free argument positions that the caller donates; nothing: as the text says.
  std::optional<std::vector<int64_t>> donate;
  /// True: every op must mean on its shard what it means in the text (device_module): those whose kernels have to be
  /// told where their shard begins run on whole values instead.
  bool plain_ops = false;
};

/// Throws invalid_program with the op's line where a rule is broken, unsupported_op / unsupported_partition by name
/// where we do not have it.
LocalProgram partition(const PartitionInput& input);

}  // namespace meshd::partition
