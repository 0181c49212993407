// Walks @main and writes each op as ops on local types. One object for one partition() call; one thread.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "service/ops/shard_rules.h"
#include "service/partition/builder.h"
#include "service/partition/factor_choice.h"
#include "service/partition/partition.h"

namespace meshd::partition {

/// What a choice moves. Of two that move as much, the one that moves more operands that others read too is better.
struct MovedBytes {
  double all = 0;
  double alone = 0;  ///< without operands that others read too
  friend auto operator<=>(const MovedBytes&, const MovedBytes&) = default;
};

class Lowering {
 public:
  Lowering(const PartitionInput& input, const Views& views);
  LocalProgram run();

 private:
  /// What is around the ops being lowered.
  struct Scope {
    sharding::SubAxisSet manual =
        0;  ///< sub-axes of the manual computations around: values may vary over them, dims are not cut by them
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
  /// What propagation found for a value; nothing where it found nothing.
  [[nodiscard]] const std::optional<sharding::TensorSharding>& sharding_at(ir::ValueId id) const;
  /// True when an op's values are laid out over meshes with different axes: nothing propagates from one to the other.
  [[nodiscard]] bool is_between_meshes(const ir::Op& op) const;
  /// True when the value's only use is to be resharded elsewhere: by a constraint, or by what it is returned to.
  [[nodiscard]] bool is_only_passed_on(ir::ValueId id) const;
  /// Sub-axes over which a value of this sharding is yet to be summed.
  [[nodiscard]] sharding::SubAxisSet unreduced_sub_axes(const std::optional<sharding::TensorSharding>& sharding) const;
  /// The value lying as `to` says, or so and cut by sub-axes that it is yet to be summed over: its parts are then what
  /// is summed.
  LocalId reshard_or_sum(LocalId id, const ShardLayout& to, sharding::SubAxisSet summed, const ir::Location& location,
                         const std::string& reason);
  void lower_structural(ops::Structural kind, const ir::Op& op, const Scope& scope);

  // lower_ops.cpp
  void lower_ruled(const ir::Op& op, const ops::OpDef& def, const Scope& scope);
  /// An op without operands, made anew wherever it is wanted: one that generates (iota), or a constant (`def` null).
  void lower_made(const ir::Op& op, const ops::OpDef* def, const Scope& scope);
  /// Of the first `own` factors the row says itself which stay whole; others were put there by partition.
  std::vector<bool> uncut_factors(const ir::Op& op, const ops::OpDef& def, const ops::OpView& view,
                                  const sharding::FactorRule& rule, size_t own,
                                  const std::optional<ops::Combine>& combine) const;
  /// Of all choices of factors worth a look, the one that moves least, and what it moves. `halo`: the op fetches rows
  /// of its neighbours.
  [[nodiscard]] std::pair<FactorSubAxes, MovedBytes> least_moving(const ir::Op& op, const sharding::FactorRule& rule,
                                                                  std::span<const OpTensor> op_tensors,
                                                                  const std::vector<bool>& uncut,
                                                                  const std::optional<ops::Combine>& combine,
                                                                  std::optional<int> tied_view, const Scope& scope,
                                                                  const ops::Halo* halo) const;
  /// True when the op means on its shard what it means in the text: no kernel that is told where its shard begins.
  [[nodiscard]] bool is_plain(const LocalOp& op) const;
  /// About how many bytes a device receives when an op is cut like that: operands, partial results, results to where
  /// they are wanted.
  [[nodiscard]] MovedBytes moved_bytes(const ir::Op& op, const sharding::FactorRule& rule,
                                       std::span<const OpTensor> op_tensors, const FactorSubAxes& choice,
                                       const Scope& scope, const ops::Halo* halo) const;
  void reshard_returned(ir::ValueId id);
  void lower_whole(const ir::Op& op, const ops::OpDef& def, const Scope& scope);
  /// The op on local types; its results vary over `partial` too.
  void emit(const ir::Op& op, const ops::OpDef& def, std::vector<LocalId> operands,
            const std::vector<ShardLayout>& result_places, sharding::SubAxisSet partial);

  // lower_partial.cpp
  /// The op as its row says it on a shard; false where the row has nothing to say.
  bool emit_on_shard(const ir::Op& op, const ops::OpDef& def, const std::vector<LocalId>& operands,
                     const std::vector<ShardLayout>& result_places, sharding::SubAxisSet partial);
  /// True when a start value must not come in more than once.
  [[nodiscard]] bool begins_once(const ops::Combine& combine, size_t result, LocalId start) const;
  /// Start values of partial results: the first shard's are the op's, the others begin with the identity.
  void begin_once(const ir::Op& op, const ops::Combine& combine, sharding::SubAxisSet partial, int view,
                  std::vector<LocalId>& operands);
  /// The op's partial results become its results.
  void combine_partials(const ir::Op& op, const ops::Combine& combine, sharding::SubAxisSet partial,
                        const Scope& scope);

  // lower_halo.cpp
  /// The ways in which the op may read its neighbours; none where it has no elements.
  [[nodiscard]] static std::vector<ops::Halo> halos_of(const ops::OpDef& def, const ops::OpView& view);
  /// Leaves the reads for which what stands beyond the rows changes no result; false where none is left, or where the
  /// op cannot be said for what is wanted.
  [[nodiscard]] bool keep_fetchable(ops::Halo& halo, const ir::Op& op,
                                    const std::optional<ops::Combine>& combine) const;
  /// The exchanges and, behind them, the op on the rows that they fetched. `operands` lie as fetched_from() says.
  void emit_fetching(const ops::Halo& halo, const ir::Op& op, const ops::OpDef& def, const ops::OpView& view,
                     std::vector<LocalId> operands, const std::vector<ShardLayout>& result_places,
                     sharding::SubAxisSet partial);
  /// An exchange that gives `made` its rows.
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
  /// How a collective's operands and results lie in axes along which its groups do not differ; `mixed`: those along
  /// which they do.
  std::vector<ShardLayout> collective_layouts(const ir::Op& op, const ops::OpDef& def, const ops::OpView& view,
                                              sharding::SubAxisSet mixed, const Scope& scope) const;
  void lower_position(const ir::Op& op, const Scope& scope, bool partition);

  // lower_effects.cpp
  void lower_custom_call(const ir::Op& op, const Scope& scope);
  void lower_effect(const ir::Op& op, const Scope& scope);
  void append_effect(const ir::Op& op, EffectPoint point, std::span<const int> value_operands,
                     std::span<const int> value_results, const Scope& scope);

  // lower_feeds.cpp
  void lower_host_transfer(const ir::Op& op, const Scope& scope);
  void lower_pair(const ir::Op& recv, const Scope& scope);

  [[nodiscard]] LocalId local(ir::ValueId id) const { return env_[static_cast<size_t>(id)]; }
  void define(ir::ValueId id, LocalId local) { env_[static_cast<size_t>(id)] = local; }
  [[nodiscard]] bool is_token(ir::ValueId id) const { return module_main_.type_of(id).is_token(); }
  /// What propagation found for a value, without the manual sub-axes; whole where it found nothing.
  [[nodiscard]] ShardLayout wanted(ir::ValueId id, const Scope& scope) const;
  [[nodiscard]] bool has_sharding(ir::ValueId id) const {
    const auto number = static_cast<size_t>(id);
    return number < input_.value_shardings.size() && input_.value_shardings[number].has_value();
  }
  /// Names the value after the text and makes it whole.
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
  /// What @main returns and where to; resharded there as soon as it is made, so that others can start from there.
  struct Returned {
    ir::ValueId value;
    ShardLayout layout;
    std::string reason;
  };
  std::vector<Returned> returned_;
  std::map<int64_t, std::deque<const ir::Op*>> sent_;  ///< sends of the block whose recv has not come yet, by channel
};

}  // namespace meshd::partition
