// The execution plan: a local program as steps over slots of memory, with fused loops, donated arguments aliased to
// results, and peak bytes known before anything runs. A device's position is an input: one plan serves every device.
//
// Terms. A *shard* of a value is one of its distinct shards; positions that differ only in sub-axes that the value does
// not vary over share it. A *table* maps each device (number in the run's flat device list) to the shard that it holds.
// A *slot* is storage for all shards of a table: one range of bytes for each. A *map* gives, for each shard of a step,
// the shard of a slot (SlotRef).
//
// Example: mesh x=2, y=2; f32 8x6 with its rows sharded over x. In: local type 4x6, 96 bytes, varies over {x}. Out:
//   table  shard_of_device {0, 0, 1, 1}, device_of_shard {0, 2}
//   slot   2 ranges of 96 bytes, stride 128 (a multiple of 64), 256 bytes of the arena
//   map    {0, 0, 1, 1} for a step over {x, y}: its four shards read the slot's two
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "service/kernels/elementwise/nonfinite.h"
#include "service/partition/local_program.h"
#include "service/tensor/shape.h"

namespace meshd::core {
class Checkpoint;
}

namespace meshd::kernels {
class SmallWhile;
}

namespace meshd::ops {
struct PreparedKernel;
}

namespace meshd::compile {

using TableId = int32_t;
using SlotId = int32_t;
using MapId = int32_t;
using BlockId = int32_t;
inline constexpr MapId kIdentity = -1;

/// Which device holds which shard of a value that varies over `mask`.
struct ShardTable {
  int view = 0;
  sharding::SubAxisSet mask = 0;
  std::vector<int32_t> shard_of_device;  ///< by flat device; -1 where the view does not reach
  std::vector<int32_t> device_of_shard;  ///< the first position's flat device
  [[nodiscard]] int64_t count() const { return static_cast<int64_t>(device_of_shard.size()); }
};

/// What a slot's bytes are.
enum class Storage : uint8_t {
  kArena,     ///< a range of the run's arena
  kOwn,       ///< a buffer of its own for each shard, because it may leave as a result
  kArgument,  ///< an argument's buffers; written only when the argument is donated
  kConstant,  ///< bytes of the plan
};

struct Slot {
  Storage storage = Storage::kArena;
  TableId table = 0;
  int64_t bytes = 0;   ///< of one shard
  int64_t stride = 0;  ///< arena and constants: from shard to shard (0: all shards share the bytes), a multiple of 64
  int64_t offset = 0;  ///< in the arena or in Plan::constants
  int64_t argument = -1;      ///< kArgument: position
  bool is_writable = false;   ///< kArgument: donated, and steps write into it
  int64_t first_pointer = 0;  ///< index of shard 0 in a run's table of pointers
};

/// An operand or result of a step: shard i of the step uses shard maps[map][i] of the slot.
struct SlotRef {
  SlotId slot = -1;
  MapId map = kIdentity;
  int64_t first = 0;              ///< the slot's first_pointer
  partition::LocalId value = -1;  ///< whose shards they are: index in Plan::values
};

/// A value that is stored (fused ones are not). `slot` is -1 for values that never reach memory.
struct PlanValue {
  partition::ShardedType type;  ///< `varies` after divergence analysis
  TableId table = 0;
  SlotRef slot_ref;  ///< by the value's own shards
  std::string name;
  [[nodiscard]] bool is_stored() const { return slot_ref.slot >= 0; }
};

/// A call of a collective step: it makes one output shard from source shards of several positions.
struct CollectiveCall {
  int64_t shard = 0;                          ///< of the step
  const std::byte* const* sources = nullptr;  ///< as Collective::sources[shard]
  const char* packed = nullptr;               ///< source i came as a message and holds its block alone; null: none did
  std::byte* const* results = nullptr;
  int64_t begin = 0;  ///< range of work items
  int64_t end = 0;
  std::byte* scratch = nullptr;            ///< as ops::KernelCall's
  core::Checkpoint* checkpoint = nullptr;  ///< as ops::KernelCall's
};

/// A part of a shard, in elements.
struct CollectiveBlock {
  tensor::Dims start;
  tensor::Dims extent;
  friend auto operator<=>(const CollectiveBlock&, const CollectiveBlock&) = default;
};

/// One source of a collective. An exchange of N devices has N * N of them, so they own no memory.
struct CollectiveSource {
  int32_t operand = 0;
  int32_t slot_shard = 0;  ///< shard of the operand's slot
  int32_t device = 0;      ///< the first flat device that holds it, for error messages
  int32_t table = 0;       ///< which devices hold it
  int32_t shard = 0;       ///< of that table
  int32_t block = -1;      ///< of Collective::blocks, that is read and that a message contains; -1: all of the shard
  int64_t bytes = 0;       ///< of the message
};

struct Collective {
  std::vector<std::vector<CollectiveSource>> sources;  ///< by shard of the step
  std::vector<CollectiveBlock> blocks;                 ///< that sources read, each once
  std::vector<int64_t> work_items;                     ///< by shard of the step
  std::vector<tensor::Dims> source_dims;               ///< by operand: of a shard, where blocks of it are read
  int64_t element_bytes = 1;
  /// Work item i makes bytes [i * item_bytes, (i + 1) * item_bytes) of the one result, as far as there are so many, of
  /// the same bytes of each source; 0: other bytes, or several results.
  int64_t item_bytes = 0;
  std::function<void(const CollectiveCall&)> run;
};

struct Plan;
using CollectiveMaker = std::function<Collective(const Plan&)>;

/// A collective that is made at its first use. Any thread.
class LazyCollective {
 public:
  explicit LazyCollective(CollectiveMaker make) : make_(std::move(make)) {}
  /// `plan`: the plan that it belongs to, always the same.
  [[nodiscard]] const Collective& get(const Plan& plan) const {
    std::call_once(once_, [&] { made_ = make_(plan); });
    return made_;
  }

 private:
  CollectiveMaker make_;
  mutable std::once_flag once_;
  mutable Collective made_;
};

struct Step;

/// What steps of a loop cost that are executed without a look at each. Flops and bytes: all shards.
struct LoopCost {
  int64_t steps = 0;
  int64_t kernel_calls = 0;
  double flops = 0;
  double bytes = 0;
  double estimated_ns = 0;

  /// A step over so many shards.
  void add(const Step& step, int64_t shards);
  void add(const LoopCost& cost, int64_t times);
};

/// A loop whose steps are all small, executed as one step (kernels::SmallWhile). Its blocks remain, for runs that look
/// at each step.
struct SmallWhileStep {
  std::shared_ptr<const kernels::SmallWhile> loop;
  int64_t shard_count = 1;  ///< of the table of its steps that has most
  int64_t value_count = 0;
  std::vector<int64_t> pointers;              ///< [shard][value]: index in a run's table of pointers
  LoopCost condition;                         ///< of its steps
  LoopCost iteration;                         ///< with the condition's; counts as a step more
  [[nodiscard]] int64_t block_bytes() const;  ///< of all pieces of all shards
};

/// A loop that each shard can execute for itself (shard_whiles.h). Its blocks remain.
struct ShardWhileStep {
  /// A slot that the loop writes and of which each thread has its own, of one shard.
  struct Own {
    SlotId slot = -1;
    int64_t at = 0;             ///< in the thread's scratch
    bool is_replicated = true;  ///< it has one shard for all devices
    bool is_carried = false;    ///< false: what is in it lives in one iteration, and is nowhere else
  };
  TableId table = 0;  ///< of the shards
  std::vector<Own> own;
  int64_t scratch_bytes = 0;  ///< of a thread: of the step that needs most, and behind it what is its own
  LoopCost condition;         ///< of its steps
  LoopCost iteration;         ///< with the condition's; counts as a step more
};

/// A loop of short steps, whose calls have their pointers bound before its iterations (bound_whiles.h). Its blocks
/// remain.
struct BoundWhileStep {
  LoopCost condition;    ///< of its steps
  LoopCost iteration;    ///< with the condition's, counts as a step more; without what loops and branches in it execute
  LoopCost all;          ///< an iteration at most, with all that loops and branches in it execute
  bool is_known = true;  ///< false: a loop in it has no known number of iterations, and `all` has one of each such
  bool exchanges = false;  ///< an iteration leaves slots exchanged
  double longest_ns = 0;   ///< of all steps
  int64_t calls = 0;       ///< that are bound
};

enum class StepKind : uint8_t { kKernel, kCollective, kWhile, kCase, kEffect };

/// One step. Runs for each shard of `table` that an active device of this process holds.
struct Step {
  StepKind kind = StepKind::kKernel;
  TableId table = 0;
  std::vector<SlotRef> operands;
  std::vector<SlotRef> results;
  std::shared_ptr<const ops::PreparedKernel> kernel;  ///< kKernel: what runs it; set for every kind, empty for others
  double flops = 0;                                   ///< of one shard
  double bytes = 0;                                   ///< of one shard
  int64_t parts = 1;                                  ///< of how many devices a shard is the work
  std::vector<int64_t> offsets;                       ///< kernel.uses_offsets: [shard][dim]
  int64_t offset_rank = 0;
  std::shared_ptr<const LazyCollective> collective;  ///< kCollective
  BlockId blocks_first = -1;                         ///< kWhile: condition, then body; kCase: branches
  int64_t block_count = 0;
  std::vector<std::pair<SlotId, SlotId>> exchanges;  ///< kWhile: after each iteration the two slots are exchanged
  int64_t trip_count = -1;                           ///< kWhile: iterations, every time it is entered; -1: not known
  std::shared_ptr<const SmallWhileStep> small;       ///< kWhile: its form as one step, where it has one
  std::shared_ptr<const ShardWhileStep> by_shard;    ///< kWhile: its form shard by shard, where it has one
  std::shared_ptr<const BoundWhileStep> bound;       ///< kWhile: its form as bound calls, where it has one
  /// kKernel: so many steps, from this one on, may be executed shard by shard (shard_sequences.h). Those after the
  /// first have 1.
  int32_t sequence = 1;
  bool is_copy = false;     ///< kKernel: result 0 gets the bytes of operand 0
  bool is_bool = false;     ///< kCase: the operand is i1, true is block 0
  int32_t effect = -1;      ///< kEffect: index in Plan::effects
  int32_t number = 0;       ///< in plan order, over all blocks
  double estimated_ns = 0;  ///< all shards, one thread, control flow: one iteration
  std::string name;         ///< "stablehlo.dot_general", "fused add tanh (5 ops)"
  ir::Location location;
  std::vector<int32_t> lines;    ///< of every op in it
  std::string reason;            ///< why partition appended it
  kernels::Nonfinite constants;  ///< among values that the kernel itself holds, of fills and of ops that are not fused

  [[nodiscard]] double device_flops() const { return flops / static_cast<double>(parts); }
  [[nodiscard]] double device_bytes() const { return bytes / static_cast<double>(parts); }
};

inline void LoopCost::add(const Step& step, int64_t shards) {
  ++steps;
  kernel_calls += shards;
  flops += step.flops * static_cast<double>(shards);
  bytes += step.bytes * static_cast<double>(shards);
  estimated_ns += step.estimated_ns;
}

inline void LoopCost::add(const LoopCost& cost, int64_t times) {
  const auto count = static_cast<double>(times);
  steps += cost.steps * times;
  kernel_calls += cost.kernel_calls * times;
  flops += cost.flops * count;
  bytes += cost.bytes * count;
  estimated_ns += cost.estimated_ns * count;
}

struct Block {
  std::vector<Step> steps;
};

/// An argument or result of the plan, as jobs use it.
struct PlanParameter {
  partition::LocalParameter parameter;
  partition::ShardedType type;  ///< type.local: of every buffer
  int64_t shard_bytes = 0;
  TableId table = 0;
  SlotRef slot_ref;
  std::shared_ptr<const sharding::MeshView> view;  ///< of type.layout
  bool is_donated = false;                         ///< argument: this plan may write its buffers
  int64_t aliased = -1;  ///< argument: result that takes its buffers; result: argument whose buffers it takes

  /// Distinct shards: as many buffers as it has.
  [[nodiscard]] int64_t shard_count() const { return type.distinct_count(*view); }
  /// Where shard `shard`'s block begins in the global tensor; its end where the shard is beyond it.
  [[nodiscard]] tensor::Dims shard_start(int64_t shard) const;
  /// The block's real dims: type.local's, less at uneven ends (0: the shard is padding alone); the rest is padding.
  [[nodiscard]] tensor::Dims shard_dims(int64_t shard) const;
};

/// A callback of the program.
struct PlanEffect {
  partition::EffectPoint point;
  std::string name;
  ir::Location location;
  std::vector<tensor::TensorType> operands;
  std::vector<tensor::TensorType> results;
};

/// Bytes, known before the run and equal to what a run allocates or holds.
struct PlanMemory {
  int64_t arguments = 0;  ///< all arguments, all distinct shards
  int64_t donated = 0;    ///< of these, donated ones
  int64_t constants = 0;  ///< kept by the plan, shared by its runs
  int64_t arena = 0;
  int64_t own = 0;      ///< buffers that may leave as results and take no argument's buffer
  int64_t scratch = 0;  ///< of one step: scratch of all threads, workspaces of all shards
  /// The same for one device that holds one shard of everything: arguments, arena, own buffers, constants.
  int64_t device_arguments = 0;
  int64_t device_arena = 0;
  int64_t device_own = 0;
  int64_t device_constants = 0;
};

/// What all plans of a server have in common. Passes that are off change times and, but for what is said at three of
/// them, the bits of no result; operators turn them off to find out which of them is at fault, tests to compare.
struct PlanSettings {
  PlanSettings() = default;
  PlanSettings(int thread_count) : threads(thread_count) {}  // NOLINT(google-explicit-constructor): most have no more
  /// How many calls of one kernel may run at once (scratch is planned for that many): EngineOptions::threads.
  int threads = 1;
  /// False: what is computed twice is computed twice, and ops of constants are steps. Other loops are read in one go
  /// then, so sums of many f32 may have other last bits (as for `fuse`).
  bool simplify = true;
  /// False: every op is a step of its own. Fourier transforms of reals that a conversion made complex may have other
  /// last bits then, and sums of many f32: fours of them are added as floats, and which four they are depends on what
  /// is read in one go.
  bool fuse = true;
  /// False: fused loops over the same rows stay steps of their own.
  bool fuse_rows = true;
  /// False: operands of concatenations are made before they are put together.
  bool fuse_concatenations = true;
  /// False: matrix products that are summed over shards are made for each shard, and then added.
  bool fuse_sums = true;
  /// False: loops of a few iterations stay loops.
  bool unroll_whiles = true;
  /// False: loops carry arrays that they put together of rows as they are.
  bool split_carries = true;
  /// False: loops of small steps are executed step by step.
  bool small_whiles = true;
  /// False: products and reductions of few terms, and columns, stay as they are in loops that could be small. Sums of
  /// f32, and results of regions that are not associative, may be others then.
  bool small_while_forms = true;
  /// False: loops of short steps look up what a step reads and writes in each iteration.
  bool bound_whiles = true;
  /// False: steps are executed one by one over all shards.
  bool shard_sequences = true;
  /// False: transposes next to matrix products are steps of their own. Products that a library makes (f64, matrix times
  /// vector, large ones with AVX-512) may have other last bits then.
  bool fold_transposes = true;
  /// False: products that do not change in a loop are made in each iteration.
  bool hoist_products = true;
  /// False: sums of f32 over arrays whose last dim has two to four elements fold their short rows one by one, and may
  /// have other last bits then.
  bool split_short_dims = true;
  /// False: fused loops are interpreted, never made machine code.
  bool generate_code = true;
  /// False: devices may be of several processes, which do not read each other's memory. A reshard that gives a device
  /// the bytes of a shard that another one holds is a step then, not another name of these bytes.
  bool shares_memory = true;
  /// Elements that a fused loop computes before code is made of it, in tests; nothing: as many as pay for it.
  std::optional<int64_t> code_after;
};

/// A pass that can be off, by the name that an operator gives it.
struct PlanPass {
  const char* name;
  bool PlanSettings::*is_on;
};
inline constexpr std::array<PlanPass, 15> kPlanPasses = {{{"simplify", &PlanSettings::simplify},
                                                          {"fusion", &PlanSettings::fuse},
                                                          {"row_fusion", &PlanSettings::fuse_rows},
                                                          {"concatenation_fusion", &PlanSettings::fuse_concatenations},
                                                          {"sum_fusion", &PlanSettings::fuse_sums},
                                                          {"unroll_whiles", &PlanSettings::unroll_whiles},
                                                          {"split_carries", &PlanSettings::split_carries},
                                                          {"small_while_forms", &PlanSettings::small_while_forms},
                                                          {"small_whiles", &PlanSettings::small_whiles},
                                                          {"bound_whiles", &PlanSettings::bound_whiles},
                                                          {"shard_sequences", &PlanSettings::shard_sequences},
                                                          {"fold_transposes", &PlanSettings::fold_transposes},
                                                          {"hoist_products", &PlanSettings::hoist_products},
                                                          {"short_dims", &PlanSettings::split_short_dims},
                                                          {"generated_code", &PlanSettings::generate_code}}};

struct PlanOptions : PlanSettings {
  /// Positions of arguments that may be overwritten.
  std::vector<int64_t> donate;
  /// True: those that the program's parameters donate (LocalParameter::is_donated), too.
  bool donate_as_text_says = false;
};

/// Immutable; any thread; shared by any number of runs.
struct Plan {
  std::vector<sharding::MeshView> views;
  std::vector<ShardTable> tables;
  std::vector<std::vector<int32_t>> maps;
  std::vector<PlanValue> values;  ///< by LocalId
  std::vector<Slot> slots;
  std::vector<Block> blocks;  ///< blocks[0] is the program
  std::vector<PlanParameter> arguments;
  std::vector<PlanParameter> results;
  std::vector<PlanEffect> effects;
  std::vector<std::byte> constant_bytes;
  int64_t constant_start = 0;  ///< first byte of constant_bytes that is aligned to 64
  int64_t pointer_count = 0;   ///< pointers that a run keeps
  int64_t device_count = 1;
  int64_t step_count = 0;  ///< static, over all blocks
  bool has_loops = false;  ///< steps may run more than once
  /// Some device reads the bytes of a shard that another one holds, without a collective: a reshard that moves shards
  /// whole (between meshes; out of a manual computation that calls a value replicated). All devices must be of one
  /// process. PlanSettings::shares_memory makes steps of these.
  bool shares_between_devices = false;
  /// Steps that a run executes, an iteration of a loop counted as one more; -1: that depends on data.
  int64_t executed_steps = -1;
  double estimated_ns = 0;  ///< one thread, loops counted once
  /// by flat device: its part of the estimated work; a shared shard is its first device's
  std::vector<double> device_share;
  int threads = 1;
  int64_t scratch_bytes = 0;  ///< of one kernel call, a multiple of 64
  /// Of all calls of a step that run at once: as many as there are threads, or work items where these are fewer.
  int64_t shared_scratch_bytes = 0;
  int64_t workspace_bytes = 0;  ///< of one execution of a kernel on one shard, a multiple of 64
  PlanMemory memory;
  /// Arguments, arena, results that take no argument's buffer, scratch: the most bytes that a run holds.
  int64_t peak_bytes = 0;
  [[nodiscard]] int64_t device_scratch_bytes() const { return scratch_bytes + workspace_bytes; }
  /// What one device needs that holds one shard of everything, with scratch for one thread.
  [[nodiscard]] int64_t device_peak_bytes() const {
    return memory.device_arguments + memory.device_arena + memory.device_own + memory.device_constants +
           device_scratch_bytes();
  }
  std::vector<std::string> warnings;  ///< donated arguments that no result can take, with dtype and shape

  /// Whether a result has a size that depends on data: the last result has the sizes then.
  [[nodiscard]] bool has_bounded_results() const { return !results.empty() && results.back().parameter.is_sizes; }
  /// Results that a client sees.
  [[nodiscard]] size_t result_count() const { return results.size() - (has_bounded_results() ? 1 : 0); }
  [[nodiscard]] const ShardTable& table(TableId id) const { return tables[static_cast<size_t>(id)]; }
  [[nodiscard]] const Slot& slot(SlotId id) const { return slots[static_cast<size_t>(id)]; }
  [[nodiscard]] const Block& block(BlockId id) const { return blocks[static_cast<size_t>(id)]; }
  /// Shard of the slot that shard `shard` of a step or value is in.
  [[nodiscard]] int64_t slot_shard(const SlotRef& ref, int64_t shard) const {
    return ref.map == kIdentity ? shard : maps[static_cast<size_t>(ref.map)][static_cast<size_t>(shard)];
  }
  [[nodiscard]] const std::byte* constant_data() const { return constant_bytes.data() + constant_start; }
};

using PlanRef = std::shared_ptr<const Plan>;

/// Rewrites products, fuses, assigns buffers, prepares kernels. Throws unsupported_dtype, unsupported_op with
/// line and name where a kernel is missing.
PlanRef make_plan(const partition::LocalProgram& program, const PlanOptions& options = {});

/// One line a step, with storage and cost: for people and tests.
std::string to_text(const Plan& plan);

}  // namespace meshd::compile
