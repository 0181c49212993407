#include "service/compile/explain/not_run.h"

#include <set>
#include <utility>

#include "service/ops/linalg/custom_calls.h"
#include "service/ops/op_def.h"

namespace meshd::compile {
namespace {

class UnrunnableFinder {
 public:
  UnrunnableFinder(const ir::Function& main, size_t limit) : main_(main), limit_(limit) {}

  void look(const ir::Region& region) {
    for (const ir::Op& op : region.ops) {
      if (found.size() == limit_) return;
      for (const ir::Region& inner : op.regions) look(inner);
      const auto* structural = std::get_if<ops::Structural>(&ops::op(op.code).body);
      if (structural != nullptr && *structural == ops::Structural::kCustomCall) note(op);
    }
  }

  std::vector<NotRun> found;

 private:
  void note(const ir::Op& op) {
    std::vector<ir::Type> operands, results;
    for (const ir::ValueId id : op.operands) operands.push_back(main_.type_of(id));
    for (const ir::ValueId id : op.results) results.push_back(main_.type_of(id));
    auto reason = ops::reason_not_run({operands, results, &op.attributes, op.regions, &main_, &op.location});
    // A function that is called twice stands twice in the flat text.
    if (!reason || !places_.emplace(op.location.line, op.location.column).second) return;
    if (found.size() < limit_) found.push_back({op.location, op.name, std::move(*reason)});
  }

  const ir::Function& main_;
  const size_t limit_;
  std::set<std::pair<int32_t, int32_t>> places_;
};

}  // namespace

std::vector<NotRun> find_not_run(const ParsedProgram& parsed, size_t limit) {
  const ir::Function& main = parsed.flat->main();
  UnrunnableFinder finder(main, limit);
  finder.look(main.body);
  return std::move(finder.found);
}

}  // namespace meshd::compile
