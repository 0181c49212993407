// Pretty forms as a table: operands, then `key = value` fields, then attributes and types. What does not fit has its
// own function (parser_pretty_ops.cpp, parser_pretty_regions.cpp). Fields become the attributes of the generic form.
#include "service/program/parse/parser.h"

namespace meshd::program {

enum class FieldKind : uint8_t {
  kInt,
  kBool,
  kIntArray,
  kEnum,
  kPrecision,
  kFormat,
  kBatching,
  kContracting,
  kAlgorithm,
  kText,
};

/// One `key = value`. `kind_name` is the kind of an enum.
struct PrettyField {
  std::string_view key;
  FieldKind kind;
  std::string_view attribute;
  std::string_view kind_name = {};
};

/// One op's fields, in any order.
struct PrettyForm {
  std::string_view op;
  std::vector<PrettyField> fields;
};

namespace {

const std::vector<PrettyForm>& forms() {
  static const std::vector<PrettyForm> table = {
      {"stablehlo.iota", {{"dim", FieldKind::kInt, "iota_dimension"}}},
      {"stablehlo.dynamic_iota", {{"dim", FieldKind::kInt, "iota_dimension"}}},
      {"stablehlo.broadcast", {{"sizes", FieldKind::kIntArray, "broadcast_sizes"}}},
      {"stablehlo.broadcast_in_dim", {{"dims", FieldKind::kIntArray, "broadcast_dimensions"}}},
      {"stablehlo.dynamic_broadcast_in_dim", {{"dims", FieldKind::kIntArray, "broadcast_dimensions"}}},
      {"stablehlo.transpose", {{"dims", FieldKind::kIntArray, "permutation"}}},
      {"stablehlo.reverse", {{"dims", FieldKind::kIntArray, "dimensions"}}},
      {"stablehlo.concatenate", {{"dim", FieldKind::kInt, "dimension"}}},
      {"stablehlo.get_dimension_size", {{"dim", FieldKind::kInt, "dimension"}}},
      {"stablehlo.set_dimension_size", {{"dim", FieldKind::kInt, "dimension"}}},
      {"stablehlo.dynamic_slice", {{"sizes", FieldKind::kIntArray, "slice_sizes"}}},
      {"stablehlo.pad",
       {{"low", FieldKind::kIntArray, "edge_padding_low"},
        {"high", FieldKind::kIntArray, "edge_padding_high"},
        {"interior", FieldKind::kIntArray, "interior_padding"}}},
      {"stablehlo.fft",
       {{"type", FieldKind::kEnum, "fft_type", "fft_type"}, {"length", FieldKind::kIntArray, "fft_length"}}},
      {"stablehlo.cholesky", {{"lower", FieldKind::kBool, "lower"}}},
      {"stablehlo.reduce_precision", {{"format", FieldKind::kFormat, ""}}},
      {"stablehlo.rng", {{"distribution", FieldKind::kEnum, "rng_distribution", "rng_distribution"}}},
      {"stablehlo.rng_bit_generator", {{"algorithm", FieldKind::kEnum, "rng_algorithm", "rng_algorithm"}}},
      {"stablehlo.dot", {{"precision", FieldKind::kPrecision, "precision_config"}}},
      {"stablehlo.dot_general",
       {{"batching_dims", FieldKind::kBatching, ""},
        {"contracting_dims", FieldKind::kContracting, ""},
        {"precision", FieldKind::kPrecision, "precision_config"},
        {"algorithm", FieldKind::kAlgorithm, "algorithm"}}},
      {"stablehlo.einsum", {{"config", FieldKind::kText, "einsum_config"}}},
      {"stablehlo.unary_einsum", {{"config", FieldKind::kText, "einsum_config"}}},
  };
  return table;
}

const PrettyForm* form_of(std::string_view op) {
  for (const PrettyForm& form : forms()) {
    if (form.op == op) return &form;
  }
  return nullptr;
}

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
  type.tensor.dtype = type.dtype() == tensor::DType::kComplex64 ? tensor::DType::kFloat32 : tensor::DType::kFloat64;
  return type;
}

}  // namespace

void Parser::pretty_op(OperationState& state) {
  using Method = void (Parser::*)(OperationState&);
  static const std::unordered_map<std::string_view, Method> special = {
      {"stablehlo.constant", &Parser::pretty_constant},
      {"sdy.constant", &Parser::pretty_constant},
      {"chlo.constant", &Parser::pretty_constant},
      {"func.return", &Parser::pretty_return},
      {"stablehlo.return", &Parser::pretty_return},
      {"sdy.return", &Parser::pretty_return},
      {"func.call", &Parser::pretty_call},
      {"stablehlo.custom_call", &Parser::pretty_call},
      {"stablehlo.compare", &Parser::pretty_compare},
      {"stablehlo.slice", &Parser::pretty_slice},
      {"stablehlo.get_tuple_element", &Parser::pretty_get_tuple_element},
      {"stablehlo.trace", &Parser::pretty_trace},
      {"stablehlo.convolution", &Parser::pretty_convolution},
      {"stablehlo.dynamic_conv", &Parser::pretty_convolution},
      {"chlo.scan", &Parser::pretty_scan},
      {"chlo.top_k", &Parser::pretty_top_k},
      {"stablehlo.composite", &Parser::pretty_composite},
      {"stablehlo.while", &Parser::pretty_while},
      {"stablehlo.reduce", &Parser::pretty_reduce},
      {"sdy.sharding_constraint", &Parser::pretty_sharding_constraint},
      {"sdy.reshard", &Parser::pretty_sharding_constraint},
      {"sdy.all_gather", &Parser::pretty_sdy_collective},
      {"sdy.all_slice", &Parser::pretty_sdy_collective},
      {"sdy.all_to_all", &Parser::pretty_sdy_collective},
      {"sdy.collective_permute", &Parser::pretty_sdy_collective},
      {"sdy.all_reduce", &Parser::pretty_sdy_collective},
      {"sdy.reduce_scatter", &Parser::pretty_sdy_collective},
      {"sdy.sharded_to_unreduced", &Parser::pretty_sdy_collective},
      {"sdy.replicated_to_unreduced", &Parser::pretty_sdy_collective},
      {"sdy.data_flow_edge", &Parser::pretty_data_flow_edge},
      {"sdy.sharding_group", &Parser::pretty_sharding_group},
      {"sdy.propagation_barrier", &Parser::pretty_propagation_barrier},
      {"sdy.manual_computation", &Parser::pretty_manual_computation},
      {"sdy.named_computation", &Parser::pretty_named_computation},
  };
  const auto found = special.find(state.op.name);
  if (found != special.end()) {
    (this->*found->second)(state);
  } else {
    fields_op(state, form_of(state.op.name));
  }
}

void Parser::fields_op(OperationState& state, const PrettyForm* form) {
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
      const PrettyField* known = nullptr;
      if (form != nullptr && key.is(TokenKind::kWord)) {
        for (const PrettyField& candidate : form->fields) {
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
  for (auto& entry : optional_attribute_dict()) op.attributes.push_back(std::move(entry));
  types_behind_colon(state);
}

void Parser::field(OperationState& state, const PrettyField& field) {
  ir::AttributeList& attributes = state.op.attributes;
  const std::string name(field.attribute);
  const Token value = token_;
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
  const size_t operand_count = op.operands.size();
  if (op.name == "stablehlo.optimization_barrier") {
    check_operands(state, types);
    state.result_types = std::move(types);
  } else if (op.name == "stablehlo.select" && types.size() == 2) {
    check_operands(state, {types[0], types[1], types[1]});
    state.result_types = {types[1]};
  } else if (types.size() != 1) {
    fail("program_syntax", where, "expected one type or (types) -> type behind '" + op.name + "'");
  } else if (op.name == "stablehlo.complex" && types[0].is_tensor() && tensor::is_complex(types[0].dtype())) {
    check_operands(state, {real_of(types[0]), real_of(types[0])});
    state.result_types = std::move(types);
  } else if (op.name == "stablehlo.tuple" && types[0].kind == ir::TypeKind::kTuple) {
    check_operands(state, types[0].elements);
    state.result_types = std::move(types);
  } else {
    check_operands(state, std::vector<ir::Type>(operand_count, types[0]));
    state.result_types = std::move(types);
  }
}

}  // namespace meshd::program
