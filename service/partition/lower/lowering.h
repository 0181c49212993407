// Lowers @main to local ops: every op over global types becomes ops over local types, reshards and collectives. One
// object for one partition() call; one thread.
//
// Invariant: ops are lowered in program order, and when an op is lowered, each of its operands has one local value
// (env_), whose layout need not be the one that propagation found.
//
// Steps of run():
//   1. lower_arguments: each argument gets the layout that its sharding resolves to.
//   2. lower_block: for each op, a recv behind its send (channel_order.h), lower_any dispatches on how the op runs:
//      constants and structural ops: lower_structural (regions, manual computations, constraints);
//      custom calls: lower_custom_call;  collectives of the text: lower_collective;
//      ops without operands whose result may have any layout (iota): lower_made;
//      all others: lower_ruled, the algorithm above lower_ops.cpp.
//   3. lower_results: each result is resharded to its sharding.
//   4. plan_donation.
//
// Example, mesh x=2, y=4: %a 8x16 [{x}, {}] -> result [{}, {x}]. Step 1: %a is 4x16. Step 3: a reshard 4x16 -> 8x8, an
// all-to-all over x in which a device receives 64 - 32 elements.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "service/ops/shard_rules.h"
#include "service/partition/lower/builder.h"
#include "service/partition/lower/factor_choice.h"
#include "service/partition/partition.h"

namespace meshd::partition {

/// Bytes that a device receives under a choice. Of two equal ones, the choice that moves more of operands with several
/// users wins.
struct MovedBytes {
  double all = 0;
  double alone = 0;  ///< `all` without operands that have several users
  friend auto operator<=>(const MovedBytes&, const MovedBytes&) = default;
};

class Lowering {
 public:
  Lowering(const PartitionInput& input, const Views& views);
  LocalProgram run();

 private:
  /// The context of the ops being lowered.
  struct Scope {
    sharding::SubAxisSet manual =
        0;  ///< sub-axes of the manual computations around: values may vary over them, they do not shard dims
    int view = 0;
    bool inside_manual = false;
  };

  // lowering.cpp
  void lower_arguments(LocalBlock& body);
  void lower_results(const std::vector<ir::ValueId>& returned, LocalBlock& body);
  void lower_block(const ir::Region& region, const Scope& scope, std::vector<ir::ValueId>& returned);
  void lower(const ir::Op& op, const Scope& scope);
  void lower_any(const ir::Op& op, const Scope& scope);
  /// By ValueId the op that defines it, null for arguments, and how often it is used; for rules that look at them.
  void collect_definitions(const ir::Region& region);
  /// The ops that define these values.
  [[nodiscard]] std::vector<const ir::Op*> definitions_of(const std::vector<ir::ValueId>& ids) const;
  /// The sharding that propagation found for a value; nothing where it found none.
  [[nodiscard]] const std::optional<sharding::TensorSharding>& sharding_at(ir::ValueId id) const;
  /// True when an op's values are laid out over meshes with different axes: nothing propagates from one to the other.
  [[nodiscard]] bool is_between_meshes(const ir::Op& op) const;
  /// True when the value's only use is to be resharded elsewhere: by a constraint, or by what it is returned to.
  [[nodiscard]] bool is_only_passed_on(ir::ValueId id) const;
  /// Sub-axes over which a value of this sharding is yet to be summed.
  [[nodiscard]] sharding::SubAxisSet unreduced_sub_axes(const std::optional<sharding::TensorSharding>& sharding) const;
  /// The value in layout `to`. A value that has layout `to` but for sub-axes in `summed` (unreduced: it is yet to be
  /// summed over them) stays sharded along them: its shards are then the terms of the sum.
  LocalId reshard_or_sum(LocalId id, const ShardLayout& to, sharding::SubAxisSet summed, const ir::Location& location,
                         const std::string& reason);
  void lower_structural(ops::Structural kind, const ir::Op& op, const Scope& scope);

  // lower_ops.cpp
  void lower_ruled(const ir::Op& op, const ops::OpDef& def, const Scope& scope);
  /// An op without operands, computed again in every layout that a user needs: iota and its like, or a constant
  /// (`def` null).
  void lower_made(const ir::Op& op, const ops::OpDef* def, const Scope& scope);
  /// Which factors stay unsharded. The row's keeps_whole decides on the first `own`; halo_rule() added the others.
  std::vector<bool> uncut_factors(const ir::Op& op, const ops::OpDef& def, const ops::OpView& view,
                                  const sharding::FactorRule& rule, size_t own,
                                  const std::optional<ops::Combine>& combine) const;
  /// Of the candidate choices the one that communicates the fewest bytes, and these bytes. `halo`: the op fetches rows
  /// of its neighbours.
  [[nodiscard]] std::pair<FactorSubAxes, MovedBytes> least_moving(const ir::Op& op, const sharding::FactorRule& rule,
                                                                  std::span<const OpTensor> op_tensors,
                                                                  const std::vector<bool>& uncut,
                                                                  const std::optional<ops::Combine>& combine,
                                                                  std::optional<int> tied_view, const Scope& scope,
                                                                  const ops::Halo* halo) const;
  /// True when StableHLO expresses the op on its shard: its kernel needs no offsets of the shard and no meshd.*
  /// attributes.
  [[nodiscard]] bool is_plain(const LocalOp& op) const;
  /// Estimate of the bytes that a device receives under a choice: for operands, for partial results, and for results
  /// that propagation gives another layout.
  [[nodiscard]] MovedBytes moved_bytes(const ir::Op& op, const sharding::FactorRule& rule,
                                       std::span<const OpTensor> op_tensors, const FactorSubAxes& choice,
                                       const Scope& scope, const ops::Halo* halo) const;
  void reshard_returned(ir::ValueId id);
  void lower_whole(const ir::Op& op, const ops::OpDef& def, const Scope& scope);
  /// The op on local types; its results vary over `partial` too.
  void emit(const ir::Op& op, const ops::OpDef& def, std::vector<LocalId> operands,
            const std::vector<ShardLayout>& result_layouts, sharding::SubAxisSet partial);

  // lower_partial.cpp
  /// Lowers the op by its row's per-shard lowering (OpDef::on_shard); false where the row has none for this choice.
  bool emit_on_shard(const ir::Op& op, const ops::OpDef& def, const std::vector<LocalId>& operands,
                     const std::vector<ShardLayout>& result_layouts, sharding::SubAxisSet partial);
  /// True when a start value must count on one shard only: the reducer is not idempotent, and the value is not known to
  /// be its identity.
  [[nodiscard]] bool begins_once(const ops::Combine& combine, size_t result, LocalId start) const;
  /// Start values of partial results: the first shard begins with the op's, the others with the identity.
  void begin_once(const ir::Op& op, const ops::Combine& combine, sharding::SubAxisSet partial, int view,
                  std::vector<LocalId>& operands);
  /// All-reduces the op's partial results over `partial`.
  void combine_partials(const ir::Op& op, const ops::Combine& combine, sharding::SubAxisSet partial,
                        const Scope& scope);

  // lower_halo.cpp
  /// The ways in which the op may read its neighbours' rows (OpDef::halo); none where a tensor has no elements.
  [[nodiscard]] static std::vector<ops::Halo> halos_of(const ops::OpDef& def, const ops::OpView& view);
  /// Drops the reads where the fill value beyond the operand would change a result. False where none is left, where the
  /// rows are too far apart or too many to count, or where plain ops are wanted and the op needs its kernel.
  [[nodiscard]] bool keep_fetchable(ops::Halo& halo, const ir::Op& op,
                                    const std::optional<ops::Combine>& combine) const;
  /// The halo exchanges, then the op on the fetched rows. `operands` have the layouts of fetched_from().
  void emit_fetching(const ops::Halo& halo, const ir::Op& op, const ops::OpDef& def, const ops::OpView& view,
                     std::vector<LocalId> operands, const std::vector<ShardLayout>& result_layouts,
                     sharding::SubAxisSet partial);
  /// A halo exchange whose result is `made`.
  void append_halo(std::vector<LocalId> operands, std::vector<std::vector<HaloDim>> halos, LocalId made,
                   const ir::Location& location, const std::string& reason);

  // lower_regions.cpp
  void lower_while(const ir::Op& op, const Scope& scope);
  void define_arguments(const ir::Region& region, const std::vector<LocalId>& values);
  void lower_case(const ir::Op& op, const Scope& scope);
  void lower_manual(const ir::Op& op, const Scope& scope);
  void lower_inline_region(const ir::Op& op, const Scope& scope);

  // lower_collectives.cpp
  void lower_collective(const ir::Op& op, const ops::OpDef& def, const Scope& scope);
  /// Layouts of a collective's operands and then results, sharded only by sub-axes on which all members of a group
  /// agree. `mixed`: the others.
  std::vector<ShardLayout> collective_layouts(const ir::Op& op, const ops::OpDef& def, const ops::OpView& view,
                                              sharding::SubAxisSet mixed, const Scope& scope) const;
  void lower_position(const ir::Op& op, const Scope& scope, bool partition);

  // lower_effects.cpp
  void lower_custom_call(const ir::Op& op, const Scope& scope);
  void lower_effect(const ir::Op& op, const Scope& scope);
  void append_effect(const ir::Op& op, EffectPoint point, std::span<const int> value_operands,
                     std::span<const int> value_results, const Scope& scope);

  // lower_host_transfers.cpp
  void lower_host_transfer(const ir::Op& op, const Scope& scope);
  void lower_pair(const ir::Op& recv, const Scope& scope);

  [[nodiscard]] LocalId local(ir::ValueId id) const { return env_[static_cast<size_t>(id)]; }
  void define(ir::ValueId id, LocalId local) { env_[static_cast<size_t>(id)] = local; }
  [[nodiscard]] bool is_token(ir::ValueId id) const { return module_main_.type_of(id).is_token(); }
  /// The layout that propagation found for a value, without the manual sub-axes; replicated where it found none.
  [[nodiscard]] ShardLayout wanted(ir::ValueId id, const Scope& scope) const;
  [[nodiscard]] bool has_sharding(ir::ValueId id) const {
    const auto number = static_cast<size_t>(id);
    return number < input_.value_shardings.size() && input_.value_shardings[number].has_value();
  }
  /// The value replicated: in the scope's view, or in its own where it varies over manual axes or is partial.
  LocalId reshard_to_replicated(ir::ValueId id, const Scope& scope, const ir::Location& location,
                                const std::string& reason);
  [[nodiscard]] std::vector<ir::Type> types_of(const std::vector<ir::ValueId>& ids) const;

  const PartitionInput& input_;
  const Views& views_;
  const ir::Function& module_main_;
  Builder builder_;
  std::vector<LocalId> env_;
  std::vector<const ir::Op*> definitions_;
  std::vector<int> use_counts_;
  std::vector<const ir::Op*> last_users_;
  /// A value that @main returns, and the result's layout. It is resharded as soon as it is defined, so that later
  /// reshards can read the copy.
  struct Returned {
    ir::ValueId value;
    ShardLayout layout;
    std::string reason;
  };
  std::vector<Returned> returned_;
  std::map<int64_t, std::deque<const ir::Op*>> sent_;  ///< sends of the block whose recv is not lowered yet, by channel
};

}  // namespace meshd::partition
