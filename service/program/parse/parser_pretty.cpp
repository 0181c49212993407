// Pretty forms by the rows of the op table (ops/text_form.h): operands, then `key = value` fields, then attributes and
// types. What does not fit has its own function (parser_pretty_ops.cpp, parser_pretty_regions.cpp). Fields become the
// attributes of the generic form.
#include "service/program/parse/parser.h"

namespace meshd::program {

namespace {

/// eNmM as two numbers, or nothing.
std::optional<std::pair<int64_t, int64_t>> exponent_mantissa(std::string_view text) {
  const size_t m = text.find('m');
  if (text.empty() || text[0] != 'e' || m == std::string_view::npos) return std::nullopt;
  const auto number = [](std::string_view digits) -> int64_t {
    int64_t value = digits.empty() || digits.size() > 4 ? -1 : 0;
    for (const char c : digits) value = value < 0 || c < '0' || c > '9' ? -1 : value * 10 + (c - '0');
    return value;
  };
  const std::pair out(number(text.substr(1, m - 1)), number(text.substr(m + 1)));
  if (out.first < 0 || out.second < 0) return std::nullopt;
  return out;
}

/// The real type of a complex tensor's parts.
ir::Type real_of(ir::Type type) {
  type.tensor.dtype = tensor::part_of(type.dtype());
  return type;
}

}  // namespace

void Parser::pretty_op(OperationState& state) {
  using ops::TextShape;
  switch (state.def->text.shape) {
    case TextShape::kFields:
      return fields_op(state);
    case TextShape::kConstant:
      return pretty_constant(state);
    case TextShape::kReturn:
      return pretty_return(state);
    case TextShape::kCall:
    case TextShape::kCustomCall:
      return pretty_call(state);
    case TextShape::kCompare:
      return pretty_compare(state);
    case TextShape::kSlice:
      return pretty_slice(state);
    case TextShape::kGetTupleElement:
      return pretty_get_tuple_element(state);
    case TextShape::kTrace:
      return pretty_trace(state);
    case TextShape::kConvolution:
      return pretty_convolution(state);
    case TextShape::kTopK:
      return pretty_top_k(state);
    case TextShape::kComposite:
      return pretty_composite(state);
    case TextShape::kWhile:
      return pretty_while(state);
    case TextShape::kReduce:
      return pretty_reduce(state);
    case TextShape::kScan:
      return pretty_scan(state);
    case TextShape::kShardingConstraint:
      return pretty_sharding_constraint(state);
    case TextShape::kSdyCollective:
      return pretty_sdy_collective(state);
    case TextShape::kDataFlowEdge:
      return pretty_data_flow_edge(state);
    case TextShape::kShardingGroup:
      return pretty_sharding_group(state);
    case TextShape::kPropagationBarrier:
      return pretty_propagation_barrier(state);
    case TextShape::kManualComputation:
      return pretty_manual_computation(state);
    case TextShape::kNamedComputation:
      return pretty_named_computation(state);
  }
}

void Parser::fields_op(OperationState& state) {
  ir::Op& op = state.op;
  // optimization_barrier prints its attributes first; a composite's name is among them already.
  for (auto& entry : optional_attribute_dict()) op.attributes.push_back(std::move(entry));
  if (accept('(')) {
    expect(')', "in an op without operands");
    if (!at(':')) return;  // nor results
  }
  while (!at(':') && !at('{') && !token_.is(TokenKind::kEnd)) {
    if (token_.is(TokenKind::kValue)) {
      op.operands.push_back(value_use());
    } else {
      const Token key = token_;
      const ops::TextField* known = nullptr;
      if (key.is(TokenKind::kWord)) {
        for (const ops::TextField& candidate : state.def->text.fields) {
          if (candidate.key == key.text) known = &candidate;
        }
      }
      if (known == nullptr) expected("an operand of '" + op.name + "' or ':'");
      advance();
      expect('=', "behind '" + std::string(key.text) + "'");
      field(state, *known);
    }
    if (!accept(',')) break;
  }
  attributes_and_types(state);
}

void Parser::field(OperationState& state, const ops::TextField& field) {
  ir::AttributeList& attributes = state.op.attributes;
  const std::string name(field.attribute);
  const Token value = token_;
  using ops::FieldKind;
  switch (field.kind) {
    case FieldKind::kInt:
      attributes.emplace_back(name, ir::Attribute{ir::IntegerAttr{signed_integer("an integer"), "i64"}});
      return;
    case FieldKind::kBool:
      if (!at("true") && !at("false")) expected("true or false");
      advance();
      attributes.emplace_back(name, ir::Attribute{ir::IntegerAttr{value.text == "true" ? 1 : 0, "i1"}});
      return;
    case FieldKind::kIntArray:
      attributes.emplace_back(name, ir::Attribute{ir::IntArrayAttr{integer_list("around integers"), "i64"}});
      return;
    case FieldKind::kEnum:
      attributes.emplace_back(name, ir::Attribute{ir::EnumAttr{std::string(field.kind_name),
                                                               std::string(expect(TokenKind::kWord, "a word").text)}});
      return;
    case FieldKind::kText:
      attributes.emplace_back(name, ir::Attribute{ir::StringAttr{unescape(expect(TokenKind::kString, "a string"))}});
      return;
    case FieldKind::kPrecision: {
      ir::ArrayAttr out;
      list('[', ']', "around precisions", [&] {
        out.values.push_back({ir::EnumAttr{"precision", std::string(expect(TokenKind::kWord, "a precision").text)}});
      });
      attributes.emplace_back(name, ir::Attribute{std::move(out)});
      return;
    }
    case FieldKind::kFormat: {
      const auto format = value.is(TokenKind::kWord) ? exponent_mantissa(value.text) : std::nullopt;
      if (!format) expected("a format such as e5m10");
      advance();
      attributes.emplace_back("exponent_bits", ir::Attribute{ir::IntegerAttr{format->first, "i32"}});
      attributes.emplace_back("mantissa_bits", ir::Attribute{ir::IntegerAttr{format->second, "i32"}});
      return;
    }
    case FieldKind::kBatching:
    case FieldKind::kContracting: {
      const std::string suffix = field.kind == FieldKind::kBatching ? "batching_dimensions" : "contracting_dimensions";
      ir::IntArrayAttr lhs{integer_list("around dimensions"), "i64"};
      expect_word("x", "between dimensions of both sides");
      ir::IntArrayAttr rhs{integer_list("around dimensions"), "i64"};
      if (find(attributes, "dot_dimension_numbers") == nullptr) {
        attributes.emplace_back("dot_dimension_numbers", ir::Attribute{ir::DictAttr{"stablehlo.dot", {}}});
      }
      for (auto& [key, attribute] : attributes) {
        if (key != "dot_dimension_numbers") continue;
        auto& entries = std::get<ir::DictAttr>(attribute.value).entries;
        entries.emplace_back("lhs_" + suffix, ir::Attribute{std::move(lhs)});
        entries.emplace_back("rhs_" + suffix, ir::Attribute{std::move(rhs)});
        break;
      }
      return;
    }
    case FieldKind::kAlgorithm:
      attributes.emplace_back(name, struct_attribute("stablehlo.dot_algorithm"));
      return;
  }
}

void Parser::attributes_and_types(OperationState& state) {
  for (auto& entry : optional_attribute_dict()) state.op.attributes.push_back(std::move(entry));
  types_behind_colon(state);
}

void Parser::types_behind_colon(OperationState& state) {
  const Token where = token_;
  const ir::Op& op = state.op;
  expect(':', "before the type of an op");
  if (at('(')) {
    check_operands(state, type_list_in_parentheses());
    expect(TokenKind::kArrow, "'->' in the type of an op");
    state.result_types = result_types();
    return;
  }
  std::vector<ir::Type> types;
  do types.push_back(type());
  while (accept(','));
  if (token_.is(TokenKind::kArrow)) {
    advance();
    check_operands(state, types);
    state.result_types = result_types();
    return;
  }
  // Without '->': the row defines what the types are of.
  using ops::TextTypes;
  const TextTypes how = state.def->text.types;
  if (how == TextTypes::kEach) {
    check_operands(state, types);
    state.result_types = std::move(types);
    return;
  }
  if (how == TextTypes::kSelect && types.size() == 2) {
    check_operands(state, {types[0], types[1], types[1]});
    state.result_types = {types[1]};
    return;
  }
  if (types.size() != 1) fail("program_syntax", where, "expected one type or (types) -> type behind '" + op.name + "'");
  const ir::Type& only = types[0];
  if (how == TextTypes::kComplexParts && only.is_tensor() && tensor::is_complex(only.dtype())) {
    check_operands(state, {real_of(only), real_of(only)});
  } else if (how == TextTypes::kTupleElements && only.kind == ir::TypeKind::kTuple) {
    check_operands(state, only.elements);
  } else {
    check_operands(state, std::vector<ir::Type>(op.operands.size(), only));
  }
  state.result_types = std::move(types);
}

}  // namespace meshd::program
