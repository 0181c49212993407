// Constants: dense<...> as a splat, nested lists or hex, and dense_resource<...>, whose bytes are at the end of the
// file. The type follows the elements, so their position is saved, the type is parsed, and then the elements.
#include <fmt/core.h>

#include <array>
#include <charconv>
#include <cstring>

#include "service/core/checked_math.h"
#include "service/program/literals/float_literal.h"
#include "service/program/literals/hex.h"
#include "service/program/parse/parser.h"

namespace meshd::program {
namespace {

using tensor::DType;

void append(std::vector<std::byte>& out, uint64_t bits, int64_t size) {
  std::array<std::byte, sizeof(bits)> raw;
  std::memcpy(raw.data(), &bits, sizeof(bits));
  out.insert(out.end(), raw.begin(), raw.begin() + size);
}

/// Reads elements from tokens, once the type is known.
class ElementReader {
 public:
  ElementReader(Lexer lexer, tensor::TensorType type) : lexer_(lexer), token_(lexer_.next()), type_(std::move(type)) {}

  /// Bytes of all elements in `out`, or of one; true for one.
  bool read(std::vector<std::byte>& out) {
    if (!token_.is('[')) {
      element(out, type_.dtype);
      end();
      return true;
    }
    // Each element takes a character of text at least, whatever the type is.
    const int64_t count = tensor::element_count(type_);
    if (count <= lexer_.end() - lexer_.cursor()) out.reserve(static_cast<size_t>(tensor::byte_count(type_)));
    nested(out, 0);
    end();
    return false;
  }

 private:
  void next() { token_ = lexer_.next(); }

  [[noreturn]] void fail(const std::string& message) const { ir::fail("program_syntax", token_.location(), message); }

  void end() const {
    if (!token_.is('>')) fail("expected '>' at the end of a constant, got " + describe(token_));
  }

  void nested(std::vector<std::byte>& out, size_t depth) {
    if (depth == type_.dims.size()) {
      element(out, type_.dtype);
      return;
    }
    const Token start = token_;
    if (!token_.is('['))
      fail(fmt::format("expected a list of {} elements, got {}", type_.dims[depth], describe(token_)));
    next();
    int64_t count = 0;
    while (!token_.is(']')) {
      if (count > 0) {
        if (!token_.is(',')) fail("expected ',' or ']' in a constant, got " + describe(token_));
        next();
      }
      if (depth + 1 == type_.dims.size()) {
        const int64_t some = plain_numbers(out);
        count += some;
        if (some > 0) continue;
      }
      nested(out, depth + 1);
      ++count;
    }
    next();
    if (count != type_.dims[depth]) {
      ir::fail(
          "program_syntax", start.location(),
          fmt::format("a list of a constant has {} elements, but its type is tensor<{}>", count, to_string(type_)));
    }
  }

  /// Fast path without tokens: parses the plain numbers on this line; the current token is then what follows them.
  /// None: the current token stays, and the slow path reports the error.
  int64_t plain_numbers(std::vector<std::byte>& out) {
    const bool is_float = type_.dtype == DType::kFloat32 || type_.dtype == DType::kFloat64;
    const bool is_integer = type_.dtype == DType::kInt32 || type_.dtype == DType::kInt64;
    if (!is_float && !is_integer) return 0;
    const char* at = token_.text.data();
    const char* const end = lexer_.end();
    const char* read_to = nullptr;
    int64_t count = 0;
    while (at < end) {
      const char* digits = at + (*at == '-' ? 1 : 0);
      if (digits == end || *digits < '0' || *digits > '9') break;
      const char* stop = is_float ? plain_float(digits, end, *at == '-', out) : plain_integer(at, end, out);
      if (stop == nullptr) break;
      ++count;
      read_to = stop;
      if (end - stop < 2 || stop[0] != ',' || stop[1] != ' ') break;
      at = stop + 2;
    }
    if (count == 0) return 0;
    lexer_.skip_to(read_to);
    next();
    return count;
  }

  const char* plain_float(const char* from, const char* end, bool negative, std::vector<std::byte>& out) const {
    double value = 0;
    const auto [stop, error] = std::from_chars(from, end, value);
    const auto length = static_cast<size_t>(stop - from);
    const bool is_plain = error == std::errc{} && stop < end && (*stop == ',' || *stop == ']') &&
                          std::memchr(from, '.', length) != nullptr;
    if (!is_plain) return nullptr;
    if (negative) value = -value;
    type_.dtype == DType::kFloat64 ? put(out, value) : put(out, static_cast<float>(value));
    return stop;
  }

  const char* plain_integer(const char* from, const char* end, std::vector<std::byte>& out) const {
    int64_t value = 0;
    const auto [stop, error] = std::from_chars(from, end, value);
    const bool fits = type_.dtype == DType::kInt64 || (value >= INT32_MIN && value <= INT32_MAX);
    const bool is_plain = error == std::errc{} && fits && stop < end && (*stop == ',' || *stop == ']');
    if (!is_plain) return nullptr;
    type_.dtype == DType::kInt64 ? put(out, value) : put(out, static_cast<int32_t>(value));
    return stop;
  }

  template <class T>
  static void put(std::vector<std::byte>& out, T value) {
    const size_t size = out.size();
    out.resize(size + sizeof(T));
    std::memcpy(out.data() + size, &value, sizeof(T));
  }

  void element(std::vector<std::byte>& out, DType dtype) {
    if (!tensor::is_complex(dtype)) {
      scalar(out, dtype);
      return;
    }
    if (!token_.is('(')) fail("expected '(' at the start of a complex number, got " + describe(token_));
    next();
    scalar(out, part_of(dtype));
    if (!token_.is(',')) fail("expected ',' between the parts of a complex number, got " + describe(token_));
    next();
    scalar(out, part_of(dtype));
    if (!token_.is(')')) fail("expected ')' at the end of a complex number, got " + describe(token_));
    next();
  }

  void scalar(std::vector<std::byte>& out, DType dtype) {
    const bool negative = token_.is('-');
    if (negative) next();
    append(out, tensor::is_float(dtype) ? float_element(dtype, negative) : integer_element(dtype, negative),
           tensor::size_bytes(dtype));
    next();
  }

  [[nodiscard]] uint64_t magnitude() const {
    const bool hex = token_.text.size() > 2 && token_.text[1] == 'x';
    uint64_t value = 0;
    const char* stop = token_.text.data() + token_.text.size();
    if (std::from_chars(token_.text.data() + (hex ? 2 : 0), stop, value, hex ? 16 : 10).ec != std::errc{}) {
      fail("the number " + describe(token_) + " does not fit in 64 bits");
    }
    return value;
  }

  [[nodiscard]] uint64_t float_element(DType dtype, bool negative) const {
    const int bits = tensor::row(dtype).bits;
    if (token_.is(TokenKind::kInteger)) {
      const bool hex = token_.text.size() > 2 && token_.text[1] == 'x';
      if (!hex || negative)
        fail("expected a number with a point, such as 1.0, or its bits in hex, got " + describe(token_));
      const uint64_t value = magnitude();
      if (bits < 64 && value >> bits != 0)
        fail(fmt::format("the bits {} do not fit in {} bits", describe(token_), bits));
      return value;
    }
    if (!token_.is(TokenKind::kFloat)) fail("expected a number with a point, such as 1.0, got " + describe(token_));
    double value = 0;
    const auto error = std::from_chars(token_.text.data(), token_.text.data() + token_.text.size(), value).ec;
    if (error == std::errc::result_out_of_range) fail("the number " + describe(token_) + " is out of range");
    return float_bits(dtype, negative ? -value : value);
  }

  [[nodiscard]] uint64_t integer_element(DType dtype, bool negative) const {
    if (token_.is("true") || token_.is("false")) {
      if (dtype != DType::kBool || negative) fail("'" + std::string(token_.text) + "' is no integer");
      return token_.text == "true" ? 1 : 0;
    }
    if (!token_.is(TokenKind::kInteger)) fail("expected an integer, got " + describe(token_));
    const uint64_t value = magnitude();
    const int bits = tensor::row(dtype).bits;
    // A signless type takes what fits either way: 255 and -1 are the same i8.
    const uint64_t largest = bits == 64 ? UINT64_MAX : (uint64_t{1} << bits) - 1;
    const uint64_t least = tensor::is_unsigned_integer(dtype) ? 0 : uint64_t{1} << (bits - 1);
    if (value > (negative ? least : largest)) {
      fail("the number " + std::string(negative ? "-" : "") + std::string(token_.text) + " does not fit in " +
           std::string(tensor::row(dtype).stablehlo));
    }
    if (dtype == DType::kBool) return value & 1;
    uint64_t stored = negative ? ~value + 1 : value;
    if (tensor::is_signed_integer(dtype) && bits < 64 && (stored >> (bits - 1) & 1) != 0) stored |= UINT64_MAX << bits;
    return stored;
  }

  Lexer lexer_;
  Token token_;
  tensor::TensorType type_;
};

}  // namespace

ir::DenseAttr Parser::dense_type_of(const Token& start) {
  ir::DenseAttr out;
  expect(':', "before the type of a constant");
  expect_word("tensor", "as the type of a constant");
  ElementType element;
  out.type = tensor_body(&element).tensor;
  out.is_index = element.is_index;
  if (element.quantization) {
    fail("invalid_program", start,
         "the elements of a constant are written as integers of the storage type: dense<...> : tensor<...xi8> behind "
         "'value', and the quantized type as that of the result");
  }
  int64_t count = 1;
  for (const int64_t size : out.type.dims) {
    if (size == tensor::kDynamicDim) fail("invalid_program", start, "the type of a constant has a dynamic dimension");
    if (__builtin_mul_overflow(count, size, &count))
      fail("invalid_program", start, "a constant does not fit in memory");
  }
  if (__builtin_mul_overflow(count, tensor::size_bytes(out.type.dtype), &count)) {
    fail("invalid_program", start, "a constant does not fit in memory");
  }
  return out;
}

ir::DenseAttr Parser::dense_attribute() {
  const Token start = take();
  const Lexer elements = lexer_;
  const Token content = at('<') ? Lexer(lexer_).next() : token_;
  if (at('<') && lexer_.skip_numbers()) {
    advance();
    advance();
  } else {
    skip_balanced();
  }
  ir::DenseAttr out = dense_type_of(start);
  const int64_t count = tensor::element_count(out.type);
  std::vector<std::byte> bytes;
  if (content.is(TokenKind::kString)) {
    const std::string_view digits = content.text.substr(1, content.text.size() - 2);
    if (!decode_hex(digits, bytes)) fail("program_syntax", content, "expected \"0x\" and an even number of hex digits");
    out.splat = adopt_stored_bytes(out.type, count, bytes);
    const int64_t expected_bytes = tensor::size_bytes(out.type.dtype) * (out.splat ? 1 : count);
    if (static_cast<int64_t>(bytes.size()) != expected_bytes) {
      fail("program_syntax", content,
           fmt::format("the constant has {} bytes, but tensor<{}> has {}", bytes.size(), to_string(out.type),
                       tensor::byte_count(out.type)));
    }
  } else if (content.is('>')) {
    if (count != 0)
      fail("program_syntax", content,
           fmt::format("the constant is empty, but its type is tensor<{}>", to_string(out.type)));
  } else {
    out.splat = ElementReader(elements, out.type).read(bytes);
  }
  // One element is a splat however it was written, and of none nothing is kept.
  if (count == 0) bytes.clear();
  out.splat = count == 1 || (out.splat && count != 0);
  out.bytes = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  return out;
}

ir::DenseAttr Parser::dense_resource() {
  const Token start = take();
  expect('<', "behind 'dense_resource'");
  Token key = token_;
  std::string name;
  if (key.is(TokenKind::kString)) {
    name = unescape(take());
  } else {
    name = std::string(expect(TokenKind::kWord, "the name of a resource").text);
  }
  expect('>', "behind the name of a resource");
  if (name == "__elided__") {
    fail("program_syntax", key,
         "the values of this constant were left out when the text was printed; print it whole, as "
         "jax.jit(f).lower(*arguments).as_text() does (MLIR: large_elements_limit=None)");
  }
  ir::DenseAttr out = dense_type_of(start);
  out.splat = tensor::element_count(out.type) == 1;
  auto bytes = std::make_shared<std::vector<std::byte>>();
  out.bytes = bytes;
  resources_.push_back({key, out.type, std::move(bytes), std::move(name)});
  return out;
}

}  // namespace meshd::program
