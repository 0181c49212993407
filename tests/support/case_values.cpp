#include "tests/support/case_values.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "service/kernels/elementwise/scalar_op.h"

namespace meshd::test {
namespace {

using tensor::DType;

std::vector<std::byte> from_base64(const std::string& text) {
  const std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::vector<std::byte> out;
  uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    const size_t digit = alphabet.find(c);
    if (digit == std::string_view::npos) continue;
    bits = bits << 6U | static_cast<uint32_t>(digit);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    out.push_back(static_cast<std::byte>(bits >> static_cast<unsigned>(count) & 0xFFU));
  }
  return out;
}

/// Elements in another type, by the conversion that programs use.
std::vector<std::byte> converted(const std::byte* elements, int64_t count, DType from, DType to) {
  std::vector<std::byte> out(static_cast<size_t>(count * tensor::size_bytes(to)));
  const auto kernel = kernels::find_scalar_kernel(kernels::ScalarOp::kConvert, from, to);
  kernel(&elements, out.data(), count);
  return out;
}

double number_of(const nlohmann::json& json) {
  if (json.is_boolean()) return json.get<bool>() ? 1 : 0;
  if (!json.is_string()) return json.get<double>();
  const auto text = json.get<std::string>();
  if (text == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (text == "Infinity") return std::numeric_limits<double>::infinity();
  if (text == "-Infinity") return -std::numeric_limits<double>::infinity();
  return std::stod(text);
}

/// Appends the numbers of nested lists; `depth` dimensions are left.
void flatten(const nlohmann::json& json, int64_t depth, bool complex, std::vector<double>& out) {
  if (depth > 0) {
    for (const auto& part : json) flatten(part, depth - 1, complex, out);
  } else if (complex) {
    out.push_back(number_of(json.at(0)));
    out.push_back(number_of(json.at(1)));
  } else {
    out.push_back(number_of(json));
  }
}

/// Parts of complex numbers as elements of their own.
DType part(DType dtype) {
  if (dtype == DType::kComplex64) return DType::kFloat32;
  return dtype == DType::kComplex128 ? DType::kFloat64 : dtype;
}

/// Place of a floating-point number in the order of its type's numbers: neighbours differ by one, -0 and +0 not at all.
int64_t place(const std::byte* element, DType dtype) {
  const auto size = static_cast<size_t>(tensor::size_bytes(dtype));
  uint64_t bits = 0;
  std::memcpy(&bits, element, size);
  const uint64_t sign = uint64_t{1} << (8 * size - 1);
  return (bits & sign) != 0 ? -static_cast<int64_t>(bits & ~sign) : static_cast<int64_t>(bits);
}

}  // namespace

Value value_of(const nlohmann::json& json) {
  const auto dtype = tensor::dtype_from_name(json.at("dtype").get<std::string>());
  if (!dtype) throw std::runtime_error("unknown dtype " + json.at("dtype").get<std::string>());
  Value out{ir::Type::of({*dtype, json.at("shape").get<tensor::Dims>()}), {}, {}};
  if (json.contains("base64")) {
    out.bytes = from_base64(json.at("base64").get<std::string>());
  } else {
    std::vector<double> numbers;
    flatten(json.at("data"), out.type.rank(), tensor::is_complex(*dtype), numbers);
    out.bytes = converted(reinterpret_cast<const std::byte*>(numbers.data()), static_cast<int64_t>(numbers.size()),
                          DType::kFloat64, part(*dtype));
  }
  if (static_cast<int64_t>(out.bytes.size()) != tensor::byte_count(out.type.tensor))
    throw std::runtime_error("value of a wrong size");
  return out;
}

std::string difference(const Value& got, const Value& expected, const nlohmann::json& compare) {
  if (got.type != expected.type) return "is " + ir::to_string(got.type) + ", expected " + ir::to_string(expected.type);
  if (compare.contains("any")) return {};
  const DType dtype = part(expected.type.dtype());
  const int64_t size = tensor::size_bytes(dtype);
  const auto count = static_cast<int64_t>(expected.bytes.size()) / size;
  const auto as_double = [&](const Value& value) {
    return converted(value.bytes.data(), count, dtype, DType::kFloat64);
  };
  const std::vector<std::byte> got_bytes = as_double(got);
  const std::vector<std::byte> expected_bytes = as_double(expected);
  for (int64_t i = 0; i < count; ++i) {
    double a = 0;
    double b = 0;
    std::memcpy(&a, got_bytes.data() + i * 8, 8);
    std::memcpy(&b, expected_bytes.data() + i * 8, 8);
    bool right =
        std::memcmp(got.bytes.data() + i * size, expected.bytes.data() + i * size, static_cast<size_t>(size)) == 0;
    right = right || (std::isnan(a) && std::isnan(b));
    const bool finite = std::isfinite(a) && std::isfinite(b);
    if (!right && finite && compare.contains("ulp") && tensor::is_float(dtype)) {
      const int64_t apart =
          std::abs(place(got.bytes.data() + i * size, dtype) - place(expected.bytes.data() + i * size, dtype));
      right = apart <= compare.at("ulp").get<int64_t>();
    }
    if (!right && finite && (compare.contains("rtol") || compare.contains("atol"))) {
      right = std::abs(a - b) <= compare.value("atol", 0.0) + compare.value("rtol", 0.0) * std::abs(b);
    }
    if (right) continue;
    return "element " + std::to_string(i) + " of " + ir::to_string(expected.type) + " is " + std::to_string(a) +
           ", expected " + std::to_string(b) + " by " + compare.dump();
  }
  return {};
}

}  // namespace meshd::test
