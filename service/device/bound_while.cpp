#include "service/device/bound_while.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "service/ops/fused_call.h"

namespace meshd::device {
namespace {

constexpr int64_t kSmallIterations = 1000;  // of a small loop between two checkpoints
constexpr int kMostRepeated = 64;           // calls that keep registers: together they stay in the second level cache

void exchange(const compile::Plan& plan, const compile::Step& loop, std::vector<std::byte*>& table) {
  for (const auto& [a, b] : loop.exchanges) {
    const compile::Slot& left = plan.slot(a);
    const auto x = table.begin() + left.first_pointer;
    std::swap_ranges(x, x + plan.table(left.table).count(), table.begin() + plan.slot(b).first_pointer);
  }
}

}  // namespace

BoundWhile::BoundWhile(const Context& context, const compile::Step& loop, std::vector<std::byte*>& table)
    : context_(context), loop_(loop) {
  const bool exchanges = loop.bound->exchanges;
  const std::vector<std::byte*> before = exchanges ? table : std::vector<std::byte*>();
  iterations_[0] = bind_iteration(table);
  if (!exchanges) return;
  count_ = 2;
  iterations_[1] = bind_iteration(table);
  is_periodic_ = is_periodic_ && table == before;
}

BoundWhile::Iteration BoundWhile::bind_iteration(std::vector<std::byte*>& table) {
  Iteration out;
  for (const compile::Step& step : context_.plan.block(loop_.blocks_first).steps) bind(step, table, out.condition);
  const compile::SlotRef& predicate = loop_.operands[0];
  out.predicate = table[static_cast<size_t>(predicate.first + context_.plan.slot_shard(predicate, 0))];
  for (const compile::Step& step : context_.plan.block(loop_.blocks_first + 1).steps) bind(step, table, out.body);
  exchange(context_.plan, loop_, table);
  return out;
}

std::byte** BoundWhile::add_pointers(size_t count) {
  pointers_.push_back(std::make_unique<std::byte*[]>(count));
  return pointers_.back().get();
}

void BoundWhile::bind(const compile::Step& step, std::vector<std::byte*>& table, std::vector<Call>& to) {
  if (step.kind == compile::StepKind::kWhile) return bind_loop(step, table, to);
  if (step.kind == compile::StepKind::kCase) return bind_branches(step, table, to);
  bind_calls(step, table, to);
}

void BoundWhile::bind_calls(const compile::Step& step, const std::vector<std::byte*>& table, std::vector<Call>& to) {
  const compile::Plan& plan = context_.plan;
  const ops::PreparedKernel& kernel = *step.kernel;
  const auto pointer_of = [&](const compile::SlotRef& ref, int64_t shard) {
    return table[static_cast<size_t>(ref.first + plan.slot_shard(ref, shard))];
  };
  const int64_t shards = plan.table(step.table).count();
  kernels::PackedOperand* kept = nullptr;
  if (kernel.packed_operand >= 0 && shards > 1) {
    const compile::SlotRef& packed = step.operands[static_cast<size_t>(kernel.packed_operand)];
    bool is_shared = true;
    for (int64_t shard = 1; shard < shards; ++shard)
      is_shared = is_shared && pointer_of(packed, shard) == pointer_of(packed, 0);
    if (is_shared) kept = kept_.emplace_back(std::make_unique<kernels::PackedOperand>()).get();
  }
  for (int64_t shard = 0; shard < shards; ++shard) {
    std::byte** const results = add_pointers(step.results.size());
    for (size_t i = 0; i < step.results.size(); ++i) results[i] = pointer_of(step.results[i], shard);
    std::byte* const scratch = kernel.scratch_bytes > 0 ? context_.scratch : nullptr;
    if (step.kind == compile::StepKind::kCollective) {
      const compile::Collective& collective = step.collective->get(plan);
      const auto& sources = collective.sources[static_cast<size_t>(shard)];
      std::byte** const from = add_pointers(sources.size());
      for (size_t i = 0; i < sources.size(); ++i) {
        const compile::SlotRef& operand = step.operands[static_cast<size_t>(sources[i].operand)];
        from[i] = table[static_cast<size_t>(operand.first + sources[i].slot_shard)];
      }
      compile::CollectiveCall call;
      call.shard = shard;
      call.sources = from;
      call.results = results;
      call.end = collective.work_items[static_cast<size_t>(shard)];
      call.scratch = scratch;
      call.checkpoint = &context_.checkpoint;
      if (call.end > 0) to.emplace_back(CollectiveCall{&collective, call});
      continue;
    }
    std::byte** const operands = add_pointers(step.operands.size());
    for (size_t i = 0; i < step.operands.size(); ++i) operands[i] = pointer_of(step.operands[i], shard);
    ops::KernelCall call;
    call.operands = operands;
    call.results = results;
    call.end = kernel.work_count;
    call.scratch = scratch;
    call.checkpoint = &context_.checkpoint;
    call.kept = kept;
    if (kernel.workspace_bytes > 0)
      call.workspace = context_.scratch + plan.shared_scratch_bytes + shard * kernel.workspace_bytes;
    if (!step.offsets.empty()) call.result_offsets = step.offsets.data() + shard * step.offset_rank;
    if (call.end == 0) continue;
    KernelCall bound{&kernel, call, kept != nullptr && shard == 0, nullptr};
    if (kernel.fused != nullptr && repeated_ < kMostRepeated)
      bound.repeated = kernels::RepeatedLoop::make(kernel.fused, ops::fused_call(call));
    if (bound.repeated != nullptr) ++repeated_;
    to.emplace_back(std::move(bound));
  }
}

void BoundWhile::bind_loop(const compile::Step& step, std::vector<std::byte*>& table, std::vector<Call>& to) {
  InnerLoop inner;
  inner.step = &step;
  if (step.small != nullptr) {
    inner.small = std::make_unique<SmallWhileBlocks>(*step.small, context_.scratch, table);
  } else {
    inner.bound = std::make_unique<BoundWhile>(context_, step, table);
    is_periodic_ = is_periodic_ && inner.bound->is_periodic();
    // Where its slots are when it is over.
    if (step.trip_count % 2 != 0)
      for_each_exchange(context_.plan, step, [&](const compile::Step& loop) { exchange(context_.plan, loop, table); });
  }
  to.emplace_back(std::move(inner));
}

void BoundWhile::bind_branches(const compile::Step& step, std::vector<std::byte*>& table, std::vector<Call>& to) {
  auto made = std::make_unique<Branches>();
  const compile::SlotRef& which = step.operands[0];
  made->is_bool = step.is_bool;
  made->which = table[static_cast<size_t>(which.first + context_.plan.slot_shard(which, 0))];
  made->all.resize(static_cast<size_t>(step.block_count));
  for (size_t i = 0; i < made->all.size(); ++i) {
    Branches::Branch& branch = made->all[i];
    for (const compile::Step& inner : context_.plan.block(step.blocks_first + static_cast<compile::BlockId>(i)).steps) {
      bind(inner, table, branch.calls);
      const bool is_control = inner.kind == compile::StepKind::kWhile || inner.kind == compile::StepKind::kCase;
      if (is_control)
        ++branch.cost.steps;
      else
        branch.cost.add(inner, context_.plan.table(inner.table).count());
    }
  }
  to.emplace_back(std::move(made));
}

void BoundWhile::for_each_exchange(const compile::Plan& plan, const compile::Step& loop,
                                   const std::function<void(const compile::Step&)>& exchange) {
  for (const compile::Step& step : plan.block(loop.blocks_first + 1).steps) {
    const bool is_bound = step.kind == compile::StepKind::kWhile && step.small == nullptr;
    if (is_bound && step.bound->exchanges && step.trip_count % 2 != 0) for_each_exchange(plan, step, exchange);
  }
  exchange(loop);
}

void BoundWhile::execute(std::vector<Call>& calls) {
  for (Call& call : calls) {
    if (KernelCall* const kernel = std::get_if<KernelCall>(&call)) {
      if (kernel->starts_packing) *kernel->call.kept = {};
      if (kernel->repeated != nullptr)
        kernel->repeated->run();
      else
        kernel->kernel->run(kernel->call);
    } else if (CollectiveCall* const collective = std::get_if<CollectiveCall>(&call)) {
      collective->collective->run(collective->call);
    } else if (InnerLoop* const loop = std::get_if<InnerLoop>(&call)) {
      execute(*loop);
    } else {
      execute(*std::get<std::unique_ptr<Branches>>(call));
    }
  }
}

void BoundWhile::execute(InnerLoop& inner) {
  ++inner.executions;
  if (inner.small == nullptr) {
    constexpr int64_t kAll = std::numeric_limits<int64_t>::max();
    inner.iterations += inner.bound->run(kAll).iterations;
    return;
  }
  inner.small->load();
  while (true) {
    const kernels::SmallWhile::Outcome out = inner.small->run(kSmallIterations);
    inner.iterations += out.iterations;
    if (out.is_over) break;
    context_.checkpoint.pass();
  }
  inner.small->store();
}

void BoundWhile::execute(Branches& branches) {
  size_t taken = 0;
  if (branches.is_bool) {
    taken = *branches.which != std::byte{0} ? 0 : 1;
  } else {
    uint32_t index = 0;
    std::memcpy(&index, branches.which, sizeof(index));
    taken = std::min<size_t>(index, branches.all.size() - 1);  // a negative one is beyond, too
  }
  ++branches.all[taken].executions;
  execute(branches.all[taken].calls);
}

BoundWhile::Outcome BoundWhile::run(int64_t most) {
  Outcome out;
  for (size_t which = 0; out.iterations < most; which = (which + 1) % count_) {
    Iteration& iteration = iterations_[which];
    execute(iteration.condition);
    out.is_over = *iteration.predicate == std::byte{0};
    if (out.is_over) break;
    execute(iteration.body);
    ++out.iterations;
    context_.checkpoint.pass();
  }
  return out;
}

compile::LoopCost BoundWhile::inner_cost() const {
  compile::LoopCost out;
  for (const Iteration& iteration : iterations_) add_inner_cost(iteration.body, out);
  return out;
}

void BoundWhile::add_inner_cost(const std::vector<Call>& calls, compile::LoopCost& to) {
  for (const Call& call : calls) {
    if (const InnerLoop* const inner = std::get_if<InnerLoop>(&call)) {
      const bool is_small = inner->small != nullptr;
      to.add(is_small ? inner->step->small->iteration : inner->step->bound->iteration, inner->iterations);
      to.add(is_small ? inner->step->small->condition : inner->step->bound->condition, inner->executions);
      if (!is_small) to.add(inner->bound->inner_cost(), 1);
    } else if (const auto* const branches = std::get_if<std::unique_ptr<Branches>>(&call)) {
      for (const Branches::Branch& branch : (*branches)->all) {
        to.add(branch.cost, branch.executions);
        add_inner_cost(branch.calls, to);
      }
    }
  }
}

}  // namespace meshd::device
