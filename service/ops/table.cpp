// The table: all families strung together once, with an index by name. Codes are row numbers.
#include <fmt/core.h>

#include <array>
#include <string>
#include <unordered_map>
#include <utility>

#include "service/core/error.h"
#include "service/ops/checks.h"
#include "service/ops/families.h"
#include "service/ops/linalg/custom_calls.h"
#include "service/ops/rule_views.h"

namespace meshd::ops {
namespace {

struct Table {
  std::vector<OpDef> rows;
  std::unordered_map<std::string_view, const OpDef*> by_name;
};

constexpr std::array kFamilies = {pointwise_rows,
                                  chlo_pointwise_rows,
                                  map_rows,
                                  structural_rows,
                                  feed_rows,
                                  control_rows,
                                  sharding_rows,
                                  sdy_collective_rows,
                                  collective_rows,
                                  custom_call_rows,
                                  movement_rows,
                                  dot_rows,
                                  reduce_rows,
                                  reduce_window_rows,
                                  select_and_scatter_rows,
                                  convolution_rows,
                                  batch_norm_rows,
                                  gather_scatter_rows,
                                  sort_rows,
                                  fft_rows,
                                  linalg_rows,
                                  top_k_rows,
                                  random_rows,
                                  composed_rows,
                                  dynamic_rows,
                                  chlo_broadcast_rows,
                                  chlo_other_rows,
                                  channel_rows};

Table make_table() {
  Table table;
  for (const auto family : kFamilies) {
    for (OpDef& row : family()) table.rows.push_back(std::move(row));
  }
  for (const OpDef& def : table.rows) {
    for (const std::string_view name : {def.name, def.also}) {
      if (!name.empty() && !table.by_name.emplace(name, &def).second)
        throw core::Error("internal", "two rows are called '" + std::string(name) + "'");
    }
  }
  return table;
}

const Table& the_table() {
  static const Table kTable = make_table();
  return kTable;
}

/// A rule written on the op must have a mapping for each operand and result, with as many dimensions as these have.
void expect_fits(const OpView& view, const sharding::FactorRule& rule) {
  if (rule.operands.size() != view.operands.size() || rule.results.size() != view.results.size()) {
    reject(view, fmt::format("sdy.sharding_rule maps {} operands and {} results, the op has {} and {}",
                             rule.operands.size(), rule.results.size(), view.operands.size(), view.results.size()));
  }
  const auto check = [&](std::span<const ir::Type> types, const std::vector<sharding::TensorFactors>& mappings,
                         std::string_view what) {
    for (size_t i = 0; i < types.size(); ++i) {
      const size_t rank = types[i].is_tensor() ? types[i].dims().size() : 0;
      if (mappings[i].size() == rank) continue;
      reject(view, fmt::format("sdy.sharding_rule maps {} dimensions of {} {}, which is {}", mappings[i].size(), what,
                               i, ir::to_string(types[i])));
    }
  };
  check(view.operands, rule.operands, "operand");
  check(view.results, rule.results, "result");
}

std::optional<sharding::FactorRule> row_rule_of(const OpDef& def, const OpView& view) {
  if (def.rule != nullptr) return def.rule(view);
  if (role_of(def.body) == Structural::kCustomCall) return custom_call_rule(view);
  return std::nullopt;
}

}  // namespace

const OpDef* find_op(std::string_view name) {
  const auto& by_name = the_table().by_name;
  const auto found = by_name.find(name);
  return found == by_name.end() ? nullptr : found->second;
}

const OpDef& op(ir::OpCode code) { return the_table().rows.at(code); }

ir::OpCode code_of(const OpDef& def) { return static_cast<ir::OpCode>(&def - the_table().rows.data()); }

ir::OpCode code_of(std::string_view name) {
  const OpDef* def = find_op(name);
  if (def == nullptr) throw core::Error("internal", "no row for op '" + std::string(name) + "'");
  return code_of(*def);
}

std::span<const OpDef> all_ops() { return the_table().rows; }

Body body_of(const OpDef& def, const OpView& view) {
  return def.choose_body != nullptr ? def.choose_body(view) : def.body;
}

bool has_effect(const OpDef& def, const OpView& view) {
  return def.has_effect || ir::bool_or(attributes_of(view), "has_side_effect", false);
}

std::optional<sharding::FactorRule> rule_of(const OpDef& def, const OpView& view) {
  if (const ir::Attribute* written = ir::find(attributes_of(view), "sdy.sharding_rule")) {
    const auto* rule = written->as<ir::ShardingRuleAttr>();
    if (rule == nullptr) reject(view, "attribute 'sdy.sharding_rule' must be #sdy.op_sharding_rule<...>");
    expect_fits(view, rule->rule);
    return rule->rule;
  }
  return row_rule_of(def, view);
}

bool has_sharding_rule(const OpView& view) { return ir::find(attributes_of(view), "sdy.sharding_rule") != nullptr; }

std::optional<sharding::FactorRule> lowering_rule_of(const OpDef& def, const OpView& view) {
  return std::holds_alternative<Unsupported>(body_of(def, view)) ? rule_of(def, view) : row_rule_of(def, view);
}

}  // namespace meshd::ops
