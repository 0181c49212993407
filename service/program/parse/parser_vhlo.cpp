// VHLO as text, as tools print portable artifacts: types, attributes and ops of the versioned dialect become those of
// StableHLO while they are read.
//
//   !vhlo.tensor_v1<2x!vhlo.f32_v1>                                  -> tensor<2xf32>
//   #vhlo.tensor_v1<dense<1> : tensor<1xi64>>                        -> dense<1> : tensor<1xi64>
//   #vhlo<comparison_direction_v1 LT>                                -> #stablehlo<comparison_direction LT>
//   "vhlo.broadcast_v1"(%0) <{broadcast_sizes = #vhlo.tensor_v1<dense<4> : tensor<1xi64>>}>
//                                                                    -> stablehlo.broadcast, broadcast_sizes =
//                                                                    array<i64: 4>
#include <algorithm>
#include <array>

#include "service/program/bytecode/vhlo_forms.h"
#include "service/program/parse/parser.h"

namespace meshd::program {
namespace {

constexpr std::string_view kTypes = "!vhlo.";
constexpr std::string_view kAttributes = "#vhlo.";

/// The versions of custom calls, by number.
constexpr std::array<std::string_view, 5> kApiVersions = {
    "API_VERSION_UNSPECIFIED", "API_VERSION_ORIGINAL", "API_VERSION_STATUS_RETURNING",
    "API_VERSION_STATUS_RETURNING_UNIFIED", "API_VERSION_TYPED_FFI"};

ir::Attribute* find_attribute(ir::AttributeList& list, std::string_view name) {
  const auto found = std::find_if(list.begin(), list.end(), [&](const auto& entry) { return entry.name == name; });
  return found == list.end() ? nullptr : &found->value;
}

ir::Attribute take(ir::AttributeList& list, std::string_view name) {
  ir::Attribute* found = find_attribute(list, name);
  if (found == nullptr) return {};
  ir::Attribute out = std::move(*found);
  std::erase_if(list, [&](const auto& entry) { return entry.name == name; });
  return out;
}

/// Integers of a constant that has them; nothing for others.
std::optional<std::vector<int64_t>> integers_of(const ir::Attribute& attribute) {
  const auto* dense = attribute.as<ir::DenseAttr>();
  if (dense == nullptr || tensor::is_float(dense->type.dtype) || tensor::is_complex(dense->type.dtype))
    return std::nullopt;
  return ir::dense_ints(*dense);
}

bool is_empty(const ir::Attribute& attribute) {
  if (const auto* text = attribute.as<ir::StringAttr>()) return text->value.empty();
  if (const auto* list = attribute.as<ir::ArrayAttr>()) return list->values.empty();
  if (const auto* dict = attribute.as<ir::DictAttr>()) return dict->entries.empty();
  const auto values = integers_of(attribute);
  return values && values->empty();
}

bool is_number(const ir::Attribute& attribute, int64_t number) {
  const auto* value = attribute.as<ir::IntegerAttr>();
  return value != nullptr && value->value == number;
}

bool is_all(const ir::Attribute& attribute, const VhloDefaultValue& row) {
  if (const auto* list = attribute.as<ir::ArrayAttr>()) {
    return std::all_of(list->values.begin(), list->values.end(), [&](const ir::Attribute& entry) {
      const auto* word = entry.as<ir::EnumAttr>();
      return word != nullptr && row.text == "#stablehlo<" + word->kind + " " + word->value + ">";
    });
  }
  const auto values = integers_of(attribute);
  return values && row.text.empty() &&
         std::all_of(values->begin(), values->end(), [&](int64_t value) { return value == row.number; });
}

/// True for what StableHLO means by its absence.
bool is_default(const ir::NamedAttribute& entry, const ir::AttributeList& all) {
  const ir::Attribute& value = entry.value;
  if (entry.name.ends_with("_layouts")) {
    // Layouts of operands and results come together.
    return std::all_of(all.begin(), all.end(),
                       [](const auto& one) { return !one.name.ends_with("_layouts") || is_empty(one.value); });
  }
  if (entry.name == "source_target_pairs") return ir::find(all, "is_host_transfer") != nullptr && is_empty(value);
  if (entry.name == "dimension") return is_number(value, -1);
  for (const VhloDefaultValue& row : kVhloDefaults) {
    if (row.name != entry.name) continue;
    const auto* word = value.as<ir::EnumAttr>();
    switch (row.kind) {
      case VhloDefault::kFalse:
        return is_number(value, 0);
      case VhloDefault::kEmpty:
        return is_empty(value);
      case VhloDefault::kNumber:
        return is_number(value, row.number);
      case VhloDefault::kText:
        return (word != nullptr && row.text == "#stablehlo<" + word->kind + " " + word->value + ">") ||
               (entry.name == "api_version" && is_number(value, 1));
      case VhloDefault::kAll:
        return is_all(value, row);
    }
  }
  return false;
}

/// Fields that are attributes of their own in VHLO become the struct.
void assemble(ir::AttributeList& all) {
  for (const VhloStruct& row : kVhloStructs) {
    if (ir::find(all, row.fields[0]) == nullptr) continue;
    ir::DictAttr made;
    made.name = "stablehlo." + std::string(row.kind);
    for (const std::string_view name : row.fields) {
      if (name.empty() || ir::find(all, name) == nullptr) continue;
      ir::Attribute value = take(all, name);
      const bool is_nothing = is_empty(value) || is_number(value, 0);
      if (is_nothing && !row.writes_empty) continue;
      if (auto values = integers_of(value)) value = {ir::IntArrayAttr{*std::move(values), "i64"}};
      made.entries.emplace_back(std::string(name), std::move(value));
    }
    all.emplace_back(std::string(row.name), ir::Attribute{std::move(made)});
  }
  if (ir::find(all, "channel_id") != nullptr) {
    const ir::Attribute id = take(all, "channel_id");
    const ir::Attribute type = take(all, "channel_type");
    const auto* handle = id.as<ir::IntegerAttr>();
    const auto* kind = type.as<ir::IntegerAttr>();
    if (handle != nullptr && (kind != nullptr || handle->value != 0)) {
      all.emplace_back("channel_handle",
                       ir::Attribute{ir::DictAttr{"stablehlo.channel_handle",
                                                  {{"handle", ir::integer_attr(handle->value)},
                                                   {"type", ir::integer_attr(kind == nullptr ? 0 : kind->value)}}}});
    }
  }
  if (ir::find(all, kVhloAlgorithm[0]) == nullptr) return;
  ir::DictAttr algorithm;
  algorithm.name = "stablehlo.dot_algorithm";
  bool is_none = false;
  for (const std::string_view name : kVhloAlgorithm) {
    ir::Attribute value = take(all, name);
    const auto* type = value.as<ir::EnumAttr>();
    is_none = is_none || (type != nullptr && type->value == "none");
    algorithm.entries.emplace_back(std::string(name), std::move(value));
  }
  if (!is_none) all.emplace_back("algorithm", ir::Attribute{std::move(algorithm)});
}

/// operand_index of operandIndex.
std::string as_snake_case(std::string_view name) {
  std::string out;
  for (const char c : name) {
    const bool is_upper = c >= 'A' && c <= 'Z';
    if (is_upper) out += '_';
    out += is_upper ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return out;
}

void as_symbols(ir::Attribute& value) {
  if (const auto* text = value.as<ir::StringAttr>()) value = {ir::SymbolAttr{text->value}};
  if (auto* list = std::get_if<ir::ArrayAttr>(&value.value)) {
    for (ir::Attribute& entry : list->values) as_symbols(entry);
  }
}

}  // namespace

bool Parser::at_vhlo_type() const { return token_.text.starts_with(kTypes); }

std::string_view Parser::vhlo_scalar(std::string_view name) {
  const std::string_view scalar = without_version(name.substr(kTypes.size()));
  return scalar == "bool" ? "i1" : scalar;
}

ir::Type Parser::vhlo_type() {
  const Token start = take();
  const std::string_view name = vhlo_scalar(start.text);
  if (name == "tensor") return tensor_body(nullptr);
  if (name == "token") return ir::Type::token();
  if (name != "tuple" && name != "future")
    fail("unsupported_type", start, "type " + describe(start) + " is not supported");
  ir::Type out;
  out.kind = ir::TypeKind::kTuple;
  list('<', '>', "in a tuple type", [&] { out.elements.push_back(type()); });
  return out;
}

ir::TypeAttr Parser::vhlo_function_type() {
  const auto types = [&] {
    std::vector<ir::Type> out;
    list('(', ')', "around types", [&] {
      if (!accept('(')) return out.push_back(type());
      expect(')', "behind no types");
    });
    return out;
  };
  ir::TypeAttr out;
  out.is_function = true;
  out.inputs = types();
  expect(TokenKind::kArrow, "'->' in a function type");
  if (at('(')) {
    out.results = types();
  } else {
    do out.results.push_back(type());
    while (accept(','));
  }
  return out;
}

ir::Attribute Parser::vhlo_attribute(const Token& start) {
  const std::string name(without_version(start.text.substr(std::min(start.text.size(), kAttributes.size()))));
  expect('<', "behind " + describe(start));
  if (name.empty()) {
    const std::string kind(without_version(expect(TokenKind::kWord, "the kind of an attribute").text));
    const Token value = expect(TokenKind::kWord, "the value of an attribute");
    expect('>', "at the end of an attribute");
    const auto* version = std::find(kApiVersions.begin(), kApiVersions.end(), value.text);
    if (kind == "api_version" && version != kApiVersions.end())
      return {ir::IntegerAttr{version - kApiVersions.begin(), "i32"}};
    return {ir::EnumAttr{kind, std::string(value.text)}};
  }
  ir::Attribute out;
  if (name == "dict") {
    ir::DictAttr dict;
    list('{', '}', "around attributes", [&] {
      const Token where = token_;
      const ir::Attribute key = attribute();
      const auto* text = key.as<ir::StringAttr>();
      if (text == nullptr) fail("program_syntax", where, "the name of an attribute must be a string");
      expect('=', "behind the name of an attribute");
      dict.entries.emplace_back(text->value, attribute());
    });
    out = {std::move(dict)};
  } else if (name == "result_accuracy_mode") {
    out = {ir::EnumAttr{name, std::string(expect(TokenKind::kWord, "the mode of an accuracy").text)}};
  } else if (name == "output_operand_alias" || name == "result_accuracy") {
    ir::DictAttr fields;
    fields.name = "stablehlo." + name;
    do {
      std::string key = as_snake_case(expect(TokenKind::kWord, "the name of a field").text);
      expect('=', "behind a field's name");
      fields.entries.emplace_back(std::move(key), struct_field());
    } while (accept(','));
    out = {std::move(fields)};
  } else if (name == "array" || name == "bool" || name == "float" || name == "integer" || name == "string" ||
             name == "tensor" || name == "type") {
    out = attribute();
  } else {
    fail("unsupported_attribute", start, "attribute " + describe(start) + " is not supported");
  }
  expect('>', "at the end of " + describe(start));
  return out;
}

ir::AttributeList Parser::from_vhlo(ir::AttributeList given) {
  const bool is_cholesky = given.size() == 1 && given[0].name == "lower";
  ir::AttributeList all;
  for (const ir::NamedAttribute& entry : given) {
    if (!is_default(entry, given) && !(is_cholesky && is_number(entry.value, 0))) all.push_back(entry);
  }
  assemble(all);
  for (auto& [name, value] : all) {
    if (std::find(kVhloSymbols.begin(), kVhloSymbols.end(), name) != kVhloSymbols.end()) as_symbols(value);
    if (name == "use_global_device_ids") value = {ir::Unit{}};
    if (std::find(kVhloTensors.begin(), kVhloTensors.end(), name) != kVhloTensors.end()) continue;
    const auto* dense = value.as<ir::DenseAttr>();
    auto values = integers_of(value);
    if (values)
      value = {ir::IntArrayAttr{*std::move(values), dense->type.dtype == tensor::DType::kBool ? "i1" : "i64"}};
  }
  return all;
}

}  // namespace meshd::program
