// The plan builder: a plan under construction, with values where the finished plan has slots.
// The passes over it, in order, and the file of each:
//
// 1. divergence         values assigned under divergent control flow vary at least as the condition does
// 2. plan_builder       makes blocks with carried variables and copies of control flow
// 3. fusion             fuses pointwise ops of a block, and the reductions behind them, into one step each;
//    producer_fusion    and gathers and products with the reduction that alone reads them;
//    row_fusion         fuses such loops over the same rows into steps that pass over the rows once;
//    concatenation_fusion  and concatenations with what they alone read
// 4. liveness           computes when each value is live
// 5. buffer_assignment  copies vanish, steps write in place, donated arguments become results; arena offsets
// 6. plan               writes slot references, kernels and costs of each step
//
// Pass 2 turns names of the same bytes into aliases (views, reshards that move nothing, loop invariants). An alias has
// the value whose bytes it shares and the map from its shards to that value's. A loop becomes, for each value that it
// carries:
//
//   a copy of the initial value into the variable, before the loop
//   a copy of the body's result into `back`, the variable's second buffer, at the end of the body
//   an exchange of the two after each iteration
//
// The copies at the end of a body are one parallel copy, as in SSA destruction: all read before any writes.
// Example: a loop carries (a, b) -> (b, a). In: a = 55, b = 89. Out after three iterations: a = 89, b = 55. With
// copies one after the other (a = b, b = a) both would be 89.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "service/compile/plan/plan.h"
#include "service/compile/plan/tables.h"
#include "service/ops/kernel_interface.h"
#include "service/partition/local_walk.h"

namespace meshd::compile {

using partition::LocalId;
using partition::LocalOp;

/// A value of the local program, or a variable that build_steps() adds: one that a loop carries, a result's own bytes.
struct BuilderValue {
  partition::ShardedType type;  ///< `varies` after divergence analysis
  TableId table = 0;
  int64_t bytes = 0;
  std::string name;
  LocalId alias_of = -1;              ///< shares the bytes of that value ...
  MapId alias_map = kIdentity;        ///< ... shard i is that one's shard alias_map[i]
  const LocalOp* constant = nullptr;  ///< kConstant or kPosition: bytes of the plan
  int64_t argument = -1;              ///< a program argument
};

struct BuilderBlock;

/// One step. Operands and results are tensor values only.
struct BuilderStep {
  StepKind kind = StepKind::kKernel;
  const LocalOp* op = nullptr;  ///< null for copies
  TableId table = 0;
  std::vector<LocalId> operands;
  std::vector<LocalId> results;
  ops::PreparedKernel kernel;
  /// For offsets: the layout and the local size of the kernel's iteration dimensions.
  partition::ShardLayout offset_layout;
  tensor::Dims offset_sizes;
  CollectiveMaker collective;  ///< kCollective
  std::vector<BuilderBlock> blocks;
  /// kWhile: per carried tensor. `variable` holds it; the body's result reaches `back`, and the two are exchanged after
  /// each iteration.
  struct Carry {
    LocalId variable = -1;
    LocalId body_result = -1;
    LocalId back = -1;
    bool in_place = false;  ///< buffer assignment: body_result is written into `variable`, no exchange
  };
  std::vector<Carry> carries;
  bool is_copy = false;      ///< result 0 = operand 0; vanishes where both share memory
  bool is_together = false;  ///< part of the parallel copy at the end of a body
  bool is_bool = false;
  std::string name;
  ir::Location location;
  std::vector<int32_t> lines;
  std::string reason;
  kernels::Nonfinite constants;  ///< as Step's
  int64_t begin = 0;             ///< times, by liveness
  int64_t end = 0;
};

/// The name without its dialect: "add" of "stablehlo.add".
std::string without_dialect(const std::string& name);
/// The lines become lines of the step, too: ascending, each once.
void add_lines(BuilderStep& step, const std::vector<int32_t>& lines);
/// The step computes what a producer of this name, at these lines, did before, and says so in its own name and lines.
void note_producer(BuilderStep& step, const std::string& producer, const std::vector<int32_t>& lines);

/// The step is one op, as it is in the program.
bool is_single_op(const BuilderStep& step);

/// Something of the values of a block, where all others have `none`: what a pass over a block keeps does not grow with
/// the program around it.
template <typename T>
class OfValues {
 public:
  explicit OfValues(T none = {}) : none_(std::move(none)) {}
  const T& operator()(LocalId id) const {
    const auto found = given_.find(id);
    return found == given_.end() ? none_ : found->second;
  }
  T& operator[](LocalId id) { return given_.try_emplace(id, none_).first->second; }

 private:
  T none_;
  std::unordered_map<LocalId, T> given_;
};

/// What a step reads, `f(id)` each: control flow reads what its blocks read of values around it, too.
template <typename F>
void for_each_operand(const BuilderStep& step, const F& f) {
  for (const LocalId id : step.operands) f(id);
  if (step.op == nullptr || step.op->blocks.empty()) return;
  for (const LocalId id : step.op->operands) f(id);
  for (const partition::LocalBlock& block : step.op->blocks) partition::for_each_use(block, f);
}

struct BuilderBlock {
  std::vector<BuilderStep> steps;
  std::vector<LocalId> results;  ///< tensors that must be in memory at the end (of a loop: the predicate)
  int64_t begin = 0;
  int64_t end = 0;
};

struct PlanBuilder {
  const partition::LocalProgram* program = nullptr;
  TableSet tables;
  std::vector<BuilderValue> values;
  OfValues<std::vector<LocalId>> names;  ///< by value: those whose alias_of it is
  BuilderBlock body;
  std::vector<LocalId> results;         ///< of the program
  bool shares_between_devices = false;  ///< Plan::shares_between_devices
  std::optional<int64_t> code_after;    ///< of its fused loops (kernels::FusedLoop)

  PlanBuilder(const partition::LocalProgram& local, int64_t device_count)
      : program(&local), tables(local.views, device_count) {}
  [[nodiscard]] BuilderValue& value(LocalId id) { return values[static_cast<size_t>(id)]; }
  [[nodiscard]] const BuilderValue& value(LocalId id) const { return values[static_cast<size_t>(id)]; }
  /// A new variable like `like`.
  LocalId add_like(LocalId like, const std::string& name);
  /// The value whose memory `id` is.
  [[nodiscard]] LocalId memory_of(LocalId id) const;
  /// The same, and the map from id's shards to its shards.
  [[nodiscard]] std::pair<LocalId, MapId> root(LocalId id);
};

/// Passes 2 and 3, over a program without dead ops (partition/dead_ops.h).
PlanBuilder build_steps(const partition::LocalProgram& program, const PlanOptions& options);

/// Fuses and orders the ops of one block. `ops` are those that become steps; `live_out`: values that must be in memory
/// for the block's results and the blocks inside it. Steps of control flow and effects are returned empty;
/// build_steps() fills them.
std::vector<BuilderStep> fuse_block(PlanBuilder& builder, const std::vector<const LocalOp*>& ops,
                                    const std::vector<LocalId>& live_out, bool fuse);

/// Part of pass 3: reductions compute what they alone read, a gather or (`fuses_sums`) a product that is summed over
/// shards. `live_out` as fuse_block() takes it.
void fuse_producers(const PlanBuilder& builder, const std::vector<LocalId>& live_out, bool fuses_sums,
                    std::vector<BuilderStep>& steps);
/// Part of pass 3, behind the others: concatenations read what slices copied for them, and compute what loops computed.
void fuse_concatenations(const PlanBuilder& builder, const std::vector<LocalId>& live_out,
                         std::vector<BuilderStep>& steps);
/// Part of pass 3: loops over the same rows become one step that runs them block of rows by block of rows
/// (kernels/fused/row_loop.h), so that what passes between them stays in the cache. `steps` are in an order in which
/// they can run, before and after.
void fuse_rows(PlanBuilder& builder, const std::vector<LocalId>& live_out, std::vector<BuilderStep>& steps);

/// A step for an op that is not fused (kOp with a kernel, collectives); control flow and effects are build_steps()'s
/// own. `kernel`: of a kOp, in place of the row's own.
BuilderStep make_step(PlanBuilder& builder, const LocalOp& op,
                      std::optional<ops::PreparedKernel> kernel = std::nullopt);
/// The constant's element if all its elements are equal; null for other constants and for what is no constant.
const ir::DenseAttr* splat_of(const PlanBuilder& builder, LocalId id);
/// Writes a splat constant into a value's memory.
BuilderStep make_fill(PlanBuilder& builder, LocalId splat, LocalId to);
/// Copies one value's bytes into another of the same local size; runs for each shard of `to`.
BuilderStep make_copy(PlanBuilder& builder, LocalId from, LocalId to);
/// The step's kernel gets the offsets of value `id`'s shards.
void set_offsets(PlanBuilder& builder, BuilderStep& step, LocalId id);

/// Types of an op's operands and results, for row functions.
struct LocalView {
  std::vector<ir::Type> operands;
  std::vector<ir::Type> results;
  ops::OpView view;
  LocalView(const partition::LocalProgram& program, const LocalOp& op);
  LocalView(const LocalView&) = delete;
  LocalView& operator=(const LocalView&) = delete;
};

/// Whether an op gives the same for the same operands and does nothing else: it may be moved, or left out.
bool is_pure(const partition::LocalProgram& program, const LocalOp& op);

}  // namespace meshd::compile
