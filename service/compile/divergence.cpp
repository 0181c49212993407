#include <vector>

#include "service/compile/plan_builder.h"
#include "service/core/error.h"

namespace meshd::compile {
namespace {

using sharding::SubAxisSet;

// Forward flow of "added" sub-axes until nothing changes. Masks only grow, so it ends.
class DivergenceAnalysis {
 public:
  explicit DivergenceAnalysis(const partition::LocalProgram& program) : program_(program) {
    for (const partition::LocalValue& value : program.values) varies_.push_back(value.varies);
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

  // Sub-axes of one mesh mean nothing in another; partition keeps what a varying condition decides in one mesh.
  void widen_from(LocalId id, LocalId source, SubAxisSet mask) {
    if (mask == 0) return;
    if (program_.value(id).view != program_.value(source).view) {
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

  // Results of one step are written for the same shards.
  void widen_alike(const LocalOp& op) {
    if (op.results.size() < 2) return;
    SubAxisSet mask = 0;
    for (const LocalId id : op.results) mask |= varies(id);
    for (const LocalId id : op.results) widen_to(id, mask);
  }

  // `control`: sub-axes that decide whether the block runs. Pure ops may run for more shards than needed; what leaves
  // the block may not.
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
      // Every name of a carried value varies alike: the widest of them, and what decides when a position leaves.
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
