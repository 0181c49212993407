// Communication report of a local program: every reshard and every reduction over shards, with its cause and the bytes
// that one device receives. Pure: read from the program that runs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "service/partition/local_program.h"

namespace meshd::partition {

enum class MoveKind : uint8_t {
  kAllGather,          ///< dimensions lose axes
  kAllSlice,           ///< dimensions gain axes: every device has its block already
  kAllToAll,           ///< axes go from dimension to dimension
  kCollectivePermute,  ///< every device gets one other block of the same size
  kHaloExchange,       ///< every device gets rows of its neighbours beside its own
  kReshard,            ///< anything else, blocks copied once
  kAllReduce,
  kReduceScatter,  ///< a reduction of which every device keeps its block only
  kGroup,          ///< a collective of the text
};
/// "all_gather", ...
std::string_view name(MoveKind kind);

/// LocalOp::reason of a reshard that the text writes as a collective of Shardy's.
inline constexpr std::string_view kWritten = "written in the text";

/// The end of LocalOp::reason for a reshard that propagation could not avoid: an op without a factor rule is in
/// between, or the two sides have different meshes.
inline constexpr std::string_view kUnruledEnd = ", which shardings do not pass";

/// Why it moves.
enum class MoveCause : uint8_t {
  kSharding,  ///< the shardings of an op's operands and results do not fit each other
  /// an op reads rows of its neighbours (slices, pads, windows): it fetches these rows, or replicates the dimension
  kNeighbours,
  kUnruled,  ///< an op without a factor rule, or a change of mesh, stops propagation
  kText,     ///< a collective or reshard that the text contains
};

/// One of them.
struct Move {
  MoveKind kind = MoveKind::kReshard;
  MoveCause cause = MoveCause::kSharding;
  LocalId from = 0;
  LocalId to = 0;
  sharding::SubAxisSet axes = 0;  ///< sub-axes along which devices communicate, in the view of `from`
  /// What one device that holds a full shard receives, once. all_gather: local after - before; all_to_all and
  /// reduce_scatter: local - local / n; all_reduce: 2 (local - local / n); all_slice: 0. kReshard: what the device
  /// lacks of its new shard.
  int64_t bytes = 0;
  std::string op;  ///< the text's op that caused it, "reshard" and "all_reduce" where none did
  std::string reason;
  ir::Location location;
  int loop_depth = 0;  ///< loops around; bytes are those of one iteration
};

/// In program order, blocks inside of loops and branches too. Moves of nothing (0 bytes) are there as well, views and
/// layouts that mean the same are not.
std::vector<Move> find_moves(const LocalProgram& program);

/// A value's layout as a sharding over the first mesh of its view.
sharding::TensorSharding layout_sharding(const LocalProgram& program, LocalId id);
/// A value's layout in Shardy's syntax: @mesh, [{"x"}, {"y":(1)2}]; empty where it is replicated.
std::string layout_text(const LocalProgram& program, LocalId id);
/// Sub-axes of a value's view as axes: {"x", "y":(1)2}.
std::string axes_text(const LocalProgram& program, LocalId id, sharding::SubAxisSet sub_axes);

}  // namespace meshd::partition
