// The context of lowering: what every stage reads (the module, its shardings, views, uses) and writes (the builder, the
// local value of each value of the text). The stages are the functions of lower_*.h; lowering.h dispatches to them.
//
// Invariant: ops are lowered in program order, and when an op is lowered, each of its operands has one local value
// (local()), whose layout need not be the one that propagation found (wanted()).
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "service/partition/lower/builder/builder.h"
#include "service/partition/partition.h"

namespace meshd::partition {

/// What is around the ops being lowered.
struct Scope {
  /// Sub-axes of the manual computations around: values may vary over them, they do not shard dims.
  sharding::SubAxisSet manual = 0;
  int view = 0;
  bool inside_manual = false;
};

/// By ValueId of @main, over all regions; for rules that match definitions, and for cost estimates. Dead ops use
/// nothing.
struct DefinitionsAndUses {
  std::vector<const ir::Op*> definitions;  ///< null for arguments
  std::vector<int> counts;
  std::vector<const ir::Op*> last_users;
  /// For a value whose only reader hands it on: the result of that constraint, or of the op whose region returns it;
  /// -1 for others, and for what a call returns.
  std::vector<ir::ValueId> handed_on;
  /// Ops without effects whose results no other op reads, in nested regions too; they are not lowered.
  std::unordered_set<const ir::Op*> dead;

  explicit DefinitionsAndUses(const ir::Function& main);
};

/// What @main returns a value as: the result's layout. The value is resharded as soon as it is defined, so that later
/// reshards can read the copy.
struct ReturnedValue {
  ShardLayout layout;
  std::string reason;
};

/// One object for one partition() call; one thread.
struct LoweringContext {
  const PartitionInput& input;
  const Views& views;
  const ir::Function& main;
  DefinitionsAndUses uses;
  Builder builder;
  std::vector<LocalId> env;                            ///< by ValueId; -1: not lowered yet, or a token
  std::multimap<ir::ValueId, ReturnedValue> returned;  ///< by value; of one value in the order of results
  /// By value: the layouts in which manual computations of @main's body read it, whatever others do.
  std::map<ir::ValueId, std::vector<ShardLayout>> manual_operands;
  /// Sends of the block whose recv is not lowered yet, by channel.
  std::map<int64_t, std::deque<const ir::Op*>> unmatched_sends;

  LoweringContext(const PartitionInput& input, const Views& views);
  [[nodiscard]] LocalId local(ir::ValueId id) const { return env[static_cast<size_t>(id)]; }
  void define(ir::ValueId id, LocalId local) { env[static_cast<size_t>(id)] = local; }
  /// Its name in the text.
  [[nodiscard]] const std::string& name(ir::ValueId id) const { return main.values[static_cast<size_t>(id)].name; }
  /// A local value for a value of the text, in layout `layout`; it varies over `outer` too.
  LocalId add_value(ir::ValueId id, const ShardLayout& layout, sharding::SubAxisSet outer);
};

bool is_token(const LoweringContext& context, ir::ValueId id);
/// The sharding that propagation found for a value; nothing where it found none.
const std::optional<sharding::TensorSharding>& sharding_of(const LoweringContext& context, ir::ValueId id);
/// The layout that propagation found for a value, without the manual sub-axes; replicated where it found none.
ShardLayout wanted(const LoweringContext& context, ir::ValueId id, const Scope& scope);
/// The layout in which a value is read: that of what its only reader hands on where there is such a one, else
/// wanted(). An op that makes it so saves the way over the layout that propagation found.
ShardLayout wanted_by_reader(const LoweringContext& context, ir::ValueId id, const Scope& scope);
/// True when a sharding has a mesh. Maximal meshes count: they have no axes, but a device.
bool has_mesh(const std::optional<sharding::TensorSharding>& sharding);
/// True when two shardings are over meshes with different axes: nothing propagates from one to the other.
bool have_other_axes(const std::optional<sharding::TensorSharding>& a,
                     const std::optional<sharding::TensorSharding>& b);
/// Sub-axes over which a value of this sharding is yet to be summed.
sharding::SubAxisSet unreduced_sub_axes(const LoweringContext& context,
                                        const std::optional<sharding::TensorSharding>& sharding);
/// Layout `to`, or that with sub-axes in `summed` too where the value or a copy of it has them: over these it is yet to
/// be summed (unreduced), and its shards are then the terms of the sum. Example: a value in [{z, x}, {y}] that goes to
/// [{z}, {}] with x summed gets [{z, x}, {}].
ShardLayout with_terms(const LoweringContext& context, LocalId id, const ShardLayout& to, sharding::SubAxisSet summed);
/// The value replicated: in the scope's view, or in its own where it varies over manual axes or is partial.
LocalId reshard_to_replicated(LoweringContext& context, ir::ValueId id, const Scope& scope,
                              const ir::Location& location, const std::string& reason);

}  // namespace meshd::partition
