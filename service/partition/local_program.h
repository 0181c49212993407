// The local program: one SPMD program over local types, which every device runs. A device's position is an input, and
// every reshard, reduction over shards and mask is an op of its own with the source line that caused it. partition()
// makes it; compile reads it, fuses, plans buffers and prepares kernels. Plain data.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "service/ir/program.h"
#include "service/partition/halo_dim.h"
#include "service/partition/sharded_type.h"
#include "service/sharding/tensor_sharding.h"

namespace meshd::ops {
struct OpDef;
}

namespace meshd::partition {

using LocalId = int32_t;

/// One value of the local program.
struct LocalValue {
  ShardedType type;
  std::string name;  ///< name in the text, for messages

  /// The type of one shard.
  [[nodiscard]] ir::Type local_type() const { return ir::Type::of(type.local); }
};

struct LocalOp;

/// Ops in order; `results` are the values that the block returns.
struct LocalBlock {
  std::vector<LocalId> arguments;
  std::vector<LocalOp> ops;
  std::vector<LocalId> results;
};

enum class LocalKind : uint8_t {
  kOp,  ///< a row with ScalarMath or LocalKernel body, on local types. Runs once for each distinct shard of its results
  kConstant,  ///< attributes "value": DenseAttr of the global tensor; each shard holds its block
  kPosition,  ///< the position in the flat device list as a ui32 scalar (partition_id), or 0 (replica_id: `name`)
  kMask,  ///< operand 0 with rows beyond logical_dims replaced by operand 1 (a scalar), along all sharded dimensions
  /// operand's layout -> result's layout by block copies; sub-axes that vary outside of dims are kept or dropped
  /// (coordinate 0)
  kReshard,
  /// halo exchange, `halos` has an entry for each operand that is read: shard p of the result (its part of each
  /// dimension) gets rows of its own shard and of others. A further operand is the scalar that fills places without a
  /// row (absent: these are garbage)
  kHalo,
  /// result shares the operand's bytes: same local dims and varies, other layout (edges of manual computations)
  kView,
  /// results[i] = reduction of operands[i] over the positions that differ in `reduced` sub-axes, with `regions[0]` as
  /// reducer in ascending position order; results vary over operands' varies minus `reduced`
  kReduceShards,
  kGroup,  ///< a collective of the text: row with GroupKernel body, `groups` of flat device numbers
  /// operands: inits; blocks[0]: condition (one pred result), blocks[1]: body. A condition that varies diverges:
  /// positions whose condition is false keep their values (results vary at least as the condition does)
  kWhile,
  kCase,  ///< operands[0]: i32 index or i1 (true is block 0); further operands none; blocks: branches without arguments
  kEffect,  ///< a callback, infeed or outfeed, described by `effect`
};

/// What an effect is in the text.
enum class EffectForm : uint8_t {
  kCallback,  ///< a callback, which a request binds by its index
  kInfeed,    ///< takes from a queue of the client
  kOutfeed,   ///< gives to a queue of the client
};

/// A side effect's facts, from ops::effect_of and ops::host_transfer_of.
struct EffectPoint {
  EffectForm form = EffectForm::kCallback;
  int64_t callback = 0;         ///< index in the text; -1 unless form is kCallback
  std::string queue;            ///< kInfeed, kOutfeed: which
  bool ordered = false;         ///< ordered by a token
  bool has_side_effect = true;  ///< false: pure callback, no entry
  /// once for each device (inside a manual computation, or a partitioned target); else once, on replicated values
  bool every_device = false;
  int32_t program_point = 0;  ///< number of the effect in program order
  /// kInfeed: the sharding of each result in the text, which selects the slice that a device dequeues; none: each
  /// device dequeues the unsharded value.
  std::vector<std::optional<sharding::TensorSharding>> result_shardings = {};
};

/// One op of the local program.
struct LocalOp {
  LocalKind kind = LocalKind::kOp;
  const ops::OpDef* def = nullptr;  ///< for kOp and kGroup
  std::string name;                 ///< the name in the text ("stablehlo.add"), or partition's own ("reshard")
  std::vector<LocalId> operands;
  std::vector<LocalId> results;
  ir::AttributeList attributes;     ///< localized
  std::vector<ir::Region> regions;  ///< scalar regions (reducers, comparators), in terms of LocalProgram::function
  std::vector<LocalBlock> blocks;
  sharding::SubAxisSet reduced = 0;         ///< kReduceShards
  std::vector<std::vector<HaloDim>> halos;  ///< kHalo: [operand][dimension]
  bool reads_neighbours = false;  ///< kReshard: along dimensions in which the op only needs its neighbours' rows
  std::vector<std::vector<int64_t>> groups;  ///< kGroup
  EffectPoint effect;                        ///< kEffect
  int view = 0;                              ///< kEffect: it happens on the devices of this view
  int64_t trip_count = -1;                   ///< kWhile: its iterations, the same every time; -1: not known
  ir::Location location;
  std::string reason;  ///< why partition appended it: "operand 1 of stablehlo.dot_general", "result 0", "constraint"
};

/// An argument or result of the program as a client sees it. Tokens do not appear.
struct LocalParameter {
  LocalId value = 0;
  int64_t position = 0;  ///< among @main's arguments / results, tokens left out
  tensor::TensorType global_type;
  sharding::TensorSharding sharding;  ///< closed
  int64_t aliases = -1;               ///< argument: result (token-free number) that takes its buffer; -1: none
  bool is_donated = false;            ///< argument: the text gives it up (aliasing or donor)
  std::vector<int64_t> size_places;   ///< result: ir::Parameter::size_places; `global_type` has the bounds
  bool is_sizes = false;              ///< result: ir::Parameter::is_sizes
  std::string result_info;
};

/// Names of a view and its sub-axes, for messages.
struct ViewNames {
  std::string mesh;  ///< symbol of the first mesh that has this view, without @; empty: there is none
  mesh::MeshRef axes;
  std::vector<sharding::AxisRef> sub_axes;  ///< each as an axis of that mesh or a part of one
};

/// Everything the plan is made from.
struct LocalProgram {
  std::vector<sharding::MeshView> views;  ///< the first is over all devices of the run
  std::vector<ViewNames> view_names;      ///< by view
  std::vector<LocalValue> values;
  LocalBlock body;  ///< arguments and results in the order of `arguments`, `results`
  std::vector<LocalParameter> arguments;
  std::vector<LocalParameter> results;
  int64_t effect_count = 0;
  /// Owns the value table that scalar regions refer to.
  std::shared_ptr<const ir::Function> function;
  std::vector<std::string> warnings;

  [[nodiscard]] const LocalValue& value(LocalId id) const { return values[static_cast<size_t>(id)]; }
  [[nodiscard]] const ShardedType& type(LocalId id) const { return value(id).type; }
  /// Of one shard of each value.
  [[nodiscard]] std::vector<ir::Type> local_types(const std::vector<LocalId>& ids) const {
    std::vector<ir::Type> types;
    types.reserve(ids.size());
    for (const LocalId id : ids) types.push_back(value(id).local_type());
    return types;
  }
  [[nodiscard]] const sharding::MeshView& view(int number) const { return views[static_cast<size_t>(number)]; }
  /// The view of a value.
  [[nodiscard]] const sharding::MeshView& view_of(LocalId id) const { return view(type(id).layout.view); }
  [[nodiscard]] int64_t device_count() const { return views.empty() ? 1 : views.front().position_count(); }
};

/// One line an op, for tests and debugging.
std::string to_text(const LocalProgram& program);

}  // namespace meshd::partition
