// Types: tensor<2x3xf32>, tuples, tokens. Dimensions are read character by character, because "8x16xf32" is no token.
#include <fmt/core.h>

#include "service/core/near_names.h"
#include "service/program/parse/parser.h"

namespace meshd::program {
namespace {

/// Types of MLIR that no value here has, for a better message than "expected a type".
constexpr std::string_view kForeignTypes[] = {"memref", "vector", "none", "index"};

bool is_scalar_word(std::string_view word) {
  if (tensor::dtype_from_stablehlo(word)) return true;
  if (word.size() < 2) return false;
  const size_t digits =
      word.substr(0, 2) == "si" || word.substr(0, 2) == "ui" || word.substr(0, 2) == "bf" || word.substr(0, 2) == "tf"
          ? 2
          : 1;
  return (word[0] == 'i' || word[0] == 'f' || digits == 2) && digits < word.size() && word[digits] >= '0' &&
         word[digits] <= '9';
}

/// si32 is what i32 means in StableHLO; an index is an i64, as XLA takes it.
std::optional<tensor::DType> dtype_of(std::string_view word) {
  if (word == "index") return tensor::DType::kInt64;
  return tensor::dtype_from_stablehlo(word.starts_with("si") ? word.substr(1) : word);
}

/// A dimension with parameters of its own for each slice has as many slices as parameters.
void check_quantized_dimension(const ir::Type& type, const ir::Location& where) {
  const ir::Quantization& of = *type.quantization;
  if (!of.is_per_axis()) return;
  if (of.dimension >= type.rank()) {
    ir::fail(
        "invalid_program", where,
        fmt::format("quantized tensor type C12: the quantization dimension is {}, but the tensor has {} dimensions",
                    of.dimension, type.rank()));
  }
  const int64_t size = type.dims()[static_cast<size_t>(of.dimension)];
  if (size == tensor::kDynamicDim || size == static_cast<int64_t>(of.scales.size())) return;
  ir::fail("invalid_program", where,
           fmt::format("quantized tensor type C13: there are {} scales, but dimension {} has {} elements",
                       of.scales.size(), of.dimension, size));
}

/// !t, and not !stablehlo.token.
bool is_type_alias(const Token& token) {
  return token.is(TokenKind::kBang) && token.text.find('.') == std::string_view::npos;
}

}  // namespace

bool Parser::at_type() const {
  if (token_.is(TokenKind::kBang) || token_.is('(')) return true;
  if (!token_.is(TokenKind::kWord)) return false;
  const std::string_view word = token_.text;
  if (word == "tensor" || word == "tuple" || word == "complex") return true;
  for (const std::string_view foreign : kForeignTypes) {
    if (word == foreign) return true;
  }
  return is_scalar_word(word);
}

ir::Type Parser::type() {
  if (++attribute_depth_ > kMaxAttributeDepth) fail("program_syntax", token_, "types nest too deeply");
  const Token start = token_;
  ir::Type out;
  if (accept("tensor")) {
    out = tensor_body(nullptr);
  } else if (accept("tuple")) {
    out.kind = ir::TypeKind::kTuple;
    list('<', '>', "in a tuple type", [&] { out.elements.push_back(type()); });
  } else if (is_type_alias(token_)) {
    out = expand_alias(take(), [&] { return type(); });
  } else if (at_vhlo_type()) {
    out = vhlo_type();
  } else if (token_.text == kFuture || token_.text == kBundle) {
    out = future_type();
  } else if (token_.is(TokenKind::kBang)) {
    if (token_.text != "!stablehlo.token" && token_.text != "!mhlo.token")
      fail("unsupported_type", token_, "type " + describe(token_) + " is not supported");
    advance();
    out = ir::Type::token();
  } else if (at_type() && !at('(')) {
    fail("unsupported_type", start, "a value must be a tensor, a token or a tuple, got " + describe(start));
  } else {
    expected("a type, such as tensor<2x3xf32>");
  }
  --attribute_depth_;
  return out;
}

Parser::ElementType Parser::element_type() {
  const Token start = token_;
  if (accept("complex")) {
    expect('<', "behind 'complex'");
    const Token part = expect(TokenKind::kWord, "the type of a complex number's parts");
    expect('>', "behind the type of a complex number's parts");
    const auto dtype = tensor::dtype_from_stablehlo("complex<" + std::string(part.text) + ">");
    if (!dtype) fail("unsupported_dtype", part, "complex numbers have parts of f32 or f64, got " + describe(part));
    return {.dtype = *dtype};
  }
  if (is_type_alias(token_)) return expand_alias(take(), [&] { return element_type(); });
  if (token_.text == "!quant.uniform") {
    ir::QuantizationRef quantization = quantized_type();
    return {.dtype = quantization->storage, .quantization = std::move(quantization)};
  }
  if (at_vhlo_type() && vhlo_scalar(token_.text) == "complex") {
    advance();
    expect('<', "behind the name of a complex type");
    const ElementType part = element_type();
    expect('>', "behind the type of a complex number's parts");
    if (part.dtype != tensor::DType::kFloat32 && part.dtype != tensor::DType::kFloat64)
      fail("unsupported_dtype", start, "complex numbers have parts of f32 or f64");
    return {.dtype = tensor::complex_of(part.dtype)};
  }
  if (at_vhlo_type()) {
    const auto dtype = dtype_of(vhlo_scalar(token_.text));
    if (!dtype) fail("unsupported_dtype", start, "element type " + describe(start) + " is not supported");
    return {.dtype = *dtype, .is_index = vhlo_scalar(take().text) == "index"};
  }
  if (token_.is(TokenKind::kBang))
    fail("unsupported_dtype", start, "element type " + describe(start) + " is not supported");
  const Token word = expect(TokenKind::kWord, "an element type");
  const auto dtype = dtype_of(word.text);
  if (dtype) return {.dtype = *dtype, .is_index = word.text == "index"};
  const auto meant = tensor::dtype_meant(word.text);
  fail("unsupported_dtype", word,
       fmt::format("element type {} is not supported{}", describe(word),
                   core::did_you_mean(meant ? tensor::row(*meant).stablehlo : std::string_view())));
}

tensor::Dims Parser::encoding(const tensor::Dims& dims, const Token& start) {
  if (token_.is(TokenKind::kHash) && token_.text.find('.') == std::string_view::npos)
    return expand_alias(take(), [&] { return encoding(dims, start); });
  const bool is_bounds = token_.text == "#stablehlo.bounds";
  if (is_bounds || token_.text == "#mhlo.type_extensions") {
    advance();
    return is_bounds ? bounds(dims, start) : older_bounds(dims, start);
  }
  fail("unsupported_type", start,
       token_.text == "#sparse_tensor.encoding"
           ? "a sparse tensor (#sparse_tensor.encoding) is not supported: send it dense"
           : fmt::format("a tensor type with the encoding {} is not supported", describe(token_)));
}

tensor::Dims Parser::older_bounds(const tensor::Dims& dims, const Token& start) {
  expect('<', "behind '#mhlo.type_extensions'");
  if (!accept("bounds")) expected("'bounds = [...]'");
  expect('=', "behind 'bounds'");
  tensor::Dims out = bound_list('[', ']');
  expect('>', "at the end of '#mhlo.type_extensions'");
  return checked_bounds(std::move(out), dims, start);
}

tensor::Dims Parser::bounds(const tensor::Dims& dims, const Token& start) {
  return checked_bounds(bound_list('<', '>'), dims, start);
}

tensor::Dims Parser::bound_list(char open, char close) {
  tensor::Dims out;
  list(open, close, "around the bounds of a tensor type", [&] {
    if (accept('?')) {
      out.push_back(tensor::kDynamicDim);
      return;
    }
    const int64_t bound = signed_integer("a bound, or '?'");
    out.push_back(bound < 0 ? tensor::kDynamicDim : bound);
  });
  return out;
}

tensor::Dims Parser::checked_bounds(tensor::Dims bounds, const tensor::Dims& dims, const Token& start) {
  if (bounds.size() != dims.size()) {
    fail("invalid_program", start,
         fmt::format("a tensor of {} dimensions has as many bounds, got {}", dims.size(), bounds.size()));
  }
  bool has_bound = false;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (bounds[d] == tensor::kDynamicDim) continue;
    has_bound = true;
    if (dims[d] == tensor::kDynamicDim) continue;
    fail("invalid_program", start,
         fmt::format("dimension {} has {} elements, so its bound must be '?', got {}", d, dims[d], bounds[d]));
  }
  return has_bound ? std::move(bounds) : tensor::Dims();
}

ir::Type Parser::tensor_body(ElementType* element) {
  if (!at('<')) expected("'<' behind 'tensor'");
  const Token start = token_;
  tensor::TensorType out;
  const char* p = lexer_.cursor();
  const char* end = lexer_.end();
  const auto skip_spaces = [&] {
    while (p < end && *p == ' ') ++p;
  };
  skip_spaces();
  if (p < end && *p == '*') fail("unsupported_type", token_, "tensors without a rank are not supported");
  while (p < end && ((*p >= '0' && *p <= '9') || *p == '?')) {
    int64_t size = 0;
    if (*p == '?') {
      size = tensor::kDynamicDim;
      ++p;
    } else {
      for (; p < end && *p >= '0' && *p <= '9'; ++p) {
        if (__builtin_mul_overflow(size, int64_t{10}, &size) ||
            __builtin_add_overflow(size, int64_t{*p - '0'}, &size)) {
          fail("program_syntax", token_, "a dimension does not fit in 63 bits");
        }
      }
    }
    skip_spaces();
    if (p == end || *p != 'x') fail("program_syntax", token_, "expected 'x' behind a dimension of a tensor type");
    ++p;
    skip_spaces();
    out.dims.push_back(size);
    if (out.rank() > kMaxRank)
      fail("unsupported_type", token_, fmt::format("tensors have at most {} dimensions", kMaxRank));
  }
  lexer_.skip_to(p);
  advance();
  ElementType read = element_type();
  out.dtype = read.dtype;
  tensor::Dims bounds;
  if (accept(',')) bounds = encoding(out.dims, Token(token_));
  expect('>', "at the end of a tensor type");
  ir::Type type = ir::Type::of(std::move(out));
  type.bounds = std::move(bounds);
  type.quantization = read.quantization;
  if (type.is_quantized()) check_quantized_dimension(type, start.location());
  if (element != nullptr) *element = std::move(read);
  return type;
}

std::vector<ir::Type> Parser::type_list_in_parentheses() {
  std::vector<ir::Type> out;
  list('(', ')', "around types", [&] { out.push_back(type()); });
  return out;
}

std::vector<ir::Type> Parser::result_types() {
  if (at('(')) return type_list_in_parentheses();
  return {type()};
}

}  // namespace meshd::program
