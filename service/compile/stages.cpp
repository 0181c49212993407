#include "service/compile/stages.h"

#include <fmt/core.h>

#include <algorithm>

#include "service/compile/rewrite/rounding.h"
#include "service/compile/rewrite/sharded_forms.h"
#include "service/core/error.h"
#include "service/ir/walk.h"
#include "service/partition/partition.h"
#include "service/program/analysis/counted_loop.h"

namespace meshd::compile {
namespace {

// Options of a request by position in the text, tokens counted.
std::vector<std::optional<sharding::TensorSharding>> with_tokens(
    const std::vector<std::optional<sharding::TensorSharding>>& given, const std::vector<size_t>& positions,
    size_t total) {
  std::vector<std::optional<sharding::TensorSharding>> out(total);
  for (size_t i = 0; i < given.size() && i < positions.size(); ++i) out[positions[i]] = given[i];
  return out;
}

// A sharding as the plan uses it: closed, nothing reserved.
sharding::TensorSharding closed(sharding::TensorSharding sharding) {
  for (sharding::DimSharding& dim : sharding.dims) {
    dim.open = false;
    dim.priority.reset();
  }
  sharding.replicated.clear();
  return sharding;
}

// False for what is only passed on: it has the layout that the text gives.
bool is_computed_with(ir::ValueId id, const ir::Region& region) {
  return ir::any_op(region, [&](const ir::Op& op) {
    return std::find(op.operands.begin(), op.operands.end(), id) != op.operands.end() &&
           ops::role_of(ops::op(op.code).body) != ops::Structural::kReturn;
  });
}

void check_against_text(const ir::Parameter& parameter, const std::optional<sharding::TensorSharding>& asked,
                        const char* what, size_t position) {
  if (!asked || !parameter.sharding) return;
  if (sharding::is_equivalent(closed(*asked), closed(*parameter.sharding))) return;
  throw core::Error("invalid_spec",
                    fmt::format("{} {}: the program annotates it {}, the request says {}", what, position,
                                sharding::to_sdy(*parameter.sharding), sharding::to_sdy(*asked)));
}

}  // namespace

propagation::Propagated propagate_for(const ParsedProgram& parsed, const LowerRequest& request) {
  const ir::Function& main = parsed.flat->main();
  for (size_t i = 0; i < request.in_shardings.size() && i < parsed.arguments.size(); ++i) {
    check_against_text(parsed.argument(i), request.in_shardings[i], "argument", i);
  }
  for (size_t i = 0; i < request.out_shardings.size() && i < parsed.results.size(); ++i) {
    check_against_text(parsed.result(i), request.out_shardings[i], "result", i);
  }
  propagation::Options options;
  options.argument_seeds = with_tokens(request.in_shardings, parsed.arguments, main.arguments.size());
  options.result_seeds = with_tokens(request.out_shardings, parsed.results, main.results.size());
  return propagation::propagate(*parsed.flat, options);
}

RewrittenProgram rewrite_for(const propagation::Propagated& propagated, const LowerRequest& request) {
  RewrittenProgram out;
  partition::PartitionInput& input = out.input;
  out.module = *propagated.module;
  input.value_shardings = propagated.values;
  write_sharded_forms(out.module, input.value_shardings);
  input.trip_counts = program::trip_counts(out.module.main());
  const ir::Function& main = propagated.module->main();
  size_t asked = 0;
  for (size_t i = 0; i < main.arguments.size(); ++i) {
    input.argument_shardings.push_back(propagated.of(main.body.arguments[i]));
    if (main.arguments[i].is_token) continue;
    // A sharding in the request is kept; one of the text alone is rounded, because arrays are laid out by it.
    const bool is_asked = asked < request.in_shardings.size() && request.in_shardings[asked].has_value();
    ++asked;
    std::optional<sharding::TensorSharding>& found = input.argument_shardings.back();
    if (!is_asked && found && is_computed_with(main.body.arguments[i], main.body))
      found = rounded(std::move(*found), main.arguments[i]);
  }
  input.result_shardings = propagated.results;
  input.device_count = request.device_count;
  input.donate = request.donate;
  return out;
}

partition::LocalProgram partition_for(const propagation::Propagated& propagated, const LowerRequest& request) {
  RewrittenProgram rewritten = rewrite_for(propagated, request);
  rewritten.input.module = &rewritten.module;
  return partition::partition(rewritten.input);
}

std::vector<int64_t> donated_of(const partition::LocalProgram& local) {
  std::vector<int64_t> out;
  for (const partition::LocalParameter& argument : local.arguments) {
    if (argument.is_donated) out.push_back(argument.position);
  }
  return out;
}

PlanRef plan_for(const partition::LocalProgram& local, const LowerRequest& request, const PlanSettings& settings) {
  PlanOptions options;
  static_cast<PlanSettings&>(options) = settings;
  if (request.is_unfused) {
    options.fuse = false;
    options.unroll_whiles = false;
    options.split_carries = false;
    options.simplify = false;  // else a value would be looked at where another op of the text makes it
    // Else a product would be made in front of what the text has before it, and where the loop has no iteration. Folded
    // transposes stay, because they decide the last bits of some products.
    options.hoist_products = false;
  }
  options.donate = donated_of(local);
  return make_plan(local, options);
}

}  // namespace meshd::compile
