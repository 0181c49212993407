// Attributes of MLIR itself: numbers, strings, lists, dictionaries, arrays, types, symbols.
#include <charconv>
#include <unordered_set>

#include "service/program/literals/float_literal.h"
#include "service/program/parse/parser.h"

namespace meshd::program {
namespace {

/// Texts that MLIR keeps as attributes and nothing here looks into.
bool is_opaque_word(std::string_view word) {
  return word == "affine_map" || word == "affine_set" || word == "strided" || word == "sparse" || word == "distinct";
}

/// The value of a number as its type has it: 0.1 : f32 is 0.100000001490116.
double rounded_to(double value, std::string_view type) {
  const auto dtype = tensor::dtype_from_stablehlo(type);
  return dtype && tensor::is_float(*dtype) ? float_value(*dtype, float_bits(*dtype, value)) : value;
}

/// False when `value` does not fit in an integer type of this name, read as signed or unsigned. Other names hold
/// anything.
bool fits_type(int64_t value, std::string_view type) {
  const auto dtype = tensor::dtype_from_stablehlo(type);
  if (!dtype || tensor::row(*dtype).bits >= 64) return true;
  const int bits = tensor::row(*dtype).bits;
  return value >= -(int64_t{1} << (bits - 1)) && value < int64_t{1} << bits;
}

}  // namespace

ir::Attribute Parser::attribute() {
  if (++attribute_depth_ > kMaxAttributeDepth) fail("program_syntax", token_, "attributes nest too deeply");
  if (++attribute_count_ > kMaxAttributes) fail("program_syntax", token_, "the program has too many attributes");
  // Two characters of text may be one, which takes so many bytes.
  constexpr int64_t kBytes = 240, kPiece = 1024;
  if (hold_ && attribute_count_ % kPiece == 1) hold_(kPiece * kBytes);
  ir::Attribute out = attribute_inner();
  --attribute_depth_;
  return out;
}

ir::Attribute Parser::attribute_inner() {
  switch (token_.kind) {
    case TokenKind::kInteger:
    case TokenKind::kFloat:
      return number_attribute();
    case TokenKind::kString: {
      ir::Attribute out{ir::StringAttr{unescape(take())}};
      if (accept(':')) type_attribute();
      return out;
    }
    case TokenKind::kSymbol: {
      std::string name = symbol_name(take());
      while (at(':')) {
        advance();
        expect(':', "between the parts of a symbol");
        name += "::" + symbol_name(expect(TokenKind::kSymbol, "a symbol"));
      }
      return {ir::SymbolAttr{std::move(name)}};
    }
    case TokenKind::kHash:
      return hash_attribute();
    case TokenKind::kWord:
      break;
    default:
      if (at('-')) return number_attribute();
      if (at('[')) return list_attribute();
      if (at('{')) return {ir::DictAttr{{}, attribute_dict()}};
      if (at_type()) return type_attribute();
      expected("an attribute");
  }
  const std::string_view word = token_.text;
  if (word == "true" || word == "false") {
    advance();
    return {ir::IntegerAttr{word == "true" ? 1 : 0, "i1"}};
  }
  if (word == "unit") {
    advance();
    return {ir::Unit{}};
  }
  if (word == "dense") return {dense_attribute()};
  if (word == "dense_resource") return {dense_resource()};
  if (word == "array") return array_attribute();
  if (word == "loc" || is_opaque_word(word)) {
    const char* begin = token_.text.data();
    advance();
    const std::string_view body = skip_balanced();
    return {ir::OpaqueAttr{std::string(begin, static_cast<size_t>(body.data() + body.size() - begin))}};
  }
  if (at_type()) return type_attribute();
  expected("an attribute");
}

ir::Attribute Parser::number_attribute() {
  const Token start = token_;
  const bool negative = accept('-');
  const Token number = take();
  if (!number.is(TokenKind::kInteger) && !number.is(TokenKind::kFloat)) {
    fail("program_syntax", number, "expected a number, got " + describe(number));
  }
  std::string type_name;
  if (accept(':')) {
    if (at_vhlo_type()) {
      type_name = std::string(vhlo_scalar(take().text));
    } else {
      type_name = std::string(expect(TokenKind::kWord, "the type of a number").text);
    }
  }
  const bool is_float_type = !type_name.empty() && (type_name[0] == 'f' || type_name[0] == 'b');
  if (number.is(TokenKind::kFloat)) {
    if (!type_name.empty() && !is_float_type)
      fail("program_syntax", number, "a number with a point cannot have type " + type_name);
    double value = 0;
    std::from_chars(number.text.data(), number.text.data() + number.text.size(), value);
    if (type_name.empty()) type_name = "f64";
    return {ir::FloatAttr{rounded_to(negative ? -value : value, type_name), type_name}};
  }
  uint64_t value = 0;
  const bool hex = number.text.size() > 2 && number.text[1] == 'x';
  const char* stop = number.text.data() + number.text.size();
  if (std::from_chars(number.text.data() + (hex ? 2 : 0), stop, value, hex ? 16 : 10).ec != std::errc{}) {
    fail("program_syntax", number, "the number " + describe(number) + " does not fit in 64 bits");
  }
  if (is_float_type) {
    const auto dtype = tensor::dtype_from_stablehlo(type_name);
    if (!hex || !dtype || !tensor::is_float(*dtype))
      fail("program_syntax", start, "a number of type " + type_name + " is written with a point, such as 1.0");
    return {ir::FloatAttr{float_value(*dtype, value), type_name}};
  }
  const int64_t signed_value = static_cast<int64_t>(negative ? ~value + 1 : value);
  if (type_name.empty()) type_name = "i64";
  if (!fits_type(signed_value, type_name)) {
    fail("program_syntax", start, "the number " + describe(number) + " does not fit in " + type_name);
  }
  return {ir::IntegerAttr{signed_value, std::move(type_name)}};
}

ir::Attribute Parser::array_attribute() {
  advance();
  expect('<', "behind 'array'");
  ir::IntArrayAttr out;
  const Token element = expect(TokenKind::kWord, "the element type of an array");
  if (element.text[0] != 'i' && element.text.substr(0, 2) != "ui") {
    fail("unsupported_attribute", element, "arrays hold integers or booleans, got " + describe(element));
  }
  out.element_type = std::string(element.text);
  if (accept(':')) {
    do {
      const Token value = token_;
      if (at("true") || at("false")) {
        out.values.push_back(take().text == "true" ? 1 : 0);
      } else {
        out.values.push_back(signed_integer("an integer"));
      }
      if (!fits_type(out.values.back(), out.element_type)) {
        fail("program_syntax", value, "the number " + describe(value) + " does not fit in " + out.element_type);
      }
    } while (accept(','));
  }
  expect('>', "at the end of an array");
  return {std::move(out)};
}

ir::Attribute Parser::list_attribute() {
  ir::ArrayAttr out;
  list('[', ']', "around a list of attributes", [&] { out.values.push_back(attribute()); });
  return {std::move(out)};
}

ir::Attribute Parser::type_attribute() {
  if (token_.is(TokenKind::kBang) && aliases_.contains(token_.text))
    return expand_alias(take(), [&] { return type_attribute(); });
  if (at_vhlo_type()) {
    const std::string name(vhlo_scalar(token_.text));
    if (name == "func") {
      advance();
      expect('<', "behind the name of a type");
      ir::TypeAttr out = vhlo_function_type();
      expect('>', "at the end of a type");
      return {std::move(out)};
    }
    if (name == "tensor" || name == "token" || name == "tuple") return {ir::TypeAttr{{}, {type()}, false}};
    advance();
    return {ir::EnumAttr{"", name}};
  }
  if (at('(')) {
    ir::TypeAttr out;
    out.is_function = true;
    out.inputs = type_list_in_parentheses();
    expect(TokenKind::kArrow, "'->' in a function type");
    out.results = result_types();
    return {std::move(out)};
  }
  if (at("tensor") || at("tuple") || token_.text == "!stablehlo.token" || token_.text == "!mhlo.token")
    return {ir::TypeAttr{{}, {type()}, false}};
  // No stage reads a scalar or foreign type: its word is kept.
  const char* begin = token_.text.data();
  std::string_view text = token_.text;
  advance();
  if (at('<')) {
    const std::string_view body = skip_balanced();
    text = {begin, static_cast<size_t>(body.data() + body.size() - begin)};
  }
  return {ir::EnumAttr{"", std::string(text)}};
}

ir::AttributeList Parser::attribute_dict() {
  ir::AttributeList out;
  std::unordered_set<std::string> seen;
  list('{', '}', "around attributes", [&] {
    if (at('}') && !out.empty()) return;  // a comma behind the last, as people write them over several lines
    if (!token_.is(TokenKind::kWord) && !token_.is(TokenKind::kString)) expected("the name of an attribute");
    const Token key = take();
    std::string name = key.is(TokenKind::kString) ? unescape(key) : std::string(key.text);
    if (!seen.insert(name).second) fail("program_syntax", key, "attribute '" + name + "' is given twice");
    out.emplace_back(std::move(name), accept('=') ? attribute() : ir::Attribute{ir::Unit{}});
  });
  return out;
}

ir::AttributeList Parser::optional_attribute_dict() {
  if (!at('{')) return {};
  return attribute_dict();
}

}  // namespace meshd::program
