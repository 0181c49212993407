// Chooses the sharding of an op with a factor rule: which factors stay unsharded, and the candidate that communicates
// the fewest bytes. Reads the context, changes nothing.
//
// Steps of least_moving():
//   1. The greedy choice of factor_choice.h. It wins if it communicates nothing.
//   2. other_choices() from the layouts that operands have, and from those that propagation found for them; only
//      choices that are at least as parallel. A choice that communicates fewer bytes wins.
//   3. For ops that only read their operands once (reduce, gather), less parallel choices too, and such without partial
//      results: the bytes cost more than the work.
//
// Example, mesh x=4, y=2: dot_general of 8x16 [{x}, {y}] and 16x32 [{y}, {x}], result [{}, {x}] (README.md):
//   j={x}, k={y}: operand 0 lacks 48 elements, the all-reduce receives 64: 448 bytes
//   i={x}, k={y}: 1,216 bytes
#pragma once

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "service/ops/op_def.h"
#include "service/ops/shards/shard_rules.h"
#include "service/partition/lower/context.h"
#include "service/partition/lower/ruled/factor_choice.h"

namespace meshd::partition {

/// Bytes that a device receives under a choice. Of two equal ones, the choice whose traffic has more of operands with
/// several users wins.
struct MovedBytes {
  double all = 0;
  double alone = 0;  ///< `all` without operands that have several users
  friend auto operator<=>(const MovedBytes&, const MovedBytes&) = default;
};

/// An op whose sharding is chosen.
struct ChoiceOf {
  const ir::Op& op;
  const sharding::FactorRule& rule;
  std::span<const OpTensor> op_tensors;  ///< operands, then results
  const std::vector<bool>& unsharded;    ///< factors that stay so
  const std::optional<ops::Combine>& combine;
  const ops::Halo* halo = nullptr;  ///< the op fetches rows of its neighbours
  /// The view of a manual computation around: the choice must be in it.
  std::optional<int> tied_view = std::nullopt;
};

/// Which factors stay unsharded. The row's keeps_unsharded decides on the first `own`; halo_rule() added the others.
std::vector<bool> unsharded_factors(const LoweringContext& context, const ir::Op& op, const ops::OpDef& def,
                                    const ops::OpView& view, const sharding::FactorRule& rule, size_t own,
                                    const std::optional<ops::Combine>& combine);
/// The number of parts into which a choice shards the op's work.
int64_t parallel_parts(const sharding::MeshView& view, const FactorSubAxes& choice);
/// The choice that communicates the fewest bytes, and these bytes.
std::pair<FactorSubAxes, MovedBytes> least_moving(const LoweringContext& context, const ChoiceOf& of,
                                                  const Scope& scope);
/// True when a dimension of the tensor has the factor.
bool has_factor(const sharding::TensorFactors& tensor, int factor);

}  // namespace meshd::partition
