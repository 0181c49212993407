// Sharding rules beyond factors: how partial results of reductions and picks of gathers combine (OpDef::combine), and
// per-shard lowerings (OpDef::on_shard). Partition calls them.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <vector>

#include "service/ir/program.h"

namespace meshd::kernels {
enum class ScalarOp : uint8_t;
}

namespace meshd::ops {

struct OpView;
class Writer;

/// How the partial results of an op combine across shards when a reduction factor is sharded.
struct Combine {
  std::vector<kernels::ScalarOp> ops;  ///< by result, each on its own; associative, with an identity
  /// By operand: the result with whose identity its padding is filled; -1: padding does no harm (indices).
  std::vector<int> operand_results;
  /// By result: the operand that every shard would begin with (init values, a scatter's inputs), -1 where there is
  /// none. Shards but one begin with the identity.
  std::vector<int> starts;
  /// Each element comes from one shard and the others have zeros there, as OpDef::on_shard writes it: bits are or-ed,
  /// whatever the type, and nothing is masked.
  bool is_pick = false;
};

/// For an op instance; nothing where its reduction factors cannot be sharded. The view is global.
using CombineFn = std::optional<Combine> (*)(const OpView&);

/// One result that `op` puts together, of two operands whose padding is its identity (products and their sums, a window
/// and its start value).
Combine combined_by(kernels::ScalarOp op);

/// Where region 0 combines `count` accumulators with `count` values, each pair by one associative op of its own: these
/// ops. Empty where it does anything else.
std::vector<kernels::ScalarOp> combining_ops(const OpView& view, size_t count);
/// Whether that is so and each is one of `known`.
bool combines_by(const OpView& view, size_t count, std::initializer_list<kernels::ScalarOp> known);

/// Offsets of a shard: scalars of i64, the first row of the shard along a dimension; ir::kNoValue where it is not
/// sharded.
struct ShardStarts {
  std::function<ir::ValueId(size_t operand, size_t dim)> of_operand;
  std::function<ir::ValueId(size_t result, size_t dim)> of_result;
};
/// Per-shard lowering to ops over local types: returns the values that replace the results; nothing when this sharding
/// has none.
using OnShardFn = std::optional<std::vector<ir::ValueId>> (*)(const OpView& global, const OpView& local,
                                                              const std::vector<ir::ValueId>& operands,
                                                              const ShardStarts& starts, Writer& writer);

}  // namespace meshd::ops
