// Divergence analysis: the sub-axes that each value varies over once control flow is taken into account.
// The rules are those of LLVM's divergence (uniformity) analysis, with a set of sub-axes in place of one bit.
//
// Invariant: devices share one shard of a value only where each of them would compute the same bits. Sets only grow
// from those that partition gives, so the iteration ends.
//
// 1. Data: a result varies over what was added to an operand. A reduction over shards leaves out the sub-axes that it
//    reduces. Results of one step vary alike.
// 2. Branches (LLVM: sync dependence): a result of a case varies over the index's sub-axes, and over those of the
//    value that each branch returns.
// 3. Loops (LLVM: temporal divergence): devices whose condition differs leave at different iterations, so every
//    carried value varies over the condition's sub-axes. All names of a carried value vary alike.
// 4. Results of effects that happen on every device vary over the conditions around them.
// 5. Repeat from 1 until nothing changes.
//
// Sub-axes of one mesh mean nothing in another: a varying condition may decide only over values of its own mesh.
//
// Example: mesh x=2, limit = 3 on device 0 and 5 on device 1. A loop carries s = 0 and i = 0, both replicated:
//   while (i < limit) { s += 10; i += 1 }
// In: s and i vary over {}, one shard each. Out: both vary over {x}, two shards each; s ends as 30 and as 50.
#include "service/compile/plan/divergence.h"

#include <vector>

#include "service/core/error.h"
#include "service/partition/local_walk.h"

namespace meshd::compile {
namespace {

using sharding::SubAxisSet;

// A forward data-flow analysis; `added_` is what it adds to the sets of partition.
class DivergenceAnalysis {
 public:
  explicit DivergenceAnalysis(const partition::LocalProgram& program) : program_(program) {
    for (const partition::LocalValue& value : program.values) varies_.push_back(value.type.varies);
    added_.assign(varies_.size(), 0);
  }

  std::vector<SubAxisSet> run() {
    do {
      changed_ = false;
      block(program_.body, 0);
    } while (changed_);
    return std::move(varies_);
  }

 private:
  SubAxisSet& varies(LocalId id) { return varies_[static_cast<size_t>(id)]; }
  SubAxisSet added(LocalId id) const { return added_[static_cast<size_t>(id)]; }

  // Partition keeps the values that a varying condition decides over in the condition's mesh.
  void widen_from(LocalId id, LocalId source, SubAxisSet mask) {
    if (mask == 0) return;
    if (program_.type(id).layout.view != program_.type(source).layout.view) {
      throw core::Error("unsupported_partition", "a condition that differs between devices decides over '" +
                                                     program_.value(id).name +
                                                     "', which is laid out over another mesh");
    }
    widen_to(id, mask);
  }

  void widen_to(LocalId id, SubAxisSet mask) {
    const SubAxisSet more = mask & ~varies(id);
    if (more == 0) return;
    varies(id) |= more;
    added_[static_cast<size_t>(id)] |= more;
    changed_ = true;
  }

  void widen_results(const LocalOp& op, SubAxisSet without) {
    for (const LocalId id : op.results) {
      for (const LocalId operand : op.operands) widen_from(id, operand, added(operand) & ~without);
    }
  }

  // A step writes all of its results for the same shards.
  void widen_alike(const LocalOp& op) {
    if (op.results.size() < 2) return;
    SubAxisSet mask = 0;
    for (const LocalId id : op.results) mask |= varies(id);
    for (const LocalId id : op.results) widen_to(id, mask);
  }

  // `control`: sub-axes that the conditions around the block vary over. Pure ops may run for more shards than needed;
  // effects and the values that leave the block may not.
  void block(const partition::LocalBlock& body, SubAxisSet control) {
    for (const LocalOp& op : body.ops) {
      switch (op.kind) {
        case partition::LocalKind::kWhile:
          loop(op, control);
          break;
        case partition::LocalKind::kCase:
          branches(op, control);
          break;
        case partition::LocalKind::kReduceShards:
          widen_results(op, op.reduced);
          widen_alike(op);
          break;
        case partition::LocalKind::kEffect:
          if (op.effect.every_device) {
            for (const LocalId id : op.results) widen_to(id, control);
          }
          widen_results(op, 0);
          break;
        default:
          widen_results(op, 0);
          widen_alike(op);
      }
    }
  }

  void loop(const LocalOp& op, SubAxisSet control) {
    const partition::LocalBlock& condition = op.blocks[0];
    const partition::LocalBlock& body = op.blocks[1];
    const SubAxisSet inner = control | varies(condition.results[0]);
    const bool diverges = varies(condition.results[0]) != 0;
    for (size_t i = 0; i < op.results.size(); ++i) {
      // The union of its names' sets, and the condition's, which decides when a position leaves.
      SubAxisSet mask = varies(op.results[i]) | varies(condition.arguments[i]) | varies(body.arguments[i]);
      mask |= varies(op.operands[i]) | varies(body.results[i]);
      if (diverges) widen_from(op.results[i], condition.results[0], varies(condition.results[0]));
      mask |= varies(op.results[i]);
      widen_to(op.results[i], mask);
      widen_to(condition.arguments[i], mask);
      widen_to(body.arguments[i], mask);
    }
    block(condition, inner);
    block(body, inner);
  }

  void branches(const LocalOp& op, SubAxisSet control) {
    const SubAxisSet index = varies(op.operands[0]);
    for (const partition::LocalBlock& branch : op.blocks) {
      block(branch, control | index);
      for (size_t i = 0; i < op.results.size(); ++i) {
        widen_from(op.results[i], op.operands[0], index);
        widen_to(op.results[i], varies(branch.results[i]));
      }
    }
  }

  const partition::LocalProgram& program_;
  std::vector<SubAxisSet> varies_;
  std::vector<SubAxisSet> added_;
  bool changed_ = false;
};

}  // namespace

std::vector<sharding::SubAxisSet> analyze_divergence(const partition::LocalProgram& program) {
  return DivergenceAnalysis(program).run();
}

}  // namespace meshd::compile
