#include "service/compile/explain/not_run.h"

#include <set>
#include <utility>

#include "service/ir/walk.h"
#include "service/ops/linalg/custom_calls.h"
#include "service/ops/op_def.h"

namespace meshd::compile {
namespace {

class UnrunnableFinder {
 public:
  UnrunnableFinder(const ir::Function& main, size_t limit) : main_(main), limit_(limit) {}

  std::vector<NotRun> run() {
    ir::walk<ir::WalkOrder::kPostOrder>(main_.body, [&](const ir::Op& op) {
      if (ops::role_of(ops::op(op.code).body) == ops::Structural::kCustomCall) note(op);
      return found_.size() < limit_ ? ir::WalkResult::kAdvance : ir::WalkResult::kInterrupt;
    });
    return std::move(found_);
  }

 private:
  void note(const ir::Op& op) {
    auto reason = ops::reason_not_run(ops::OpInstance(main_, op).view);
    // A function that is called twice is inlined twice.
    if (!reason || !places_.emplace(op.location.line, op.location.column).second) return;
    if (found_.size() < limit_) found_.push_back({op.location, op.name, std::move(*reason)});
  }

  const ir::Function& main_;
  const size_t limit_;
  std::set<std::pair<int32_t, int32_t>> places_;
  std::vector<NotRun> found_;
};

}  // namespace

std::vector<NotRun> find_not_run(const ParsedProgram& parsed, size_t limit) {
  return UnrunnableFinder(parsed.flat->main(), limit).run();
}

}  // namespace meshd::compile
