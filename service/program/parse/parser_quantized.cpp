// Quantised element types: !quant.uniform<i8<-127:127>:f32:1, {0.5:3,0.25}>. Constraints are those of the
// specification ("Quantized element types"); storage types are those of MLIR's quant dialect.
#include <fmt/core.h>

#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

#include "service/program/literals/float_literal.h"
#include "service/program/parse/parser.h"

namespace meshd::program {
namespace {

constexpr int kMaxStorageBits = 32;

/// i8, si8: signed; u8, ui8: unsigned.
std::optional<tensor::DType> storage_dtype(std::string_view word) {
  if (word.starts_with("u") && !word.starts_with("ui"))
    return tensor::dtype_from_stablehlo("ui" + std::string(word.substr(1)));
  return tensor::dtype_from_stablehlo(word.starts_with("si") ? word.substr(1) : word);
}

/// Whether the expressed type holds the scale as a positive finite number.
bool is_in_range(double scale, tensor::DType expressed) {
  if (!(scale > 0)) return false;
  const double rounded = float_value(expressed, float_bits(expressed, scale));
  return rounded > 0 && std::isfinite(rounded);
}

}  // namespace

ir::QuantizationRef Parser::quantized_type() {
  const Token start = take();
  ir::Quantization out;
  expect('<', "behind '!quant.uniform'");
  out.storage = storage_type();
  storage_range(out);
  expect(':', "before the expressed type of a quantized type");
  const Token expressed = expect(TokenKind::kWord, "the expressed type of a quantized type, such as f32");
  const auto dtype = tensor::dtype_from_stablehlo(expressed.text);
  if (!dtype || !tensor::is_float(*dtype))
    fail("unsupported_type", expressed,
         "the expressed type of a quantized type is a float, got " + describe(expressed));
  out.expressed = *dtype;
  // i32 in f32 is what quantized products add up in, which the specification's "<" leaves out and its verifier takes.
  if (tensor::row(out.storage).bits > tensor::row(out.expressed).bits) {
    fail("invalid_program", start,
         "quantized element type C1: the storage type has more bits than the expressed type (" +
             std::string(tensor::row(out.storage).stablehlo) + " and " + std::string(expressed.text) + ")");
  }
  if (accept(':')) {
    if (at('{')) {
      fail(
          "unsupported_type", token_,
          "quantization by blocks ('!quant.uniform<i8:f32:{0:2, 1:4}, ...>') is not supported: per tensor and per axis "
          "are");
    }
    out.dimension = integer("the quantization dimension");
  }
  expect(',', "before the scale of a quantized type");
  if (out.is_per_axis()) {
    list('{', '}', "around scales", [&] { quantization_parameter(out); });
  } else {
    quantization_parameter(out);
  }
  expect('>', "at the end of a quantized type");
  return ir::QuantizationRef(std::move(out));
}

tensor::DType Parser::storage_type() {
  const Token word = expect(TokenKind::kWord, "the storage type of a quantized type, such as i8 or u8");
  const auto dtype = storage_dtype(word.text);
  if (dtype && tensor::is_integer(*dtype) && tensor::row(*dtype).bits <= kMaxStorageBits) return *dtype;
  fail("unsupported_type", word,
       "the storage type of a quantized type is an integer of 2, 4, 8, 16 or 32 bits, got " + describe(word));
}

void Parser::storage_range(ir::Quantization& out) {
  out.storage_min = tensor::least_value(out.storage);
  out.storage_max = static_cast<int64_t>(tensor::largest_value(out.storage));
  const Token start = token_;
  if (!accept('<')) return;
  const int64_t least = signed_integer("the least storage value");
  expect(':', "between the least and the largest storage value");
  const int64_t largest = signed_integer("the largest storage value");
  expect('>', "behind the largest storage value");
  if (least < out.storage_min || least >= largest || largest > out.storage_max) {
    fail("invalid_program", start,
         fmt::format("quantized element type C4: {} to {} is no range of {}, which goes from {} to {}", least, largest,
                     tensor::row(out.storage).stablehlo, out.storage_min, out.storage_max));
  }
  out.storage_min = least;
  out.storage_max = largest;
}

void Parser::quantization_parameter(ir::Quantization& out) {
  const Token start = token_;
  const bool negative = accept('-');
  const Token number = expect(TokenKind::kFloat, "a scale with a point, such as 0.5");
  double scale = 0;
  const bool is_read =
      std::from_chars(number.text.data(), number.text.data() + number.text.size(), scale).ec == std::errc{};
  if (!is_read || negative || !is_in_range(scale, out.expressed)) {
    fail("invalid_program", start,
         "quantized element type C6: a scale is positive and finite in " +
             std::string(tensor::row(out.expressed).stablehlo) + ", got " + (negative ? "-" : "") +
             std::string(number.text));
  }
  const int64_t zero_point = accept(':') ? signed_integer("a zero point") : 0;
  if (zero_point < out.storage_min || zero_point > out.storage_max) {
    fail("invalid_program", start,
         fmt::format("quantized element type C8: the zero point is {}, but stored values go from {} to {}", zero_point,
                     out.storage_min, out.storage_max));
  }
  out.scales.push_back(scale);
  out.zero_points.push_back(zero_point);
}

}  // namespace meshd::program
