#include "service/propagation/report.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "service/ir/walk.h"
#include "service/ops/op_def.h"

namespace meshd::propagation {
namespace {

std::string text_of(const MaybeSharding& sharding) { return sharding ? sharding::to_sdy(*sharding) : "null"; }

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
    for (size_t i = 0; i < module_.inlined_calls.size(); ++i) {
      const ir::InlinedCall& call = module_.inlined_calls[i];
      const auto [found, is_new] = known.emplace(key_of(call), out.size());
      if (is_new) {
        FunctionReport& made = out.emplace_back();
        made.name = call.callee;
        if (call.callee_is_public) made.calls.emplace_back();
        made.arguments = call.argument_shardings;
        made.results = call.result_shardings;
        made.values = values(static_cast<int32_t>(i));
      }
      out[found->second].frames.push_back(static_cast<int32_t>(i));
      std::vector<int32_t> path = call.location.calls;
      path.push_back(call.location.line);
      std::vector<std::vector<int32_t>>& calls = out[found->second].calls;
      if (std::find(calls.begin(), calls.end(), path) == calls.end()) calls.push_back(std::move(path));
    }
    return out;
  }

 private:
  static std::string key_of(const ir::InlinedCall& call) {
    std::string key = call.callee;
    for (const auto* list : {&call.argument_shardings, &call.result_shardings}) {
      key += "|";
      for (const MaybeSharding& sharding : *list) key += text_of(sharding) + ";";
    }
    return key;
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

  /// The longest prefix of axes, the last perhaps in part, that divides `size`.
  static std::vector<sharding::AxisRef> dividing_prefix(const std::vector<sharding::AxisRef>& axes, int64_t size,
                                                        const mesh::Mesh& mesh) {
    std::vector<sharding::AxisRef> out;
    for (sharding::AxisRef axis : axes) {
      const int64_t ways = sharding::axis_size(axis, mesh);
      const int64_t common = std::gcd(size, ways);
      if (common == 1 && ways != 1) break;
      if (common != ways) axis.size = common;
      out.push_back(axis);
      if (common != ways) break;
      size /= ways;
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
