// Finds manual computations in the older notation: the ops of a block between @SPMDFullToShardShape, whose result is a
// shard, and @SPMDShardToFullShape, whose operand is one. Used by import_gspmd.h.
//
// Example, one manual computation with entry 0, body 1, 3 and 4, exit 5; the constant is copied into it:
//   0  %1 = custom_call @SPMDFullToShardShape(%0)     tensor<8xf32> -> tensor<2xf32>
//   1  %2 = sine %1
//   2  %c = constant 2.0
//   3  %3 = multiply %2, %c
//   4  %4 = custom_call @Sharding(%3)
//   5  %5 = custom_call @SPMDShardToFullShape(%4)     tensor<2xf32> -> tensor<8xf32>
#pragma once

#include <optional>
#include <vector>

#include "service/ir/program.h"
#include "service/ops/linalg/custom_calls.h"

namespace meshd::program {

/// Numbers of ops in their block, in text order.
struct ManualRegion {
  std::vector<size_t> entries;  ///< @SPMDFullToShardShape
  std::vector<size_t> body;     ///< ops that compute on shards, their annotations too
  std::vector<size_t> exits;    ///< @SPMDShardToFullShape
  std::vector<ir::Op> copied;   ///< ops on no shard that the body needs (constants and what is made of them)
};

/// What the target of a custom call is; nothing for other ops and unknown targets.
std::optional<ops::CustomCallKind> target_kind(const ir::Op& op);

/// Refuses the program at `op`. Throws unsupported_attribute.
[[noreturn]] void unsupported_manual(const ir::Op& op, std::string_view why);

/// The manual computations of a block: ops that shards connect belong to one. Throws unsupported_attribute where a body
/// reads a value that is neither a shard nor made of constants, and where the block returns a shard.
std::vector<ManualRegion> find_manual_regions(const ir::Region& block);

}  // namespace meshd::program
