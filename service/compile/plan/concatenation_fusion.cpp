// Fusion of concatenations: operands that nothing else reads have no memory of their own.
//
// 1. Count how often each value is read from memory, and note where it is read last.
// 2. Of each concatenation (Fuse::concatenation), in the order of the steps, take
//    a. operands that a step copies out of a value (a slice, reversed dims, a broadcast): it reads that value.
//       jnp.roll is one step;
//    b. operands that a fused loop computes, where all results of the loop are operands: they are written where they
//       lie in the result. Of large results: small ones are best as they are.
//    Only where what such a step reads is there at that time anyway: it is read later, too, or nothing is executed
//    between the two; and not where more of it lives until then than results of loops vanish.
//
// Example: a rotary embedding, concatenate (x1 * c - x2 * s, x2 * c + x1 * s). In: two fused loops, and a
// concatenation that reads and writes all that they wrote. Out: one step, whose loops write halves of rows.
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "service/compile/plan/plan_builder.h"
#include "service/kernels/fused/fused_loop.h"
#include "service/kernels/fused/joined_loops.h"
#include "service/kernels/movement/groups.h"

namespace meshd::compile {
namespace {

/// Bytes of a result from which on its operands are computed in it.
constexpr int64_t kLargeResult = 64 * 1024;

std::optional<ops::StridedView> view_of(const LocalOp& op, const ops::OpView& local) {
  const ops::IndexingMap map = op.def->fuse.read(local);
  if (map.same_bytes) return std::nullopt;
  ops::StridedView view;
  view.strides.assign(local.results[0].dims().size(), 0);
  const tensor::Dims strides = tensor::row_major_strides(local.operands[0].dims());
  for (size_t d = 0; d < strides.size(); ++d) {
    const ops::IndexingMap::Dim& dim = map.dims[d];
    view.offset += dim.start * strides[d];
    if (dim.result_dim >= 0) view.strides[static_cast<size_t>(dim.result_dim)] += dim.step * strides[d];
  }
  return view;
}

class ConcatenationFuser {
 public:
  ConcatenationFuser(const PlanBuilder& builder, const std::vector<LocalId>& live_out, std::vector<BuilderStep>& steps)
      : builder_(builder), steps_(steps), is_gone_(steps.size(), false) {
    for (size_t i = 0; i < steps.size(); ++i) {
      for (const LocalId id : steps[i].results) makers_.emplace(id, i);
      for (const LocalId id : steps[i].operands) note_read(id, i);
    }
    for (const LocalId id : live_out) note_read(id, steps.size());
  }

  void run() {
    for (size_t i = 0; i < steps_.size(); ++i) {
      if (is_single_op(steps_[i]) && steps_[i].op->def->fuse.concatenation != nullptr) fuse(i);
    }
    size_t number = 0;
    std::erase_if(steps_, [&](const BuilderStep&) { return is_gone_[number++]; });
  }

 private:
  // A loop that computes operands, and what it reads.
  struct Computed {
    ops::ComputedOperands by;
    std::vector<LocalId> reads;
  };

  void note_read(LocalId id, size_t step) {
    ++reads_[builder_.memory_of(id)];
    last_reads_[builder_.memory_of(id)] = step;
  }

  /// The step whose result has the memory of `id`, which it alone reads.
  [[nodiscard]] std::optional<size_t> only_read_of(LocalId id) const {
    const LocalId memory = builder_.memory_of(id);
    const auto maker = makers_.find(memory);
    if (maker == makers_.end() || reads_.at(memory) != 1 || is_gone_[maker->second]) return std::nullopt;
    return maker->second;
  }

  /// Of the steps right in front of step `consumer`, one after the other, that make its operands, the first; the
  /// consumer itself where there are none.
  [[nodiscard]] size_t first_of_producers(size_t consumer) const {
    std::set<LocalId> operands;
    for (const LocalId id : steps_[consumer].operands) operands.insert(builder_.memory_of(id));
    const auto makes_operand = [&](const BuilderStep& step) {
      return std::any_of(step.results.begin(), step.results.end(), [&](LocalId id) { return operands.contains(id); });
    };
    size_t first = consumer;
    while (first > 0 && (is_gone_[first - 1] || makes_operand(steps_[first - 1]))) --first;
    return first;
  }

  /// What a producer reads is there anyway: it is read later, too, or nothing else is executed before the consumer.
  [[nodiscard]] bool lives_as_long(size_t producer, size_t consumer, size_t first) const {
    const std::vector<LocalId>& operands = steps_[producer].operands;
    return producer >= first || std::all_of(operands.begin(), operands.end(), [&](LocalId id) {
             const auto last = last_reads_.find(builder_.memory_of(id));
             return last != last_reads_.end() && last->second >= consumer;
           });
  }

  [[nodiscard]] std::optional<ops::StridedView> view_by(size_t producer, LocalId operand) const {
    const BuilderStep& step = steps_[producer];
    if (!is_single_op(step) || step.op->def->fuse.read == nullptr || step.results[0] != operand) return std::nullopt;
    const LocalView local(*builder_.program, *step.op);
    return view_of(*step.op, local.view);
  }

  /// Whether the step is a pointwise loop all of whose results are operands of the consumer, by each shard the same
  /// one's. Loops behind reductions of the same rows are left to them.
  [[nodiscard]] bool is_computed_by(size_t producer, const BuilderStep& consumer) const {
    const BuilderStep& step = steps_[producer];
    if (step.kind != StepKind::kKernel || step.kernel.fused == nullptr || step.kernel.uses_offsets) return false;
    if (step.kernel.fused->loop().reduce || builder_.value(consumer.results[0]).bytes < kLargeResult) return false;
    const auto is_operand = [&](LocalId result) {
      return builder_.value(result).bytes > 0 && only_read_of(result) &&
             std::any_of(consumer.operands.begin(), consumer.operands.end(),
                         [&](LocalId id) { return builder_.memory_of(id) == result && is_result_itself(id); });
    };
    const auto is_reduced = [&](LocalId id) {
      const auto maker = makers_.find(builder_.memory_of(id));
      if (maker == makers_.end() || steps_[maker->second].kernel.fused == nullptr) return false;
      return steps_[maker->second].kernel.fused->loop().reduce.has_value();
    };
    return std::all_of(step.results.begin(), step.results.end(), is_operand) &&
           std::none_of(step.operands.begin(), step.operands.end(), is_reduced);
  }

  /// The operand has the bytes of a result of its own shard.
  [[nodiscard]] bool is_result_itself(LocalId id) const {
    for (; builder_.value(id).alias_of >= 0; id = builder_.value(id).alias_of) {
      if (builder_.value(id).alias_map != kIdentity) return false;
    }
    return true;
  }

  // What a concatenation takes over.
  struct Taken {
    std::vector<size_t> steps;
    std::vector<std::optional<ops::StridedView>> views;
    std::vector<Computed> computed;
    std::vector<LocalId> operands;  // of the concatenation, those that are computed left out
  };

  void fuse(size_t number) {
    Taken taken = taken_by(number, true);
    if (!taken.computed.empty() && takes_more_memory(number, taken)) taken = taken_by(number, false);
    if (!taken.steps.empty()) take_over(steps_[number], std::move(taken));
  }

  [[nodiscard]] Taken taken_by(size_t number, bool takes_loops) const {
    const BuilderStep& consumer = steps_[number];
    const size_t first = first_of_producers(number);
    Taken out;
    for (const LocalId id : consumer.operands) {
      out.operands.push_back(id);
      out.views.emplace_back();
      const std::optional<size_t> producer = only_read_of(id);
      if (!producer || steps_[*producer].table != consumer.table || !lives_as_long(*producer, number, first)) continue;
      out.views.back() = view_by(*producer, id);
      if (out.views.back()) {
        out.operands.back() = steps_[*producer].operands[0];
        out.steps.push_back(*producer);
        continue;
      }
      if (!takes_loops || !is_result_itself(id) || !is_computed_by(*producer, consumer)) continue;
      out.operands.pop_back();
      if (std::find(out.steps.begin(), out.steps.end(), *producer) == out.steps.end()) {
        out.steps.push_back(*producer);
        out.computed.push_back(computed_by(steps_[*producer], consumer));
      }
    }
    return out;
  }

  /// Whether memory at the concatenation, where all that loops read is there then, is more than it was before: at the
  /// last of the loops, with all their results, or at the concatenation.
  [[nodiscard]] bool takes_more_memory(size_t consumer, const Taken& taken) const {
    size_t last_loop = 0;
    int64_t vanishing = 0;
    for (const size_t step : taken.steps) {
      if (steps_[step].kernel.fused == nullptr) continue;
      last_loop = std::max(last_loop, step);
      for (const LocalId id : steps_[step].results) vanishing += builder_.value(id).bytes;
    }
    std::set<LocalId> dying;
    for (const Computed& loop : taken.computed) {
      for (const LocalId id : loop.reads) {
        const LocalId memory = builder_.memory_of(id);
        const BuilderValue& value = builder_.value(memory);
        if (value.constant == nullptr && value.argument < 0 && last_reads_.at(memory) < consumer) dying.insert(memory);
      }
    }
    int64_t at_consumer = 0;
    int64_t at_last_loop = vanishing;
    for (const LocalId id : dying) {
      at_consumer += builder_.value(id).bytes;
      if (last_reads_.at(id) >= last_loop) at_last_loop += builder_.value(id).bytes;
    }
    const int64_t result = builder_.value(steps_[consumer].results[0]).bytes;
    const int64_t others = std::max<int64_t>(0, result - vanishing);
    return at_consumer + others + result > std::max(at_last_loop, vanishing + others + result);
  }

  [[nodiscard]] Computed computed_by(const BuilderStep& step, const BuilderStep& consumer) const {
    Computed out;
    out.by.loop = std::make_shared<const kernels::FusedLoop>(step.kernel.fused->loop());
    for (const LocalId result : step.results) {
      const auto operand = std::find_if(consumer.operands.begin(), consumer.operands.end(),
                                        [&](LocalId id) { return builder_.memory_of(id) == result; });
      out.by.operands.push_back(static_cast<size_t>(operand - consumer.operands.begin()));
    }
    out.reads = step.operands;
    return out;
  }

  /// Loops that read the same are one, and those that make the columns of a result of few, which leave them together.
  static std::vector<Computed> joined(std::vector<Computed> computed, const tensor::Dims& result) {
    std::vector<Computed> out;
    for (Computed& next : computed) {
      const bool is_joined = !out.empty() && join(out.back(), next, makes_column(*next.by.loop, result));
      if (!is_joined) out.push_back(std::move(next));
    }
    return out;
  }

  /// As far as sizes show it.
  static bool makes_column(const kernels::FusedLoop& loop, const tensor::Dims& result) {
    const auto most = static_cast<int64_t>(kernels::kMostInterleaved);
    const int64_t columns = tensor::element_count(result) / std::max<int64_t>(1, tensor::element_count(loop.dims));
    const auto last = std::find_if(result.rbegin(), result.rend(), [](int64_t size) { return size != 1; });
    return columns >= 2 && columns <= most && last != result.rend() && *last == columns;
  }

  static bool join(Computed& to, const Computed& next, bool may_read_others) {
    std::vector<LocalId> reads = to.reads;
    kernels::FusedLoop loop = *next.by.loop;
    std::vector<int> numbers;
    for (const LocalId id : next.reads) {
      const auto found = std::find(reads.begin(), reads.end(), id);
      numbers.push_back(static_cast<int>(found - reads.begin()));
      if (found == reads.end()) reads.push_back(id);
    }
    for (kernels::FusedInput& input : loop.inputs) input.operand = numbers[static_cast<size_t>(input.operand)];
    std::optional<kernels::FusedLoop> made = kernels::join_loops(*to.by.loop, loop, may_read_others);
    if (!made) return false;
    to.by.loop = std::make_shared<const kernels::FusedLoop>(*std::move(made));
    to.by.operands.insert(to.by.operands.end(), next.by.operands.begin(), next.by.operands.end());
    to.reads = std::move(reads);
    return true;
  }

  void take_over(BuilderStep& consumer, Taken taken) {
    std::vector<ops::ComputedOperands> loops;
    const tensor::Dims& result = builder_.program->type(consumer.op->results[0]).local.dims;
    for (const Computed& made : joined(std::move(taken.computed), result)) {
      loops.push_back(made.by);
      loops.back().read_count = static_cast<int>(made.reads.size());
      taken.operands.insert(taken.operands.end(), made.reads.begin(), made.reads.end());
    }
    const LocalView local(*builder_.program, *consumer.op);
    consumer.kernel = consumer.op->def->fuse.concatenation(local.view, taken.views, loops);
    consumer.operands = std::move(taken.operands);
    std::vector<int32_t> lines;
    for (const size_t number : taken.steps) {
      const BuilderStep& step = steps_[number];
      is_gone_[number] = true;
      lines.insert(lines.end(), step.lines.begin(), step.lines.end());
      consumer.constants |= step.constants;
      if (step.kernel.fused == nullptr) continue;
      consumer.kernel.flops += step.kernel.flops;
      consumer.kernel.bytes += step.kernel.bytes;
    }
    add_lines(consumer, lines);
    const BuilderStep& first = steps_[taken.steps[0]];
    consumer.name =
        fmt::format("fused {} {} ({} ops)", without_dialect(first.op != nullptr ? first.op->name : first.name),
                    without_dialect(consumer.name), taken.steps.size() + 1);
  }

  const PlanBuilder& builder_;
  std::vector<BuilderStep>& steps_;
  std::vector<bool> is_gone_;
  std::map<LocalId, size_t> makers_;  // by result
  std::map<LocalId, int64_t> reads_;
  std::map<LocalId, size_t> last_reads_;  // beyond all steps for what the block returns
};

}  // namespace

void fuse_concatenations(const PlanBuilder& builder, const std::vector<LocalId>& live_out,
                         std::vector<BuilderStep>& steps) {
  ConcatenationFuser(builder, live_out, steps).run();
}

}  // namespace meshd::compile
