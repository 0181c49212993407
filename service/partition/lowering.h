// Walks @main and writes each op as ops on local types. One object for one partition() call; one thread.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "service/partition/builder.h"
#include "service/partition/factor_choice.h"
#include "service/partition/partition.h"

namespace meshd::partition {

class Lowering {
 public:
  Lowering(const PartitionInput& input, const Views& views);
  LocalProgram run();

 private:
  /// What is around the ops being lowered.
  struct Scope {
    sharding::AtomMask manual =
        0;  ///< atoms of the manual computations around: values may vary over them, dims are not cut by them
    int view = 0;
    bool inside_manual = false;
  };

  // lowering.cpp
  void lower_arguments(LocalBlock& body);
  void lower_results(const std::vector<ir::ValueId>& returned, LocalBlock& body);
  void lower_block(const ir::Region& region, const Scope& scope, std::vector<ir::ValueId>& returned);
  void lower(const ir::Op& op, const Scope& scope);
  void lower_structural(ops::Structural kind, const ir::Op& op, const Scope& scope);

  // lower_ops.cpp
  void lower_ruled(const ir::Op& op, const ops::OpDef& def, const Scope& scope);
  /// An op without operands, made anew wherever it is wanted: one that generates (iota), or a constant (`def` null).
  void lower_made(const ir::Op& op, const ops::OpDef* def, const Scope& scope);
  std::vector<bool> uncut_factors(const ir::Op& op, const ops::OpDef& def, const ops::OpView& view,
                                  const sharding::FactorRule& rule, std::optional<kernels::ScalarOp> combine) const;
  /// True when the op means on its shard what it means in the text: no kernel that is told where its shard begins.
  [[nodiscard]] bool is_plain(const LocalOp& op) const;
  /// About how many bytes a device receives when an op is cut like that: operands, partial results, results to where
  /// they are wanted.
  [[nodiscard]] double moved_bytes(const ir::Op& op, const sharding::FactorRule& rule, std::span<const Seat> seats,
                                   const FactorAtoms& choice, const Scope& scope, const ops::Halo* halo) const;
  /// The choice that moves least, and what it moves. `halo`: the op fetches rows of its neighbours.
  [[nodiscard]] std::pair<FactorAtoms, double> cheapest_choice(const ir::Op& op, const sharding::FactorRule& rule,
                                                               const std::vector<bool>& uncut,
                                                               std::span<const Seat> seats,
                                                               std::optional<int> tied_view, const Scope& scope,
                                                               const ops::Halo* halo) const;
  void lower_whole(const ir::Op& op, const ops::OpDef& def, const Scope& scope);
  void emit(const ir::Op& op, const ops::OpDef& def, std::vector<LocalId> operands,
            const std::vector<Placed>& result_places, sharding::AtomMask partial,
            std::optional<kernels::ScalarOp> combine, const Scope& scope);

  // lower_halo.cpp
  /// What the op reads of its neighbours; nothing where it has no elements.
  [[nodiscard]] static std::optional<ops::Halo> halo_of(const ops::OpDef& def, const ops::OpView& view);
  /// Leaves the reads for which what stands beyond the rows changes no result; false where none is left.
  [[nodiscard]] bool keep_fetchable(ops::Halo& halo, const ir::Op& op, std::optional<kernels::ScalarOp> combine) const;
  /// The exchanges and, behind them, the op on the rows that they brought. `operands` lie as fetched_from() says.
  void emit_fetching(const ops::Halo& halo, const ir::Op& op, const ops::OpDef& def, const ops::OpView& view,
                     std::vector<LocalId> operands, const std::vector<Placed>& result_places,
                     sharding::AtomMask partial, std::optional<kernels::ScalarOp> combine, const Scope& scope);
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
  void lower_position(const ir::Op& op, const Scope& scope, bool partition);

  // lower_effects.cpp
  void lower_custom_call(const ir::Op& op, const Scope& scope);
  void lower_effect(const ir::Op& op, const Scope& scope);

  [[nodiscard]] LocalId local(ir::ValueId id) const { return env_[static_cast<size_t>(id)]; }
  void define(ir::ValueId id, LocalId local) { env_[static_cast<size_t>(id)] = local; }
  [[nodiscard]] bool is_token(ir::ValueId id) const { return module_main_.type_of(id).is_token(); }
  /// What propagation found for a value, without the manual atoms; whole where it found nothing.
  [[nodiscard]] Placed wanted(ir::ValueId id, const Scope& scope) const;
  [[nodiscard]] bool has_sharding(ir::ValueId id) const {
    const auto number = static_cast<size_t>(id);
    return number < input_.value_shardings.size() && input_.value_shardings[number].has_value();
  }
  /// Names the value after the text and makes it whole.
  LocalId bring_whole(ir::ValueId id, const Scope& scope, const ir::Location& location, const std::string& reason);
  [[nodiscard]] std::vector<ir::Type> types_of(const std::vector<ir::ValueId>& ids) const;

  const PartitionInput& input_;
  const Views& views_;
  const ir::Function& module_main_;
  Builder builder_;
  std::vector<LocalId> env_;
};

}  // namespace meshd::partition
