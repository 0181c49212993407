// Pretty forms of ops with regions, and of Shardy's ops.
#include "service/program/parse/parser.h"

namespace meshd::program {

void Parser::pretty_while(OperationState& state) {
  std::vector<BlockArgument> arguments;
  list('(', ')', "around the values of a loop", [&] {
    BlockArgument argument;
    argument.name = expect(TokenKind::kValue, "the name of a loop value");
    expect('=', "behind the name of a loop value");
    state.op.operands.push_back(value_use());
    arguments.push_back(std::move(argument));
  });
  if (accept(':')) {
    size_t i = 0;
    do {
      const Token where = token_;
      if (i == arguments.size()) fail("invalid_program", where, "the loop has more types than values");
      arguments[i++].type = type();
    } while (accept(','));
    if (i != arguments.size()) fail("invalid_program", token_, "the loop has fewer types than values");
  } else if (!arguments.empty()) {
    expected("':' before the types of a loop's values");
  }
  for (const BlockArgument& argument : arguments) state.result_types.push_back(argument.type);
  check_operands(state, state.result_types);
  if (accept("attributes")) state.op.attributes = attribute_dict();
  expect_word("cond", "before the condition of a loop");
  state.op.regions.push_back(region(arguments));
  expect_word("do", "before the body of a loop");
  state.op.regions.push_back(region(arguments));
}

ir::Region Parser::applied_region(const OperationState& state, const Token& where, const std::string& op_name,
                                  const ir::Type& type) {
  OperationState inner;
  set_op(inner, where, op_name);
  ir::Region out;
  for (int i = 0; i < 2; ++i) out.arguments.push_back(function_->add_value(type));
  inner.op.location = state.op.location;
  inner.op.operands = out.arguments;
  inner.op.results = {function_->add_value(type)};
  OperationState terminator;
  set_op(terminator, where, "stablehlo.return");
  terminator.op.location = state.op.location;
  terminator.op.operands = inner.op.results;
  out.ops.push_back(std::move(inner.op));
  out.ops.push_back(std::move(terminator.op));
  return out;
}

void Parser::pretty_reduce(OperationState& state) {
  ir::Op& op = state.op;
  std::vector<ir::ValueId> initial;
  do {
    expect('(', "around an operand and its initial value");
    op.operands.push_back(value_use());
    expect_word("init", "behind an operand of '" + op.name + "'");
    expect(':', "behind 'init'");
    initial.push_back(value_use());
    expect(')', "around an operand and its initial value");
  } while (accept(','));
  const size_t count = op.operands.size();
  op.operands.insert(op.operands.end(), initial.begin(), initial.end());
  Token applied;
  if (accept("applies")) applied = expect(TokenKind::kWord, "the op that is applied");
  expect_word("across", "before the dimensions of '" + op.name + "'");
  expect_key("dimensions");
  op.attributes.emplace_back("dimensions", ir::Attribute{ir::IntArrayAttr{integer_list("around dimensions"), "i64"}});
  attributes_and_types(state);
  if (applied.is(TokenKind::kWord)) {
    const ir::Type& operand = function_->type_of(op.operands[0]);
    if (count != 1 || !operand.is_tensor()) fail("program_syntax", applied, "'applies' takes one operand");
    op.regions.push_back(applied_region(state, applied, std::string(applied.text), ir::scalar_of(operand)));
    return;
  }
  // reducer(%lhs0, %rhs0) (%lhs1, %rhs1): the region's arguments are all left sides, then all right sides.
  expect_word("reducer", "before the arguments of a reducer");
  std::vector<BlockArgument> left;
  std::vector<BlockArgument> right;
  for (size_t i = 0; i < count; ++i) {
    const Token where = token_;
    std::vector<BlockArgument> pair = block_arguments();
    if (pair.size() != 2) fail("program_syntax", where, "expected a pair of arguments for each operand");
    left.push_back(std::move(pair[0]));
    right.push_back(std::move(pair[1]));
  }
  left.insert(left.end(), right.begin(), right.end());
  op.regions.push_back(region(left));
}

void Parser::pretty_scan(OperationState& state) {
  // chlo.scan(%inputs) inits(%starts) dimension=0 attributes {...} { ^bb0(...): ... } : types
  ir::Op& op = state.op;
  op.operands = operands_in_parentheses();
  expect_word("inits", "before the start values of '" + op.name + "'");
  const std::vector<ir::ValueId> starts = operands_in_parentheses();
  op.operands.insert(op.operands.end(), starts.begin(), starts.end());
  expect_key("dimension");
  op.attributes.emplace_back("dimension", ir::Attribute{ir::IntegerAttr{signed_integer("a dimension"), "i64"}});
  if (accept("attributes")) {
    for (auto& entry : attribute_dict()) op.attributes.push_back(std::move(entry));
  }
  op.regions.push_back(region({}));
  types_behind_colon(state);
}

void Parser::pretty_sharding_constraint(OperationState& state) {
  state.op.operands.push_back(value_use());
  state.op.attributes.emplace_back("sharding", ir::Attribute{ir::ShardingAttr{{sharding_body()}, false}});
  attributes_and_types(state);
}

void Parser::pretty_sdy_collective(OperationState& state) {
  for (const ops::AttributeSpec& spec : state.def->signature.attributes) {
    if (spec.name != state.def->axes.attribute) continue;
    const char* kind = state.def->axes.effect == ops::AxesEffect::kMoved ? "all_to_all_param_list"
                       : at('{')                                         ? "axis_ref_list"
                                                                         : "list_of_axis_ref_lists";
    state.op.attributes.emplace_back(std::string(spec.name), axis_lists(kind));
  }
  state.op.operands.push_back(value_use());
  expect_key("out_sharding");
  state.op.attributes.emplace_back("sharding", ir::Attribute{ir::ShardingAttr{{sharding_body()}, false}});
  attributes_and_types(state);
}

void Parser::pretty_data_flow_edge(OperationState& state) {
  state.op.operands.push_back(value_use());
  if (at("sharding")) {
    expect_key("sharding");
    state.op.attributes.emplace_back("sdy.sharding", ir::Attribute{ir::ShardingAttr{{sharding_body()}, true}});
  }
  attributes_and_types(state);
}

void Parser::pretty_sharding_group(OperationState& state) {
  state.op.operands.push_back(value_use());
  expect_key("group_id");
  state.op.attributes.emplace_back("group_id",
                                   ir::Attribute{ir::IntegerAttr{signed_integer("the number of a group"), "i64"}});
  for (auto& entry : optional_attribute_dict()) state.op.attributes.push_back(std::move(entry));
  expect(':', "before the type of an op");
  check_operands(state, {type()});
}

void Parser::pretty_propagation_barrier(OperationState& state) {
  state.op.operands.push_back(value_use());
  expect_key("allowed_direction");
  const Token direction = expect(TokenKind::kWord, "a direction: NONE, FORWARD, BACKWARD or BOTH");
  state.op.attributes.emplace_back(
      "allowed_direction", ir::Attribute{ir::EnumAttr{"sdy.propagation_direction", std::string(direction.text)}});
  attributes_and_types(state);
}

void Parser::pretty_manual_computation(OperationState& state) {
  ir::Op& op = state.op;
  op.operands = operands_in_parentheses();
  for (const char* name : {"in_shardings", "out_shardings"}) {
    expect_key(name);
    op.attributes.emplace_back(name, ir::Attribute{ir::ShardingAttr{sharding_list(), true}});
  }
  expect_key("manual_axes");
  op.attributes.emplace_back("manual_axes", manual_axes());
  const std::vector<BlockArgument> arguments = block_arguments();
  op.regions.push_back(region(arguments));
  attributes_and_types(state);
}

void Parser::pretty_named_computation(OperationState& state) {
  ir::Op& op = state.op;
  expect('<', "before the name of a computation");
  op.attributes.emplace_back("name", ir::Attribute{ir::StringAttr{unescape(expect(TokenKind::kString, "a name"))}});
  expect('>', "behind the name of a computation");
  op.operands = operands_in_parentheses();
  for (const char* name : {"in_shardings", "out_shardings"}) {
    if (!at(name)) continue;
    expect_key(name);
    op.attributes.emplace_back(name, ir::Attribute{ir::ShardingAttr{sharding_list(), true}});
  }
  const std::vector<BlockArgument> arguments = block_arguments();
  op.regions.push_back(region(arguments));
  attributes_and_types(state);
}

}  // namespace meshd::program
