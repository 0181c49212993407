#include "service/propagation/export/report.h"

#include <algorithm>
#include <map>
#include <set>

#include "service/ir/walk.h"
#include "service/ops/op_def.h"
#include "service/propagation/graph/axis_list.h"

namespace meshd::propagation {
namespace {

class Reporter {
 public:
  explicit Reporter(const Propagated& propagated) : propagated_(propagated), module_(*propagated.module) {
    for (size_t i = 0; i < module_.main().values.size(); ++i) users_.emplace_back();
    collect_users(module_.main().body);
  }

  std::vector<FunctionReport> run() {
    std::vector<FunctionReport> out;
    FunctionReport& main = out.emplace_back();
    main.name = module_.main().name;
    main.frames = {-1};
    for (const ir::ValueId id : module_.main().body.arguments)
      main.argument_origins.push_back(propagated_.origins[static_cast<size_t>(id)]);
    for (const ir::ValueId id : module_.main().body.arguments) main.arguments.push_back(propagated_.of(id));
    main.results = propagated_.results;
    main.values = values(-1);
    std::map<std::string, size_t> known;
    std::vector<size_t> place;
    const std::vector<ir::InlinedCall>& calls = module_.inlined_calls;
    for (size_t i = 0; i < calls.size(); ++i) {
      const auto [found, is_new] = known.emplace(signature(i), out.size());
      if (is_new) {
        FunctionReport& made = out.emplace_back();
        made.name = calls[i].callee;
        made.arguments = calls[i].argument_shardings;
        made.results = calls[i].result_shardings;
        made.values = values(static_cast<int32_t>(i));
      }
      place.push_back(found->second);
      out[found->second].frames.push_back(static_cast<int32_t>(i));
      std::vector<int32_t> path = calls[i].location.calls;
      path.push_back(calls[i].location.line);
      add_way(out[found->second], std::move(path));
    }
    add_public_ways(place, out);
    return out;
  }

 private:
  static void add_way(FunctionReport& to, std::vector<int32_t> way) {
    if (std::find(to.calls.begin(), to.calls.end(), way) == to.calls.end()) to.calls.push_back(std::move(way));
  }

  [[nodiscard]] std::string signature(size_t call) const {
    // Where nothing is annotated all copies are alike.
    return propagated_.call_signatures.empty() ? module_.inlined_calls[call].callee : propagated_.call_signatures[call];
  }

  /// Places of the calls in the order in which Shardy makes functions of them: inner ones first.
  [[nodiscard]] std::vector<int32_t> exported_at() const {
    const std::vector<ir::InlinedCall>& calls = module_.inlined_calls;
    std::vector<int32_t> out(calls.size());
    std::vector<int32_t> open;  // calls around the current one
    int32_t next = 0;
    const auto close_until = [&](int32_t parent) {
      for (; !open.empty() && open.back() != parent; open.pop_back()) out[static_cast<size_t>(open.back())] = next++;
    };
    for (size_t i = 0; i < calls.size(); ++i) {
      close_until(calls[i].parent);
      open.push_back(static_cast<int32_t>(i));
    }
    close_until(-1);
    return out;
  }

  /// A public function may be called from outside: its first copy, and what that calls. Copies that are alike are one
  /// function, that of the copy whose call comes first: in @main, then in the functions as they are made.
  void add_public_ways(const std::vector<size_t>& place, std::vector<FunctionReport>& out) const {
    const std::vector<ir::InlinedCall>& calls = module_.inlined_calls;
    const std::vector<int32_t> exported = exported_at();
    const auto caller = [&](size_t i) {
      return calls[i].parent < 0 ? -1 : exported[static_cast<size_t>(calls[i].parent)];
    };
    std::map<size_t, size_t> kept;  // by function: the copy that it is
    for (size_t i = 0; i < calls.size(); ++i) {
      const auto [found, is_new] = kept.emplace(place[i], i);
      if (!is_new && caller(i) < caller(found->second)) found->second = i;
    }
    std::set<std::string> seen;
    for (size_t i = 0; i < calls.size(); ++i) {
      if (!calls[i].callee_is_public || !seen.insert(calls[i].callee).second) continue;
      if (kept.at(place[i]) != i) continue;
      add_way(out[place[i]], {});
      const size_t depth = calls[i].location.calls.size() + 1;
      for (size_t k = i + 1; k < calls.size(); ++k) {
        int32_t around = calls[k].parent;
        while (around > static_cast<int32_t>(i)) around = calls[static_cast<size_t>(around)].parent;
        if (around != static_cast<int32_t>(i)) continue;
        const std::vector<int32_t>& from = calls[k].location.calls;
        std::vector<int32_t> way(from.begin() + static_cast<std::ptrdiff_t>(depth), from.end());
        way.push_back(calls[k].location.line);
        add_way(out[place[k]], std::move(way));
      }
    }
  }

  void collect_users(const ir::Region& region) {
    ir::walk(region, [&](const ir::Op& op) {
      for (size_t i = 0; i < op.operands.size(); ++i) {
        users_[static_cast<size_t>(op.operands[i])].emplace_back(op.location.line, static_cast<int>(i));
      }
    });
  }

  std::vector<ValueReport> values(int32_t frame) {
    found_.clear();
    visit(module_.main().body, frame);
    for (size_t i = 0; i < module_.inlined_calls.size(); ++i) {
      const ir::InlinedCall& call = module_.inlined_calls[i];
      if (call.parent != frame) continue;
      std::vector<MaybeSharding> shardings = rounded(call);
      add(call.location.line, "func.call", call.results, std::move(shardings), {});
    }
    std::vector<ValueReport> out;
    for (auto& [line, entries] : found_) {
      for (ValueReport& entry : entries) out.push_back(std::move(entry));
    }
    return out;
  }

  /// A call's result is truncated to the axes that divide, as in Shardy's results of functions; other values keep
  /// theirs.
  [[nodiscard]] std::vector<MaybeSharding> rounded(const ir::InlinedCall& call) const {
    std::vector<MaybeSharding> out = call.result_shardings;
    for (size_t i = 0; i < out.size(); ++i) {
      if (!out[i]) continue;
      const mesh::Mesh& mesh = *out[i]->mesh;
      const tensor::Dims& dims = module_.main().type_of(call.results[i]).dims();
      for (size_t dim = 0; dim < out[i]->dims.size(); ++dim) {
        out[i]->dims[dim].axes = dividing_prefix(out[i]->dims[dim].axes, dims[dim], mesh);
      }
    }
    return out;
  }

  void visit(const ir::Region& region, int32_t frame) {
    ir::walk(region, [&](const ir::Op& op) {
      if (op.location.frame != frame || !is_of_text(op)) return;
      std::vector<MaybeSharding> shardings;
      for (const ir::ValueId id : op.results) shardings.push_back(propagated_.of(id));
      std::vector<MaybeSharding> operands;
      if (ops::role_of(ops::op(op.code).body) == ops::Structural::kManualComputation) {
        const auto* in = ir::find(op.attributes, "in_shardings")->as<ir::ShardingAttr>();
        operands.assign(in->shardings.begin(), in->shardings.end());
      }
      add(op.location.line, op.name, op.results, std::move(shardings), std::move(operands));
    });
  }

  /// Reshards that propagation inserted have no name.
  [[nodiscard]] bool is_of_text(const ir::Op& op) const {
    return !op.results.empty() && !module_.main().values[static_cast<size_t>(op.results[0])].name.empty();
  }

  [[nodiscard]] bool is_listed(const std::vector<ir::ValueId>& results) const {
    return std::any_of(results.begin(), results.end(), [&](ir::ValueId id) {
      const ir::Type& type = module_.main().type_of(id);
      return type.is_tensor() && (type.rank() > 0 || (propagated_.of(id) && !propagated_.of(id)->unreduced.empty()));
    });
  }

  void add(int32_t line, const std::string& op, const std::vector<ir::ValueId>& results,
           std::vector<MaybeSharding> shardings, std::vector<MaybeSharding> operands) {
    if (!is_listed(results)) return;
    CopyReport copy{std::move(shardings), {}};
    for (const ir::ValueId id : results) {
      const auto& users = users_[static_cast<size_t>(id)];
      copy.users.insert(copy.users.end(), users.begin(), users.end());
    }
    std::vector<ValueReport>& entries = found_[line];
    for (ValueReport& entry : entries) {
      if (entry.op == op && entry.copies[0].shardings.size() == copy.shardings.size()) {
        entry.copies.push_back(std::move(copy));
        return;
      }
    }
    ValueReport& made = entries.emplace_back();
    made.line = line;
    made.value = module_.main().values[static_cast<size_t>(results[0])].name;
    made.op = op;
    made.copies.push_back(std::move(copy));
    made.operands = std::move(operands);
    made.origin = propagated_.origins[static_cast<size_t>(results[0])];
  }

  const Propagated& propagated_;
  const ir::Module& module_;
  std::vector<std::vector<std::pair<int32_t, int>>> users_;  ///< by value
  std::map<int32_t, std::vector<ValueReport>> found_;        ///< by line
};

}  // namespace

std::vector<FunctionReport> report(const Propagated& propagated) { return Reporter(propagated).run(); }

}  // namespace meshd::propagation
