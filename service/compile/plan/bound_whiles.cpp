#include "service/compile/plan/bound_whiles.h"

#include <algorithm>
#include <memory>
#include <vector>

namespace meshd::compile {
namespace {

constexpr int64_t kMostPointers = 2048;  // the run's table is copied for each loop that is bound
constexpr int64_t kMostCalls = 1024;
constexpr double kMostCountedSteps = 1e15;  // steps and calls of an iteration, so that their sums are exact

class BoundWhileFinder {
 public:
  explicit BoundWhileFinder(Plan& plan) : plan_(plan) {}

  void find() {
    if (plan_.pointer_count > kMostPointers) return;
    // A loop's blocks come behind the block that it is in: those inside first.
    for (auto block = plan_.blocks.rbegin(); block != plan_.blocks.rend(); ++block) {
      for (Step& step : block->steps) {
        if (step.kind == StepKind::kWhile) step.bound = find(step);
      }
    }
  }

 private:
  [[nodiscard]] std::shared_ptr<const BoundWhileStep> find(const Step& loop) const {
    if (plan_.table(loop.table).count() != 1) return nullptr;
    BoundWhileStep made;
    for (const Step& step : plan_.block(loop.blocks_first).steps) {
      if (!add_call(step, made.condition, made)) return nullptr;
    }
    made.exchanges = !loop.exchanges.empty();
    made.iteration = made.condition;
    ++made.iteration.steps;
    for (const Step& step : plan_.block(loop.blocks_first + 1).steps) {
      if (!add(step, made.iteration, made)) return nullptr;
    }
    made.all.add(made.iteration, 1);
    if (made.exchanges) made.calls *= 2;
    return made.calls <= kMostCalls ? std::make_shared<const BoundWhileStep>(made) : nullptr;
  }

  /// A step of the body, or of a branch.
  [[nodiscard]] bool add(const Step& step, LoopCost& cost, BoundWhileStep& made) const {
    if (step.kind == StepKind::kWhile) return add_loop(step, cost, made);
    return step.kind == StepKind::kCase ? add_case(step, cost, made) : add_call(step, cost, made);
  }

  [[nodiscard]] bool add_call(const Step& step, LoopCost& cost, BoundWhileStep& made) const {
    const bool is_call = step.kind == StepKind::kKernel || step.kind == StepKind::kCollective;
    if (!is_call || step.results.empty()) return false;
    const int64_t shards = plan_.table(step.table).count();
    cost.add(step, shards);
    made.longest_ns = std::max(made.longest_ns, step.estimated_ns);
    made.calls += shards;
    return true;
  }

  [[nodiscard]] bool add_loop(const Step& loop, LoopCost& cost, BoundWhileStep& made) const {
    const bool is_small = loop.small != nullptr;
    if (!is_small && loop.bound == nullptr) return false;
    const bool is_known = loop.trip_count >= 0;
    const bool exchanges = !is_small && loop.bound->exchanges;
    if (exchanges && !is_known) return false;
    made.exchanges = made.exchanges || (exchanges && loop.trip_count % 2 != 0);
    made.is_known = made.is_known && is_known && (is_small || loop.bound->is_known);
    const LoopCost& iteration = is_small ? loop.small->iteration : loop.bound->all;
    const int64_t trips = is_known ? loop.trip_count : 1;
    const auto most = static_cast<double>(std::max(iteration.steps, iteration.kernel_calls));
    if (most * static_cast<double>(trips) + static_cast<double>(made.all.steps) > kMostCountedSteps) return false;
    ++cost.steps;
    made.all.add(iteration, trips);
    made.all.add(is_small ? loop.small->condition : loop.bound->condition, 1);
    if (is_small) {
      ++made.calls;
      return true;
    }
    made.longest_ns = std::max(made.longest_ns, loop.bound->longest_ns);
    made.calls += loop.bound->calls;
    return true;
  }

  /// Which branch is taken is not known: the cost is that of all.
  [[nodiscard]] bool add_case(const Step& step, LoopCost& cost, BoundWhileStep& made) const {
    if (plan_.table(step.table).count() != 1) return false;
    ++cost.steps;
    for (BlockId branch = 0; branch < step.block_count; ++branch) {
      for (const Step& inner : plan_.block(step.blocks_first + branch).steps) {
        // Slots that only a branch exchanges could be anywhere.
        const bool has_no_exchange = inner.kind != StepKind::kWhile || inner.small != nullptr;
        if (!has_no_exchange || !add(inner, made.all, made)) return false;
      }
    }
    return true;
  }

  Plan& plan_;
};

}  // namespace

void find_bound_whiles(Plan& plan) { BoundWhileFinder(plan).find(); }

}  // namespace meshd::compile
