// How a cut op is put together again, for rows whose factors alone do not say it: partial results of several
// accumulators, picks of gathers, and what a shard does in other ops. Read by partition.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "service/ops/op_def.h"

namespace meshd::ops {

/// How the partial results of an op are put together when a reduction factor is cut, each shard having combined what it
/// holds.
struct Combine {
  std::vector<kernels::ScalarOp> ops;  ///< by result, each on its own; associative, with an identity
  /// By operand: the result with whose identity its padding is filled; -1: padding does no harm (indices).
  std::vector<int> operand_results;
  /// By result: the operand that every shard would begin with (init values, a scatter's inputs), -1 where there is
  /// none. Shards but one begin with the identity.
  std::vector<int> starts;
  /// Each element comes from one shard and the others have zeros there, as on_shard_of() writes it: bits are or-ed,
  /// whatever the type, and nothing is masked.
  bool is_pick = false;
};

/// For an op instance; nothing where its reduction factors cannot be cut. `view` is global.
std::optional<Combine> combine_of(const OpDef& def, const OpView& view);

/// Where region 0 combines `count` accumulators with `count` values, each pair by one associative op of its own: these
/// ops. Empty where it does anything else.
std::vector<kernels::ScalarOp> combining_ops(const OpView& view, size_t count);

/// Where a shard lies: scalars of i64, the first row of the shard along a dimension; ir::kNoValue where that is not
/// cut.
struct ShardStarts {
  std::function<ir::ValueId(size_t operand, size_t dim)> of_operand;
  std::function<ir::ValueId(size_t result, size_t dim)> of_result;
};
/// Writes what one shard does in ops over local types and returns the values that stand for the results; nothing when
/// it cannot be said for this cut.
using OnShardFn = std::optional<std::vector<ir::ValueId>> (*)(const OpView& global, const OpView& local,
                                                              const std::vector<ir::ValueId>& operands,
                                                              const ShardStarts& starts, Writer& writer);
/// How a cut op is said in others, where the op alone on local types would mean something else: rows counted from where
/// a shard begins, partial picks. Null: the kernel does it (KernelCall::result_offsets), or nothing has to be done.
OnShardFn on_shard_of(const OpDef& def);

}  // namespace meshd::ops
