// The op registry: a row defines an op's name, operands, results, sharding rule and kernel. Everything else (parser,
// verifier, propagation, partition, plan, docs, property suites) reads rows and handles no op by name.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "service/ir/program.h"
#include "service/ops/shards/halo.h"
#include "service/ops/shards/shard_rules.h"
#include "service/ops/text_form.h"
#include "service/sharding/factor_rule.h"

namespace meshd::kernels {
struct FusedLoop;
enum class ScalarOp : uint8_t;
struct TileProgram;
}  // namespace meshd::kernels

namespace meshd::ops {

class Writer;
struct PreparedKernel;  // kernel_interface.h, like all that only rows with a kernel and the plan look into
struct PreparedGroup;

/// One op instance, the argument of a row's functions. Types are global or local, as the caller works.
struct OpView {
  std::span<const ir::Type> operands;
  std::span<const ir::Type> results;  ///< declared results; empty when inferring
  const ir::AttributeList* attributes = nullptr;
  std::span<const ir::Region> regions;
  const ir::Function* function = nullptr;  ///< whose value table the regions use
  const ir::Location* location = nullptr;
  /// The instance in its function, and for each operand the op that defines it (null: an argument of a function or
  /// region). Only rules read them: a concatenation of slices and an update at constant indices are sharded in other
  /// ways. Callers of a rule fill them; null and empty where only types are known.
  const ir::Op* op = nullptr;
  std::span<const ir::Op* const> definitions = {};
  /// Of a kernel that is prepared: how many shards one step executes it on. Threads have one each where there are
  /// several.
  int64_t copies = 1;
};

/// An op of a function with the types that its view refers to. `view.op` and `view.definitions` are not set.
struct OpInstance {
  std::vector<ir::Type> operands;
  std::vector<ir::Type> results;
  OpView view;

  OpInstance(const ir::Function& function, const ir::Op& op)
      : operands(function.types_of(op.operands)),
        results(function.types_of(op.results)),
        view{operands, results, &op.attributes, op.regions, &function, &op.location} {}
  OpInstance(const OpInstance&) = delete;
  OpInstance& operator=(const OpInstance&) = delete;
};

/// Result types from operands and attributes. Throws invalid_program with the constraint's label, e.g.
/// "dot_general C5: contracting dims differ in size (lhs dim 1 is 64, rhs dim 0 is 32)". Ops whose result type cannot
/// be inferred (reshape, broadcast_in_dim, iota, convert, custom_call...) check `results` and return them.
using InferFn = std::vector<ir::Type> (*)(const OpView&);

/// The factor rule (Shardy's), over global types. Null rule function: nothing passes through (constants, iota, control
/// flow...).
using RuleFn = sharding::FactorRule (*)(const OpView&);

/// Makes a kernel ready for local types and attributes.
using PrepareFn = PreparedKernel (*)(const OpView& local);

/// A pointwise op: one scalar operation, over any shape; scalar operands beside larger ones are broadcast (select,
/// clamp).
struct ScalarMath {
  kernels::ScalarOp op{};
  /// Chooses the operation by attributes or types (compare's direction) when it is set.
  kernels::ScalarOp (*op_of)(const OpView&) = nullptr;
  /// Emits instructions where one operation does not suffice (reduce_precision, chlo.square) and returns the result's
  /// register; `op` and `op_of` are then not read. Registers of `operands` have the operands' dtypes.
  uint16_t (*emit)(const OpView&, kernels::TileProgram&, std::span<const uint16_t> operands) = nullptr;
};

/// Attribute with the global dims of a tensor that on_shard passes to a kernel that depends on them.
inline constexpr std::string_view kGlobalDims = "meshd.global_dims";

/// An op that works on one shard alone, with local types.
struct LocalKernel {
  PrepareFn prepare = nullptr;
};

/// Makes a collective ready for groups of `group_size` members.
using PrepareGroupFn = PreparedGroup (*)(const OpView& local, int64_t group_size);
/// Groups of mesh positions (partition ids), or source-target pairs, from the attributes. Throws invalid_program on ids
/// outside.
using GroupsFn = std::vector<std::vector<int64_t>> (*)(const OpView&, int64_t position_count);
/// A collective: members of a group compute with each other's operands.
struct GroupKernel {
  PrepareGroupFn prepare = nullptr;
  GroupsFn groups = nullptr;
  bool is_permutation = false;  ///< groups are (source, target) pairs; positions that no pair targets get zeros
};

/// Ops that the stages themselves understand.
enum class Structural : uint8_t {
  kReturn,
  kCall,
  kWhile,
  kCase,
  kIf,
  kOptimizationBarrier,
  kManualComputation,
  kNamedComputation,
  kShardingConstraint,
  kReshard,
  kShardingGroup,
  kPropagationBarrier,
  kPartitionId,
  kReplicaId,
  kAfterAll,
  kTuple,
  kGetTupleElement,
  kComposite,
  kEffect,
  kConstant,
  kCustomCall,  ///< looked up by target when it runs; unknown targets register and explain
};

/// How an op is run. No silent default: a row without a kernel is Unsupported and is refused by name.
struct Unsupported {};
using Body = std::variant<Unsupported, ScalarMath, LocalKernel, GroupKernel, Structural>;

/// The part that the stages themselves play for an op that is run so; nothing for the others.
inline std::optional<Structural> role_of(const Body& body) {
  const auto* role = std::get_if<Structural>(&body);
  return role == nullptr ? std::nullopt : std::optional(*role);
}

/// What the verifier holds an op to before infer sees it.
struct AttributeSpec {
  std::string_view name;
  bool required = false;
  std::string_view doc;
  /// The name under which an op in memory has it, where the text's is another: out_sharding is kept as sharding.
  std::string_view kept_as = {};
};
struct Signature {
  int operand_min = 0;
  int operand_max = 0;                         ///< -1: any number
  int region_count = 0;                        ///< -1: any number
  std::vector<AttributeSpec> attributes = {};  ///< inherent attributes; others in <{...}> are refused by name
};

/// The indexing map (affine) of an op that reads its operand without computing: operand index[j] = start + step *
/// result index[result_dim]. broadcast_in_dim of 3 into 2x3 along 1: {{result_dim 1}}; of 1x3 into 2x3: {{-1}, {1}};
/// slice [2:8:3]: {{0, 2, 3}}.
struct IndexingMap {
  struct Dim {
    int result_dim = -1;  ///< -1: always `start`
    int64_t start = 0;
    int64_t step = 1;
  };
  std::vector<Dim> dims;    ///< one for each operand dimension; empty when same_bytes
  bool same_bytes = false;  ///< the row-major bytes are the operand's (reshape)
};

/// Where the elements of a value are in another one: element sum(strides * index) + offset.
struct StridedView {
  std::vector<int64_t> strides;
  int64_t offset = 0;
};

/// A gather of a broadcast as one of the broadcast's operand.
struct GatherOfBroadcast {
  /// Dimensions of the gather's result that come of it, ascending but where there are no attributes; the others repeat
  /// its elements.
  std::vector<int64_t> dims;
  /// Of the smaller gather; nothing: the operand's elements are where `dims` say, without one.
  std::optional<ir::AttributeList> attributes;
  /// Numbers of the index tuples that it reads, [first_number, first_number + numbers) along `tuple_dim` of the
  /// indices; where that is their rank, tuples have one number, without a dimension.
  int64_t tuple_dim = 0;
  int64_t first_number = 0;
  int64_t numbers = 0;
};

/// Which dimensions of both operands of a product go together. The result has batch dims, then the free dims of lhs,
/// then those of rhs.
struct ProductDims {
  std::vector<int64_t> lhs_batch;
  std::vector<int64_t> rhs_batch;
  std::vector<int64_t> lhs_contract;
  std::vector<int64_t> rhs_contract;
};

/// A pointwise loop whose output k is operand `operands[k]` of an op, and nothing else.
struct ComputedOperands {
  std::shared_ptr<const kernels::FusedLoop> loop;
  int read_count = 0;  ///< operands of the loop
  std::vector<size_t> operands;
};

/// What makes an op without a ScalarMath body fusible. At most one is set, but for products; all take local types.
struct Fuse {
  /// Operand 0 with its dimensions in the order of the attribute `permutation`.
  bool is_transpose = false;
  /// Not null: a product of operands 0 and 1, with both functions that follow.
  ProductDims (*product_dims)(const OpView&) = nullptr;
  /// The attributes with which the op gives the same of operand `operand` before the transpose that made it as with the
  /// transpose. `op` has the operand's type before it, and attributes that mean the transposed one. Nothing where the
  /// kernel would have to copy the operand.
  std::optional<ir::AttributeList> (*of_transposed)(const OpView& op, size_t operand,
                                                    const std::vector<int64_t>& permutation) = nullptr;
  /// The attributes with which the op gives the transposed result when its operands change places; nothing where there
  /// are none.
  std::optional<ir::AttributeList> (*as_transposed)(const OpView& op,
                                                    const std::vector<int64_t>& permutation) = nullptr;
  /// `reduction` of the result as one kernel that does not make it: operands are the op's own, then the initial value.
  /// Nothing where there is no such kernel.
  std::optional<PreparedKernel> (*reduced)(const OpView& op, const OpView& reduction) = nullptr;
  /// The sum of `parts` results of the op, each of operands of its own, added in order, as one kernel that does not
  /// keep the parts: operands are those of the first part, then of the second, and so on. Same bits as op after op and
  /// the additions behind them. Nothing where there is no such kernel.
  std::optional<PreparedKernel> (*summed)(const OpView& op, int64_t parts) = nullptr;
  /// A concatenation of operands of which some are elements of other values, `views`, and some what loops compute, as
  /// one kernel: its operands are those of the op that are not computed, with views those values, and then those of
  /// each loop.
  PreparedKernel (*concatenation)(const OpView& op, const std::vector<std::optional<StridedView>>& views,
                                  const std::vector<ComputedOperands>& computed) = nullptr;
  /// The op on what operand 0 was before a conversion, whose type `op` has, as one kernel. Nothing where there is no
  /// such kernel.
  std::optional<PreparedKernel> (*of_converted)(const OpView& op) = nullptr;
  /// The op copies elements of operand 0 from places that operand 1 gives. What it copies of a broadcast whose operand
  /// has the dimensions `kept` of operand 0, ascending, as what it copies of that operand; nothing where the operand is
  /// not enough.
  std::optional<GatherOfBroadcast> (*of_broadcast)(const OpView& op, const std::vector<int64_t>& kept) = nullptr;
  IndexingMap (*read)(const OpView&) = nullptr;               ///< the indexing map of operand 0
  int64_t (*iota_dim)(const OpView&) = nullptr;               ///< the result is the index of this dimension
  std::pair<int, int> (*precision)(const OpView&) = nullptr;  ///< reduce_precision: exponent and mantissa bits
  std::vector<int64_t> (*reduce_dims)(const OpView&) =
      nullptr;  ///< operands: inputs, then inits; regions[0] combines over these dims
};

/// When Shardy propagates through an op, and in which direction (propagation/strategies/op_priority.h).
enum class Flow : uint8_t {
  kOther,               ///< in the last steps, both ways
  kPassThrough,         ///< in the first step, both ways: elementwise ops, reshape, transpose, moves between memories
  kPassThroughForward,  ///< in the first step, forward: dynamic_slice, dynamic_update_slice
  kBroadcast,           ///< backward, and forward in the last step alone
};

/// Whether every result element comes from the operands' elements at the same place.
enum class Elementwise : uint8_t {
  kByBody,      ///< where the body is ScalarMath
  kAlways,      ///< XLA takes the op apart into elementwise ones before Shardy sees it
  kSameShapes,  ///< where operands and results have the same factors (bitcast_convert between types of one width)
};

/// What propagation needs of an op besides its factor rule. Elementwise ops are kPassThrough and keep constants,
/// whatever is set here.
struct PropagationFacts {
  Flow flow = Flow::kOther;
  Elementwise elementwise = Elementwise::kByBody;
  bool keeps_constants = false;  ///< of constants it makes a constant, which is copied for each of its uses
};

/// How an op takes tensors of quantised elements; program/transform/legalize_quantized.h writes it so.
enum class QuantizedForm : uint8_t {
  kRefused,    ///< not at all: refused by name
  kStorage,    ///< it moves elements or holds regions: as the integers that are stored
  kExpressed,  ///< dequantised, computed in the expressed type, quantised
  kConvert,    ///< uniform_quantize and uniform_dequantize: the operand's values with the result's parameters
};
/// Which of its tensors have the same quantised element type.
enum class SameQuantized : uint8_t {
  kNone,     ///< any, or as `check` says
  kEach,     ///< operand k and result k; operands beyond are indices or shapes
  kReduced,  ///< operand k, result k and the k-th of the last operands: its initial value or its updates
  kAll,      ///< result 0 and the first `element_operands`, but for booleans; operands beyond are indices or shapes
};
struct QuantizedTypes {
  QuantizedForm form = QuantizedForm::kRefused;
  SameQuantized same = SameQuantized::kNone;
  size_t element_operands = SIZE_MAX;      ///< of kAll
  bool per_axis = false;                   ///< also where slices of a dimension have parameters of their own
  void (*check)(const OpView&) = nullptr;  ///< labelled constraints beyond these (quantized.h); null: none
};

/// How an op takes tensors whose sizes depend on data, within bounds; program/transform/bounded/write_bounded.h writes
/// it so. Most forms are those of one op, which they are called after.
enum class BoundedForm : uint8_t {
  kByBody,        ///< kPointwise for pointwise ops, results as operands for barriers; else refused by name
  kPointwise,     ///< sizes pass along; scalar operands beside others
  kBroadcasting,  ///< the same, and the op itself repeats dimensions of one element
  kGetSize,
  kSetSize,
  kPadToStatic,     ///< XLA's custom call: a value of the bound's shape and its sizes
  kSliceToDynamic,  ///< its inverse
  kReduce,
  kReduceWindow,
  kDot,
  kDotGeneral,
  kConvolution,
  kDynamicConvolution,
  kTranspose,
  kBroadcast,
  kDynamicBroadcast,
  kReshape,
  kDynamicReshape,
  kDynamicIota,
  kReverse,
  kSlice,
  kRealDynamicSlice,
  kDynamicSlice,
  kDynamicUpdateSlice,
  kConcatenate,
  kPad,
  kDynamicPad,
  kGather,
  kDynamicGather,
  kScatter,
  kSort,
  kTransform,   ///< fft: of batch dimensions
  kMatrices,    ///< the same of ops on the last two dimensions
  kLapackCall,  ///< the same of LAPACK's calls
};

/// How a collective of Shardy's leads from its operand's sharding to its result's.
enum class AxesEffect : uint8_t {
  kNone,      ///< the op is no such collective
  kRemoved,   ///< by dimension, `attribute` is taken off the end of the operand's axes (all_gather)
  kAdded,     ///< by dimension, `attribute` is put behind the operand's axes (all_slice, reduce_scatter)
  kMoved,     ///< axes go from one dimension to another (all_to_all)
  kReduced,   ///< dimensions keep their axes; `attribute` are others (all_reduce)
  kKept,      ///< dimensions keep their axes (replicated_to_unreduced)
  kPermuted,  ///< any axes of the same sizes (collective_permute)
};
struct CollectiveAxes {
  AxesEffect effect = AxesEffect::kNone;
  std::string_view attribute = {};  ///< that holds the axes
};

/// Decomposes an op into other ops (rewrites/writer.h) and returns the values that replace its results; nothing when
/// that needs a shape that depends on data: then the op runs as its row defines. With global types.
using ExpandFn = std::optional<std::vector<ir::ValueId>> (*)(const OpView&, Writer&);

/// Decomposition of an op where a dimension of operand 0 is sharded that its kernel needs replicated: into ops that can
/// be sharded (batch_norm_training: its mean and variance as sums over shards). Values that `expand` adds have the rank
/// of operand 0 and its sharding, or rank 1 and the sharding of `free_dim`, or rank 0.
struct ShardedForm {
  int64_t (*free_dim)(const OpView&) = nullptr;  ///< the dimension of operand 0 that may be sharded in the kernel
  ExpandFn expand = nullptr;                     ///< null: the op has no such form
};

/// What the arguments of an op's first region are, which decides how the op gets another operand that the region sees.
enum class RegionArguments : uint8_t {
  kOther,      ///< the op has no region, or one that may read any value (control flow)
  kFixed,      ///< scalars; no operand can be added
  kEach,       ///< an element of each operand (map)
  kPairs,      ///< two elements of each operand, side by side; each operand has a result (sort)
  kReduction,  ///< a value so far of each input, then an element of each; operands are inputs, then initial values
  kScatter,    ///< the same; operands are inputs, indices, updates
};

struct Vjp;  // rewrites/derivative.h
struct Contribution;

/// How cotangents of an op's results become cotangents of its operands (reverse-mode differentiation). None is set: the
/// op has no derivative, and is refused by name where one is needed.
struct Derivative {
  /// By operand. `vjp` writes ops (rewrites/derivative.h).
  std::vector<Contribution> (*vjp)(const Vjp&) = nullptr;
  /// Steps: the derivative is zero wherever there is one.
  bool is_zero = false;
  /// The op as others that have derivatives, for instances that `vjp` does not take; nothing for those that it takes.
  ExpandFn as_others = nullptr;
};
inline constexpr Derivative kZeroDerivative{.is_zero = true};

struct Batching;  // rewrites/batching.h

/// The op over a leading batch dimension of some of its operands (jax.vmap): writes ops and returns the results,
/// batched. Nothing where this instance cannot be written so.
using BatchFn = std::optional<std::vector<ir::ValueId>> (*)(const Batching&);

/// True where shards of `factor` alone could not compute shards of the result though its kind may be sharded: windows
/// that overlap, sums over windows. `view` is global.
using KeepsUnshardedFn = bool (*)(const OpView& view, const sharding::FactorRule& rule, size_t factor);

/// Attribute that `localize` adds where results are sharded differently (the state and the bits of rng_bit_generator),
/// the number of results: each is then computed by a step of its own.
inline constexpr std::string_view kResultsApart = "meshd.results_apart";
/// On such a step: the number of the result that it makes, its only one.
inline constexpr std::string_view kOnlyResult = "meshd.only_result";

/// One row. Aggregates with designated initialisers; see families for the one-line constructors.
struct OpDef {
  std::string_view name;       ///< "stablehlo.add"
  std::string_view also = {};  ///< a name of another dialect with the same text and meaning; texts may use it
  std::string_view summary;
  std::string_view example;  ///< a small module; docs show it, tests run it
  Signature signature = {};
  TextForm text = {};  ///< its pretty form, where that has more than operands, attributes and types
  PropagationFacts propagation = {};
  InferFn infer = nullptr;
  BoundedForm bounded = BoundedForm::kByBody;
  QuantizedTypes quantized = {};
  RuleFn rule = nullptr;
  Body body = Unsupported{};
  /// Where attributes or types decide how the op is run (a custom call's target, a bitcast that changes the shape).
  /// Null: `body`.
  Body (*choose_body)(const OpView&) = nullptr;
  bool has_effect = false;         ///< never dropped as dead; has_effect() covers instances
  bool ends_function = false;      ///< may be a function's terminator; kReturn only
  bool result_is_operand = false;  ///< data-flow identity
  CollectiveAxes axes = {};        ///< sdy.all_gather and similar ops
  /// How partial results combine when a reduction factor is sharded (dot_general: kAdd; reduce: its body's ops). Null,
  /// or nothing returned: such factors stay unsharded. Partition then masks padding with the op's identity and reduces
  /// over shards.
  CombineFn combine = nullptr;
  /// Per-shard lowering, where the op alone on local types would compute something else: indices relative to a shard's
  /// start, partial picks. Null: the kernel does it (KernelCall::result_offsets), or nothing has to be done.
  OnShardFn on_shard = nullptr;
  /// The result may have any sharding: each shard computes its own block from KernelCall::result_offsets (iota).
  bool free_result_layout = false;
  /// Factors that only results have may be sharded (broadcast_in_dim: every shard repeats what it has). Elsewhere a
  /// pass-through factor is sharded only where both an operand and a result have it: the sides of a reshape that
  /// diverge, the update of a dynamic_update_slice and the window of a gather stay replicated.
  bool new_dims_may_be_sharded = false;
  /// Local attributes for a sharded op, where they do not follow from local types. Null: as they are.
  ir::AttributeList (*localize)(const OpView& global, const OpView& local) = nullptr;
  RegionArguments region_arguments = RegionArguments::kOther;
  /// Reverse mode. Results that are no floating-point or complex numbers have none, whatever is set here.
  Derivative derivative = {};
  /// Batching. Null: that of pointwise ops where the body is ScalarMath; else vmap makes a loop over the batch.
  BatchFn batch = nullptr;
  /// How the plan may fuse it with its neighbours; nothing set: only as ScalarMath, or not at all.
  Fuse fuse = {};
  /// Decomposition (broadcast into broadcast_in_dim, dynamic_reshape into reshape once its shape is known), which
  /// program/transform/specialise.h applies before propagation. Null: none.
  ExpandFn expand = nullptr;
  /// Decomposition for a sharded operand that its kernel cannot take, which compile/rewrite applies after propagation.
  ShardedForm sharded = {};
  /// Its results follow from its operands' shapes alone, whatever their elements (get_dimension_size).
  bool reads_shapes_only = false;
  /// No two runs give the same (rng): never worked out before the program runs.
  bool is_random = false;
  /// Which factors stay unsharded beside those of kinds that do. Null: none.
  KeepsUnshardedFn keeps_unsharded = nullptr;
  /// Which rows of its operands a result row reads, where they are not its own (windows, pads, slices). Null: none.
  HaloFn halo = nullptr;
};

/// The row of this name, its own or the other dialect's, or null. Names are full ("stablehlo.add",
/// "sdy.sharding_constraint", "func.call").
const OpDef* find_op(std::string_view name);
/// The row of a code; codes are row numbers.
const OpDef& op(ir::OpCode code);
ir::OpCode code_of(const OpDef& def);
/// The code of a full name that this program writes itself. Throws internal where there is no row of that name.
ir::OpCode code_of(std::string_view name);
/// All rows in table order.
std::span<const OpDef> all_ops();

/// The body of this instance of an op: what the row chooses by attributes and types, else the row's body. A custom call
/// of an unknown target is Unsupported (custom_calls.h).
Body body_of(const OpDef& def, const OpView& view);

/// Makes the instance ready to run and drops what came of it. Throws unsupported_op or unsupported_dtype, naming both,
/// where nothing runs it; collectives and what the stages do themselves are taken to run.
void check_runnable(const OpDef& def, const OpView& view);

/// True when this op must happen even if its results are unused: by the row, or by the op (`has_side_effect` of a
/// custom call). Ops in its regions are ignored.
bool has_effect(const OpDef& def, const OpView& view);

/// Rule of an op instance: sdy.sharding_rule on the op where it has one, else the row's; nothing when neither exists.
std::optional<sharding::FactorRule> rule_of(const OpDef& def, const OpView& view);

}  // namespace meshd::ops
