#include "service/compile/plan/plan.h"

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <map>
#include <optional>

#include "service/compile/plan/bound_whiles.h"
#include "service/compile/plan/bubble_up_gathers.h"
#include "service/compile/plan/buffer_assignment.h"
#include "service/compile/plan/plan_builder.h"
#include "service/compile/plan/products.h"
#include "service/compile/plan/shard_sequences.h"
#include "service/compile/plan/shard_whiles.h"
#include "service/compile/plan/shared_reads.h"
#include "service/compile/plan/short_dims.h"
#include "service/compile/plan/simplify.h"
#include "service/compile/plan/small_while_forms.h"
#include "service/compile/plan/small_whiles.h"
#include "service/compile/plan/split_carries.h"
#include "service/compile/plan/unroll_whiles.h"
#include "service/core/checked_math.h"
#include "service/core/error.h"
#include "service/tensor/buffer.h"

namespace meshd::compile {
namespace {

// For estimates only: bytes of one core in a nanosecond, and what a step costs besides.
constexpr double kBytesPerNs = 20;
constexpr double kStepNs = 60;
constexpr int64_t kMostCounted = int64_t{1} << 60;  // steps of a run; a larger number counts as unknown

class PlanMaker {
 public:
  PlanMaker(const partition::LocalProgram& program, const PlanOptions& options)
      : program_(program),
        options_(options),
        builder_(build_steps(program, options)),
        plan_(std::make_shared<Plan>()) {}

  PlanRef run() {
    std::vector<bool> donated;
    for (const partition::LocalParameter& argument : program_.arguments) {
      const bool is_asked =
          std::find(options_.donate.begin(), options_.donate.end(), argument.position) != options_.donate.end();
      donated.push_back(is_asked || (options_.donate_as_text_says && argument.is_donated));
    }
    assignment_ = assign_buffers(builder_, donated);
    plan_->threads = std::max(options_.threads, 1);
    plan_->device_count = program_.device_count();
    plan_->warnings = program_.warnings;
    plan_->device_share.assign(static_cast<size_t>(plan_->device_count), 0);
    plan_->blocks.emplace_back();
    make_block(builder_.body, 0);
    for (size_t i = 0; i < program_.arguments.size(); ++i)
      plan_->arguments.push_back(parameter(program_.arguments[i], program_.arguments[i].value));
    for (size_t i = 0; i < program_.results.size(); ++i)
      plan_->results.push_back(parameter(program_.results[i], builder_.results[i]));
    mark_donation(donated);
    make_values();
    place_slots();
    plan_->shares_between_devices = builder_.shares_between_devices || builder_.tables.reads_elsewhere();
    builder_.tables.move_into(*plan_);
    if (!options_.shares_memory) {
      // Nothing is known to be left; processes would compute with other bytes if something were.
      plan_->shares_between_devices = plan_->shares_between_devices || reads_other_shards(*plan_);
    }
    if (options_.shard_sequences) {
      find_shard_sequences(*plan_);
      find_shard_whiles(*plan_);
      add_scratch_of_sequences();
    }
    if (options_.small_whiles) add_scratch(core::round_up(find_small_whiles(*plan_), tensor::kBufferAlignment), 1);
    if (options_.bound_whiles) find_bound_whiles(*plan_);
    finish_memory();
    plan_->executed_steps = executed_steps(plan_->block(0)).value_or(-1);
    return plan_;
  }

 private:
  SlotRef slot_ref(LocalId id) {
    const auto [root, map] = builder_.root(id);
    return {assignment_.slot_of[static_cast<size_t>(root)], map, 0, id};
  }

  // Where shards of a step over `table` find the value.
  SlotRef slot_ref_for(TableId table, LocalId id, bool is_collective = false) {
    SlotRef out = slot_ref(id);
    out.map = builder_.tables.compose(builder_.tables.projection(table, builder_.value(id).table, is_collective),
                                      out.map, table);
    return out;
  }

  void make_block(BuilderBlock& from, BlockId to) {
    for (BuilderStep& builder_step : from.steps) {
      if (builder_step.is_copy && is_needless(builder_step)) continue;
      Step step = make_step_of(builder_step);
      plan_->estimated_ns += step.estimated_ns;
      if (!builder_step.blocks.empty()) {
        step.blocks_first = static_cast<BlockId>(plan_->blocks.size());
        step.block_count = static_cast<int64_t>(builder_step.blocks.size());
        plan_->blocks.resize(plan_->blocks.size() + builder_step.blocks.size());
        plan_->has_loops = plan_->has_loops || builder_step.kind == StepKind::kWhile;
        step.number = static_cast<int32_t>(plan_->step_count++);
        for (size_t b = 0; b < builder_step.blocks.size(); ++b)
          make_block(builder_step.blocks[b], step.blocks_first + static_cast<BlockId>(b));
      } else {
        step.number = static_cast<int32_t>(plan_->step_count++);
      }
      plan_->blocks[static_cast<size_t>(to)].steps.push_back(std::move(step));
    }
  }

  // As the engine counts them (RunImpl::step_done, end_of_body); nothing where data decides.
  std::optional<int64_t> executed_steps(const Block& block) const {
    int64_t total = 0;
    for (const Step& step : block.steps) {
      const auto inner = inner_steps(step);
      if (!inner || *inner > kMostCounted - total) return std::nullopt;
      total += 1 + *inner;
    }
    return total;
  }

  std::optional<int64_t> inner_steps(const Step& step) const {
    if (step.block_count == 0) return 0;
    std::vector<int64_t> counts;
    for (int64_t b = 0; b < step.block_count; ++b) {
      const auto count = executed_steps(plan_->block(step.blocks_first + static_cast<BlockId>(b)));
      if (!count) return std::nullopt;
      counts.push_back(*count);
    }
    if (step.kind == StepKind::kCase) {
      // Devices that take different branches take one after the other.
      const bool is_same = std::all_of(counts.begin(), counts.end(), [&](int64_t one) { return one == counts[0]; });
      return is_same && plan_->table(step.table).count() == 1 ? std::optional(counts[0]) : std::nullopt;
    }
    const int64_t iteration = counts[0] + counts[1] + 1;
    if (step.trip_count < 0 || step.trip_count > (kMostCounted - counts[0]) / iteration) return std::nullopt;
    return step.trip_count * iteration + counts[0];
  }

  // Both sides of the copy are one slot, or the target has no slot.
  bool is_needless(const BuilderStep& step) {
    const SlotRef to = slot_ref_for(step.table, step.results[0]);
    const SlotRef from = slot_ref_for(step.table, step.operands[0]);
    return to.slot < 0 || (to.slot == from.slot && to.map == from.map);
  }

  Step make_step_of(BuilderStep& from) {
    Step step;
    step.kind = from.kind;
    step.table = from.table;
    step.name = std::move(from.name);
    step.location = from.location;
    step.lines = std::move(from.lines);
    step.reason = std::move(from.reason);
    step.constants = from.constants;
    step.is_bool = from.is_bool;
    step.is_copy = from.is_copy;
    const bool is_collective = from.kind == StepKind::kCollective;
    for (const LocalId id : from.operands) step.operands.push_back(slot_ref_for(from.table, id, is_collective));
    if (from.kind == StepKind::kWhile) {
      step.trip_count = from.op->trip_count;
      for (const BuilderStep::Carry& carry : from.carries) {
        if (!carry.in_place) step.exchanges.emplace_back(slot_ref(carry.variable).slot, slot_ref(carry.back).slot);
      }
    } else if (from.kind != StepKind::kCase) {
      for (const LocalId id : from.results) step.results.push_back(slot_ref_for(from.table, id));
    }
    if (from.kind == StepKind::kEffect) step.effect = add_effect(from);
    if (from.collective != nullptr)
      step.collective = std::make_shared<const LazyCollective>(std::move(from.collective));
    const auto count = static_cast<double>(builder_.tables[from.table].count());
    step.estimated_ns =
        kStepNs + count * (from.kernel.flops / from.kernel.flops_per_ns + from.kernel.bytes / kBytesPerNs);
    ns_of_table_[from.table] += step.estimated_ns / count;
    step.flops = from.kernel.flops;
    step.bytes = from.kernel.bytes;
    step.parts = from.kernel.parts;
    if (from.kernel.scratch_bytes > 0) {
      int64_t& scratch = from.kernel.scratch_bytes;
      scratch = core::round_up(scratch, tensor::kBufferAlignment);
      const int64_t work_items = core::checked_mul(from.kernel.work_count, builder_.tables[from.table].count());
      add_scratch(scratch, std::min<int64_t>(plan_->threads, work_items));
    }
    if (from.kernel.workspace_bytes > 0) {
      int64_t& workspace = from.kernel.workspace_bytes;
      workspace = core::round_up(workspace, tensor::kBufferAlignment);
      workspace_ = std::max(workspace_, workspace);
      workspaces_ = std::max(workspaces_, core::checked_mul(workspace, builder_.tables[from.table].count()));
    }
    if (from.kernel.uses_offsets) set_offsets(from, step);
    step.kernel = std::make_shared<const ops::PreparedKernel>(std::move(from.kernel));
    return step;
  }

  void set_offsets(const BuilderStep& from, Step& step) {
    const sharding::MeshView& view = builder_.tables.view(from.offset_layout.view);
    step.offset_rank = static_cast<int64_t>(from.offset_sizes.size());
    const ShardTable& table = builder_.tables[from.table];
    for (int64_t shard = 0; shard < table.count(); ++shard) {
      const tensor::Dims coords = table.view == from.offset_layout.view ? builder_.tables.coordinates(from.table, shard)
                                                                        : tensor::Dims(view.sub_axis_sizes.size(), 0);
      for (size_t d = 0; d < from.offset_sizes.size(); ++d) {
        step.offsets.push_back(sharding::part_index(view, from.offset_layout.dims[d], coords) * from.offset_sizes[d]);
      }
    }
  }

  int32_t add_effect(const BuilderStep& from) {
    PlanEffect made;
    made.point = from.op->effect;
    made.name = from.op->name;
    made.location = from.op->location;
    for (const LocalId id : from.operands) made.operands.push_back(builder_.value(id).type.local);
    for (const LocalId id : from.results) made.results.push_back(builder_.value(id).type.local);
    plan_->effects.push_back(std::move(made));
    return static_cast<int32_t>(plan_->effects.size() - 1);
  }

  PlanParameter parameter(const partition::LocalParameter& local, LocalId id) {
    const BuilderValue& value = builder_.value(id);
    PlanParameter out;
    out.parameter = local;
    out.type = value.type;
    out.shard_bytes = value.bytes;
    out.table = value.table;
    out.slot_ref = slot_ref(id);
    const int number = value.type.layout.view;
    std::shared_ptr<const sharding::MeshView>& view = shared_views_[number];
    if (view == nullptr) view = std::make_shared<const sharding::MeshView>(builder_.tables.view(number));
    out.view = view;
    return out;
  }

  void mark_donation(const std::vector<bool>& donated) {
    for (size_t i = 0; i < plan_->arguments.size(); ++i) {
      PlanParameter& argument = plan_->arguments[i];
      argument.is_donated = donated[i];
      const int64_t bytes = core::checked_mul(argument.shard_bytes, builder_.tables[argument.table].count());
      add(plan_->memory.arguments, bytes);
      add(plan_->memory.device_arguments, argument.shard_bytes);
      if (!donated[i]) continue;
      add(plan_->memory.donated, bytes);
      for (size_t r = 0; r < plan_->results.size(); ++r) {
        PlanParameter& result = plan_->results[r];
        if (result.aliased >= 0 || result.slot_ref.slot != argument.slot_ref.slot || argument.slot_ref.slot < 0)
          continue;
        argument.aliased = static_cast<int64_t>(r);
        result.aliased = static_cast<int64_t>(i);
        break;
      }
    }
  }

  void make_values() {
    for (LocalId id = 0; id < static_cast<LocalId>(builder_.values.size()); ++id) {
      const BuilderValue& value = builder_.value(id);
      plan_->values.push_back({value.type, value.table, slot_ref(id), value.name});
    }
  }

  void place_slots() {
    plan_->slots = std::move(assignment_.slots);
    for (Slot& slot : plan_->slots) {
      const int64_t count = builder_.tables[slot.table].count();
      slot.first_pointer = plan_->pointer_count;
      plan_->pointer_count += count;
      if (slot.storage == Storage::kOwn) {
        add(plan_->memory.own, core::checked_mul(slot.bytes, count));
        add(plan_->memory.device_own, slot.bytes);
      }
      if (slot.storage == Storage::kConstant) add(plan_->memory.device_constants, slot.bytes);
    }
    const auto settle = [&](SlotRef& at) {
      if (at.slot >= 0) at.first = plan_->slots[static_cast<size_t>(at.slot)].first_pointer;
    };
    for (Block& block : plan_->blocks) {
      for (Step& step : block.steps) {
        for (SlotRef& at : step.operands) settle(at);
        for (SlotRef& at : step.results) settle(at);
      }
    }
    for (PlanValue& value : plan_->values) settle(value.slot_ref);
    for (PlanParameter& argument : plan_->arguments) settle(argument.slot_ref);
    for (PlanParameter& result : plan_->results) settle(result.slot_ref);
    for (const auto& [table, ns] : ns_of_table_) {
      for (const int32_t device : builder_.tables[table].device_of_shard) {
        plan_->device_share[static_cast<size_t>(device)] += ns / std::max(plan_->estimated_ns, 1.0);
      }
    }
  }

  void add_scratch(int64_t of_call, int64_t calls_at_once) {
    scratch_ = std::max(scratch_, of_call);
    shared_scratch_ = std::max(shared_scratch_, core::checked_mul(of_call, calls_at_once));
  }

  // In a sequence each thread has as much as the step that needs most of it, whether that has work items or none.
  void add_scratch_of_sequences() {
    for (const Block& block : plan_->blocks) {
      for (size_t i = 0; i < block.steps.size(); ++i) {
        if (const auto& loop = block.steps[i].by_shard; loop != nullptr) {
          add_scratch(loop->scratch_bytes, std::min<int64_t>(plan_->threads, plan_->table(loop->table).count()));
        }
        const auto steps = std::span(block.steps).subspan(i, static_cast<size_t>(block.steps[i].sequence));
        if (steps.size() < 2) continue;
        int64_t most = 0;
        for (const Step& step : steps) most = std::max(most, step.kernel->scratch_bytes);
        add_scratch(most, std::min<int64_t>(plan_->threads, plan_->table(steps.front().table).count()));
      }
    }
  }

  void finish_memory() {
    // Constants begin at an address that is a multiple of the alignment, whatever the address of the vector's memory
    // is.
    const size_t size = assignment_.constants.size();
    plan_->constant_bytes.resize(size == 0 ? 0 : size + static_cast<size_t>(tensor::kBufferAlignment));
    if (size != 0) {
      const auto address = reinterpret_cast<uintptr_t>(plan_->constant_bytes.data());
      plan_->constant_start = static_cast<int64_t>((tensor::kBufferAlignment - address % tensor::kBufferAlignment) %
                                                   tensor::kBufferAlignment);
      std::memcpy(plan_->constant_bytes.data() + plan_->constant_start, assignment_.constants.data(), size);
    }
    plan_->memory.constants = static_cast<int64_t>(size);
    plan_->memory.arena = assignment_.arena_bytes;
    plan_->memory.device_arena = assignment_.device_arena_bytes;
    plan_->scratch_bytes = scratch_;
    plan_->shared_scratch_bytes = shared_scratch_;
    plan_->workspace_bytes = workspace_;
    plan_->memory.scratch = sum({shared_scratch_, workspaces_});
    const PlanMemory& memory = plan_->memory;
    plan_->peak_bytes = sum({memory.arguments, memory.arena, memory.own, memory.scratch});
    // Asked for later, and then it fits.
    static_cast<void>(sum({memory.device_arguments, memory.device_arena, memory.device_own, memory.device_constants,
                           plan_->scratch_bytes, plan_->workspace_bytes}));
  }

  // Sizes add up to more than 63 bits in programs that are only explained.
  static void add(int64_t& total, int64_t bytes) { total = core::checked_add(total, bytes); }
  static int64_t sum(std::initializer_list<int64_t> sizes) {
    int64_t total = 0;
    for (const int64_t size : sizes) add(total, size);
    return total;
  }

  const partition::LocalProgram& program_;
  const PlanOptions& options_;
  PlanBuilder builder_;
  BufferAssignment assignment_;
  std::shared_ptr<Plan> plan_;
  std::map<int, std::shared_ptr<const sharding::MeshView>> shared_views_;
  std::map<TableId, double> ns_of_table_;  // of one shard
  int64_t scratch_ = 0;                    // of one call
  int64_t shared_scratch_ = 0;             // of the calls of a step that run at once
  int64_t workspace_ = 0;                  // of one shard
  int64_t workspaces_ = 0;                 // of all shards of a step
};

}  // namespace

tensor::Dims PlanParameter::shard_start(int64_t shard) const {
  const tensor::Dims coords = view->coordinates(type.varies, shard);
  tensor::Dims out;
  for (size_t d = 0; d < type.rank(); ++d) out.push_back(type.rows(*view, d, coords).start);
  return out;
}

tensor::Dims PlanParameter::shard_dims(int64_t shard) const { return type.shard_dims(*view, shard); }

PlanRef make_plan(const partition::LocalProgram& program, const PlanOptions& options) {
  using Pass = std::optional<partition::LocalProgram> (*)(const partition::LocalProgram&, const PlanSettings&);
  std::optional<partition::LocalProgram> rewritten;
  for (const Pass pass : {Pass{unroll_whiles}, Pass{simplify}, Pass{split_carries}, Pass{bubble_up_gathers},
                          Pass{rewrite_products}, Pass{write_small_while_forms}, Pass{split_short_dims}}) {
    if (auto made = pass(rewritten ? *rewritten : program, options)) rewritten = std::move(made);
  }
  return PlanMaker(rewritten ? *rewritten : program, options).run();
}

}  // namespace meshd::compile
