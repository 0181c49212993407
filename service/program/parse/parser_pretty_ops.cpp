// Pretty forms of single ops that fit no table: constants, calls, comparisons, slices, convolutions.
#include <fmt/core.h>

#include "service/program/parse/parser.h"

namespace meshd::program {
namespace {

ir::Attribute int_attribute(int64_t value, std::string type = "i64") {
  return {ir::IntegerAttr{value, std::move(type)}};
}

}  // namespace

void Parser::pretty_constant(OperationState& state) {
  // A quantised constant: () <{value = dense<...> : tensor<2xi8>}> : () -> tensor<2x!quant.uniform<...>>.
  if (at('(')) return generic_op(state);
  state.op.attributes = optional_attribute_dict();
  const Token where = token_;
  ir::Attribute given;
  if (at("dense") || at("dense_resource") || token_.is(TokenKind::kHash)) given = attribute();
  if (given.as<ir::DenseAttr>() == nullptr)
    fail("program_syntax", where, "expected dense<...> behind '" + state.op.name + "', got " + describe(where));
  state.result_types = {ir::Type::of(given.as<ir::DenseAttr>()->type)};
  // A type follows only where it differs, which makes the result dynamic.
  if (accept(':')) state.result_types = {type()};
  state.op.attributes.emplace_back("value", std::move(given));
}

void Parser::pretty_return(OperationState& state) {
  state.op.attributes = optional_attribute_dict();
  if (!token_.is(TokenKind::kValue)) return;
  do state.op.operands.push_back(value_use());
  while (accept(','));
  for (auto& entry : optional_attribute_dict()) state.op.attributes.push_back(std::move(entry));
  expect(':', "before the types of returned values");
  std::vector<ir::Type> types;
  do types.push_back(type());
  while (accept(','));
  check_operands(state, types);
}

void Parser::pretty_call(OperationState& state) {
  const Token target = expect(TokenKind::kSymbol, "what is called, such as @name");
  state.op.operands = operands_in_parentheses();
  const std::string name = symbol_name(target);
  const bool is_custom = state.def->text.shape == ops::TextShape::kCustomCall;
  state.op.attributes.emplace_back(
      is_custom ? "call_target_name" : "callee",
      is_custom ? ir::Attribute{ir::StringAttr{name}} : ir::Attribute{ir::SymbolAttr{name}});
  attributes_and_types(state);
}

void Parser::pretty_composite(OperationState& state) {
  const std::string name =
      token_.is(TokenKind::kSymbol) ? symbol_name(take()) : unescape(expect(TokenKind::kString, "a name"));
  state.op.attributes.emplace_back("name", ir::Attribute{ir::StringAttr{name}});
  fields_op(state);
}

void Parser::pretty_compare(OperationState& state) {
  ir::Op& op = state.op;
  const auto word = [&](std::string_view attribute, std::string_view kind, std::string_view what) {
    op.attributes.emplace_back(
        std::string(attribute),
        ir::Attribute{ir::EnumAttr{std::string(kind), std::string(expect(TokenKind::kWord, what).text)}});
  };
  word("comparison_direction", "comparison_direction", "a direction such as LT");
  expect(',', "behind the direction of a comparison");
  op.operands.push_back(value_use());
  expect(',', "between the operands of a comparison");
  op.operands.push_back(value_use());
  if (accept(',')) word("compare_type", "comparison_type", "a kind of comparison such as FLOAT");
  attributes_and_types(state);
}

void Parser::pretty_slice(OperationState& state) {
  state.op.operands.push_back(value_use());
  ir::IntArrayAttr start;
  ir::IntArrayAttr limit;
  ir::IntArrayAttr stride;
  list('[', ']', "around the ranges of a slice", [&] {
    start.values.push_back(signed_integer("the start of a range"));
    expect(':', "in a range");
    limit.values.push_back(signed_integer("the limit of a range"));
    stride.values.push_back(accept(':') ? signed_integer("the stride of a range") : 1);
  });
  state.op.attributes.emplace_back("start_indices", ir::Attribute{std::move(start)});
  state.op.attributes.emplace_back("limit_indices", ir::Attribute{std::move(limit)});
  state.op.attributes.emplace_back("strides", ir::Attribute{std::move(stride)});
  attributes_and_types(state);
}

void Parser::pretty_get_tuple_element(OperationState& state) {
  state.op.operands.push_back(value_use());
  expect('[', "before the number of an element");
  state.op.attributes.emplace_back("index", int_attribute(signed_integer("the number of an element"), "i32"));
  expect(']', "behind the number of an element");
  attributes_and_types(state);
}

void Parser::pretty_trace(OperationState& state) {
  state.op.operands.push_back(value_use());
  expect(',', "behind the operand of '" + state.op.name + "'");
  state.op.attributes.emplace_back("tag", ir::Attribute{ir::StringAttr{unescape(expect(TokenKind::kString, "a tag"))}});
  for (auto& entry : optional_attribute_dict()) state.op.attributes.push_back(std::move(entry));
  expect(':', "before the type of an op");
  check_operands(state, {type()});
}

void Parser::pretty_top_k(OperationState& state) {
  expect('(', "behind '" + state.op.name + "'");
  state.op.operands.push_back(value_use());
  expect(',', "behind the operand of '" + state.op.name + "'");
  expect_key("k");
  state.op.attributes.emplace_back("k", int_attribute(signed_integer("how many elements are wanted")));
  expect(')', "at the end of '" + state.op.name + "(...)'");
  attributes_and_types(state);
}

void Parser::window(OperationState& state) {
  expect('{', "at the start of a window");
  while (!at('}')) {
    const Token key = expect(TokenKind::kWord, "a field of a window");
    expect('=', "behind a field of a window");
    auto& attributes = state.op.attributes;
    const auto ints = [&](std::string_view name) {
      attributes.emplace_back(std::string(name),
                              ir::Attribute{ir::IntArrayAttr{integer_list("around integers"), "i64"}});
    };
    if (key.text == "stride") {
      ints("window_strides");
    } else if (key.text == "lhs_dilate") {
      ints("lhs_dilation");
    } else if (key.text == "rhs_dilate") {
      ints("rhs_dilation");
    } else if (key.text == "reverse") {
      ir::IntArrayAttr reversal{{}, "i1"};
      list('[', ']', "around truth values", [&] {
        if (!at("true") && !at("false")) {
          reversal.values.push_back(integer("true or false") != 0 ? 1 : 0);
        } else {
          reversal.values.push_back(take().text == "true" ? 1 : 0);
        }
      });
      attributes.emplace_back("window_reversal", ir::Attribute{std::move(reversal)});
    } else if (key.text == "pad") {
      std::vector<int64_t> padding;
      list('[', ']', "around paddings", [&] {
        const Token pair = token_;
        const std::vector<int64_t> both = integer_list("around a padding");
        if (both.size() != 2) fail("program_syntax", pair, "a padding is a pair [low, high]");
        padding.insert(padding.end(), both.begin(), both.end());
      });
      const auto dims = static_cast<int64_t>(padding.size()) / 2;
      attributes.emplace_back("padding", ir::Attribute{ir::dense_integers_attr(padding, {dims, 2})});
    } else {
      fail("program_syntax", key, "unknown field " + describe(key) + " of a window");
    }
    if (!accept(',')) break;
  }
  expect('}', "at the end of a window");
}

void Parser::pretty_convolution(OperationState& state) {
  state.op.operands = operands_in_parentheses();
  expect_key("dim_numbers");
  state.op.attributes.emplace_back("dimension_numbers", ir::Attribute{convolution_dimensions()});
  expect(',', "behind the dimensions of a convolution");
  expect_key("window");
  window(state);
  attributes_and_types(state);
}

}  // namespace meshd::program
