#include "service/program/transform/unpack_tuples.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "service/core/error.h"
#include "service/ir/op_builder.h"
#include "service/ir/walk.h"
#include "service/ops/op_def.h"
#include "service/program/analysis/call_graph.h"
#include "service/program/gspmd/gspmd_sharding.h"

namespace meshd::program {
namespace {

using ir::ValueId;

constexpr std::string_view kOutputAlias = "tf.aliasing_output";
constexpr std::string_view kSharding = "mhlo.sharding";
constexpr std::string_view kInfo = "jax.result_info";

/// A leaf of a type: its type and its path, "[1][0]".
struct Leaf {
  ir::Type type;
  std::string path;
};

void leaves_of(const ir::Type& type, const std::string& path, std::vector<Leaf>& out) {
  if (!type.is_tuple()) {
    out.push_back({type, path});
    return;
  }
  for (size_t i = 0; i < type.elements.size(); ++i) leaves_of(type.elements[i], fmt::format("{}[{}]", path, i), out);
}

/// The strings of a tuple's leaves; empty where the parameter has none.
std::vector<std::string> leaf_shardings(const ir::Parameter& parameter, size_t leaves) {
  const ir::Attribute* attribute = ir::find(parameter.attributes, kSharding);
  const auto* text = attribute == nullptr ? nullptr : attribute->as<ir::StringAttr>();
  if (text == nullptr) return {};  // another kind of attribute is refused behind
  std::vector<std::string> out;
  try {
    for (const GspmdSharding& sharding : parse_gspmd(text->value)) out.push_back(to_text(sharding));
  } catch (const core::Error& error) {
    ir::fail(error.code() == core::ErrorCode("invalid_spec") ? core::ErrorCode("invalid_program") : error.code(),
             parameter.location, error.detail());
  }
  if (out.size() == 1 && leaves > 0) out.resize(leaves, out[0]);
  if (out.size() != leaves) {
    ir::fail("invalid_program", parameter.location,
             fmt::format("'mhlo.sharding' has {} shardings for a tuple of {} values", out.size(), leaves));
  }
  return out;
}

std::vector<ir::Parameter> leaf_parameters(const ir::Parameter& parameter) {
  if (parameter.sharding) ir::fail("invalid_program", parameter.location, "a tuple has no sharding");
  if (parameter.aliases_output) {
    ir::fail("unsupported_attribute", parameter.location,
             "'tf.aliasing_output' on a tuple: it says nothing of its values");
  }
  std::vector<Leaf> leaves;
  leaves_of(parameter.type, {}, leaves);
  const std::vector<std::string> shardings = leaf_shardings(parameter, leaves.size());
  std::vector<ir::Parameter> out;
  for (size_t i = 0; i < leaves.size(); ++i) {
    ir::Parameter& leaf = out.emplace_back(parameter);
    leaf.type = std::move(leaves[i].type);
    leaf.is_token = leaf.type.is_token();
    if (!leaf.result_info.empty()) {
      leaf.result_info += leaves[i].path;
      ir::set(leaf.attributes, kInfo, ir::Attribute{ir::StringAttr{leaf.result_info}});
    }
    if (!shardings.empty()) ir::set(leaf.attributes, kSharding, ir::Attribute{ir::StringAttr{shardings[i]}});
  }
  return out;
}

/// Rewrites the ops of one function.
class Unpacker {
 public:
  explicit Unpacker(ir::Function& function) : function_(function), builder_(function, ops::code_of) {}

  void custom_calls() {
    ir::rewrite_ops(function_.body, [&](ir::Op&& op, std::vector<ir::Op>& out) {
      const bool gives_tuple = ops::role_of(ops::op(op.code).body) == ops::Structural::kCustomCall &&
                               op.results.size() == 1 && function_.type_of(op.results[0]).is_tuple();
      ir::Op& placed = out.emplace_back(std::move(op));
      if (!gives_tuple) return;
      const ValueId tuple = std::exchange(placed.results, {}).front();
      builder_.set_location(placed.location);
      std::vector<ValueId> leaves;
      std::vector<ir::Op> joined;
      const ir::OpBuilder::InsertionGuard in_joined(builder_, joined);
      join(tuple, leaves);
      placed.results = std::move(leaves);
      std::move(joined.begin(), joined.end(), std::back_inserter(out));
    });
  }

  /// Signature and body of @main. Unchanged where the body's results do not match the signature.
  void entry() {
    std::vector<ir::Op>& ops = function_.body.ops;
    if (ops.empty() || ops.back().operands.size() != function_.results.size() ||
        function_.body.arguments.size() != function_.arguments.size())
      return;
    for (size_t i = 0; i < function_.results.size(); ++i) {
      if (!(function_.type_of(ops.back().operands[i]) == function_.results[i].type)) return;
    }
    arguments();
    results();
  }

 private:
  void arguments() {
    std::vector<ir::Parameter> parameters;
    std::vector<ValueId> values;
    std::vector<ir::Op> joined;
    const ir::OpBuilder::InsertionGuard in_joined(builder_, joined);
    for (size_t i = 0; i < function_.arguments.size(); ++i) {
      const ir::Parameter& parameter = function_.arguments[i];
      if (!parameter.type.is_tuple()) {
        parameters.push_back(parameter);
        values.push_back(function_.body.arguments[i]);
        continue;
      }
      for (ir::Parameter& leaf : leaf_parameters(parameter)) parameters.push_back(std::move(leaf));
      builder_.set_location(parameter.location);
      join(function_.body.arguments[i], values);
    }
    function_.arguments = std::move(parameters);
    function_.body.arguments = std::move(values);
    std::vector<ir::Op>& ops = function_.body.ops;
    ops.insert(ops.begin(), std::make_move_iterator(joined.begin()), std::make_move_iterator(joined.end()));
  }

  void results() {
    std::vector<ir::Parameter> parameters;
    std::vector<ValueId> values;
    std::vector<ir::Op> taken;
    std::vector<int64_t> first;  // flat number of each result of the text; -1 for tuples
    ir::Op& back = function_.body.ops.back();
    builder_.set_location(back.location);
    const ir::OpBuilder::InsertionGuard in_taken(builder_, taken);
    for (size_t i = 0; i < function_.results.size(); ++i) {
      const ir::Parameter& parameter = function_.results[i];
      if (!parameter.type.is_tuple()) {
        first.push_back(static_cast<int64_t>(values.size()));
        parameters.push_back(parameter);
        values.push_back(back.operands[i]);
        continue;
      }
      first.push_back(-1);
      for (ir::Parameter& leaf : leaf_parameters(parameter)) parameters.push_back(std::move(leaf));
      take(back.operands[i], values);
    }
    for (ir::Parameter& argument : function_.arguments) {
      const int64_t alias = argument.aliases_output.value_or(-1);
      if (alias < 0 || alias >= static_cast<int64_t>(first.size())) continue;
      const int64_t flat = first[static_cast<size_t>(alias)];
      if (flat < 0) {
        ir::fail("unsupported_attribute", argument.location,
                 fmt::format("'tf.aliasing_output' names result {}, which is a tuple", alias));
      }
      argument.aliases_output = flat;
      ir::set(argument.attributes, kOutputAlias, ir::Attribute{ir::IntegerAttr{flat, "i32"}});
    }
    back.operands = std::move(values);
    function_.results = std::move(parameters);
    std::vector<ir::Op>& ops = function_.body.ops;
    ops.insert(ops.end() - 1, std::make_move_iterator(taken.begin()), std::make_move_iterator(taken.end()));
  }

  /// Makes values for the leaves of `tuple`, and the ops that build it from them.
  void join(ValueId tuple, std::vector<ValueId>& leaves) {
    const std::vector<ir::Type> elements = function_.type_of(tuple).elements;
    std::vector<ValueId> operands;
    for (const ir::Type& element : elements) {
      operands.push_back(function_.add_value(element));
      if (element.is_tuple()) {
        join(operands.back(), leaves);
      } else {
        leaves.push_back(operands.back());
      }
    }
    builder_.define({tuple}, "stablehlo.tuple", std::move(operands));
  }

  /// Ops that flatten `tuple`.
  void take(ValueId tuple, std::vector<ValueId>& leaves) {
    const std::vector<ir::Type> elements = function_.type_of(tuple).elements;
    for (size_t i = 0; i < elements.size(); ++i) {
      const ValueId value = builder_.create_one("stablehlo.get_tuple_element", {tuple}, elements[i],
                                                {{"index", {ir::IntegerAttr{static_cast<int64_t>(i), "i32"}}}});
      if (elements[i].is_tuple()) {
        take(value, leaves);
      } else {
        leaves.push_back(value);
      }
    }
  }

  ir::Function& function_;
  ir::OpBuilder builder_;
};

}  // namespace

ir::Module unpack_tuples(ir::Module module) {
  bool main_stays = false;
  for (ir::Function& function : module.functions) {
    const bool has_tuples = std::any_of(function.values.begin(), function.values.end(),
                                        [](const ir::Value& value) { return value.type.is_tuple(); });
    if (has_tuples) Unpacker(function).custom_calls();
    // The signature of a function that an op calls stays.
    main_stays = main_stays || ir::any_op(function.body, [](const ir::Op& op) { return callee_of(op) == "main"; });
  }
  for (ir::Function& function : module.functions) {
    const auto tuple = [](const ir::Parameter& parameter) { return parameter.type.is_tuple(); };
    const bool has_tuples = std::any_of(function.arguments.begin(), function.arguments.end(), tuple) ||
                            std::any_of(function.results.begin(), function.results.end(), tuple);
    if (function.name == "main" && has_tuples && !main_stays) Unpacker(function).entry();
  }
  return module;
}

}  // namespace meshd::program
