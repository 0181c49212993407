#include "service/ops/pointwise/special_emit.h"

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "service/kernels/elementwise/scalar_op.h"
#include "service/kernels/tile/tile_program.h"
#include "service/ops/checks.h"

namespace meshd::ops {
namespace {

using kernels::ScalarOp;
using tensor::DType;

/// Instructions over registers of one floating-point type, f32 or f64, in the order in which they are written. One
/// thread.
class Emitter {
 public:
  Emitter(kernels::TileProgram& program, DType dtype) : program_(program), dtype_(dtype) {}

  uint16_t op(ScalarOp operation, uint16_t a) { return program_.emit(operation, {a}, dtype_); }
  uint16_t op(ScalarOp operation, uint16_t a, uint16_t b) { return program_.emit(operation, {a, b}, dtype_); }
  uint16_t add(uint16_t a, uint16_t b) { return op(ScalarOp::kAdd, a, b); }
  uint16_t multiply(uint16_t a, uint16_t b) { return op(ScalarOp::kMultiply, a, b); }
  uint16_t divide(uint16_t a, uint16_t b) { return op(ScalarOp::kDivide, a, b); }
  uint16_t power(uint16_t a, uint16_t b) { return op(ScalarOp::kPower, a, b); }
  uint16_t compare(ScalarOp operation, uint16_t a, uint16_t b) {
    return program_.emit(operation, {a, b}, DType::kBool);
  }
  uint16_t both(uint16_t a, uint16_t b) { return program_.emit(ScalarOp::kAnd, {a, b}, DType::kBool); }
  uint16_t either(uint16_t a, uint16_t b) { return program_.emit(ScalarOp::kOr, {a, b}, DType::kBool); }
  uint16_t select(uint16_t when, uint16_t a, uint16_t b) {
    return program_.emit(ScalarOp::kSelect, {when, a, b}, dtype_);
  }
  uint16_t convert(uint16_t a) { return program_.emit(ScalarOp::kConvert, {a}, dtype_); }

  uint16_t number(double value) {
    std::array<std::byte, 16> element{};
    if (dtype_ == DType::kFloat64) {
      std::memcpy(element.data(), &value, sizeof(value));
    } else {
      const auto narrow = static_cast<float>(value);
      std::memcpy(element.data(), &narrow, sizeof(narrow));
    }
    return program_.constant(dtype_, element.data());
  }

  /// The number of a register that holds a constant.
  [[nodiscard]] std::optional<double> constant_number(uint16_t reg) const {
    for (const kernels::TileConstant& constant : program_.constants) {
      if (constant.reg != reg) continue;
      if (dtype_ == DType::kFloat64) return read<double>(constant);
      return read<float>(constant);
    }
    return std::nullopt;
  }

  [[nodiscard]] double epsilon() const {
    return dtype_ == DType::kFloat64 ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon();
  }

 private:
  template <class T>
  static T read(const kernels::TileConstant& constant) {
    T value = 0;
    std::memcpy(&value, constant.element.data(), sizeof(value));
    return value;
  }

  kernels::TileProgram& program_;
  DType dtype_;
};

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// (2k)! / B(2k) for k = 12, 11, ..., 2: denominators of the Euler-Maclaurin terms, innermost first.
constexpr double kDenominators[] = {-7.1661652561756670113e18,
                                    1.8152105401943546773e17,
                                    -4.5979787224074726105e15,
                                    1.1646782814350067249e14,
                                    -2.950130727918164224e12,
                                    7.47242496e10,
                                    -1.8924375803183791606e9,
                                    47900160.0,
                                    -1209600.0,
                                    30240.0,
                                    -720.0};
constexpr double kFirstDenominator = 12.0;
/// Terms summed one by one before the rest is estimated.
constexpr int kDirectTerms = 9;

uint16_t zeta(Emitter& e, uint16_t x, uint16_t q) {
  const uint16_t one = e.number(1);
  const uint16_t minus_x = e.op(ScalarOp::kNegate, x);
  uint16_t a = q;
  uint16_t sum = e.power(q, minus_x);
  for (int i = 0; i < kDirectTerms; ++i) {
    a = e.add(a, one);
    sum = e.add(sum, e.power(a, minus_x));
  }
  a = e.add(a, one);
  const uint16_t last = e.power(a, minus_x);
  // The rest by Euler-Maclaurin: an integral, half a term, and corrections by Horner's rule, whose parts stay in range.
  const uint16_t integral = e.divide(e.multiply(last, a), e.op(ScalarOp::kSubtract, x, one));
  const uint16_t inverse_square = e.divide(one, e.multiply(a, a));
  uint16_t corrections = e.number(0);
  double step = 2.0 * std::size(kDenominators);
  for (const double denominator : kDenominators) {
    const uint16_t rising = e.multiply(e.add(x, e.number(step)), e.add(x, e.number(step - 1)));
    corrections = e.multiply(e.multiply(rising, inverse_square), e.add(corrections, e.number(1 / denominator)));
    step -= 2;
  }
  const uint16_t slope = e.multiply(e.divide(x, a), e.add(e.number(1 / kFirstDenominator), corrections));
  const uint16_t estimate = e.add(e.add(sum, integral), e.multiply(last, e.add(e.number(0.5), slope)));
  const uint16_t negligible = e.compare(ScalarOp::kCompareLt, e.op(ScalarOp::kAbs, last),
                                        e.multiply(e.op(ScalarOp::kAbs, sum), e.number(e.epsilon())));
  uint16_t result = e.select(negligible, sum, estimate);
  // Outside of the series: no value below x = 1; for q <= 0 only integral x; poles at q = 0, -1, ..., one-signed where
  // x is even.
  const uint16_t nan = e.number(kNan);
  const uint16_t infinity = e.number(kInfinity);
  const uint16_t whole_x = e.op(ScalarOp::kFloor, x);
  const uint16_t not_positive = e.compare(ScalarOp::kCompareLe, q, e.number(0));
  const uint16_t fraction_x = e.compare(ScalarOp::kCompareNe, x, whole_x);
  const uint16_t undefined = e.either(e.compare(ScalarOp::kCompareLt, x, one), e.both(not_positive, fraction_x));
  result = e.select(undefined, nan, result);
  const uint16_t whole_q = e.compare(ScalarOp::kCompareEq, q, e.op(ScalarOp::kFloor, q));
  const uint16_t even_x = e.compare(ScalarOp::kCompareEq, e.op(ScalarOp::kRemainder, x, e.number(2)), e.number(0));
  result = e.select(e.both(not_positive, whole_q), e.select(even_x, infinity, nan), result);
  return e.select(e.compare(ScalarOp::kCompareEq, x, one), infinity, result);
}

uint16_t polygamma(Emitter& e, uint16_t n, uint16_t x) {
  const uint16_t zero = e.number(0);
  const uint16_t one = e.number(1);
  const uint16_t next = e.add(n, one);
  // (-1)^(n+1) n! zeta(n + 1, x)
  const uint16_t odd = e.compare(ScalarOp::kCompareEq, e.op(ScalarOp::kRemainder, n, e.number(2)), one);
  const uint16_t sign = e.select(odd, one, e.number(-1));
  const uint16_t factorial = e.op(ScalarOp::kExp, e.op(ScalarOp::kLgamma, next));
  uint16_t result = e.multiply(e.multiply(sign, factorial), zeta(e, next, x));
  result = e.select(e.compare(ScalarOp::kCompareEq, n, zero), e.op(ScalarOp::kDigamma, x), result);
  const uint16_t natural =
      e.both(e.compare(ScalarOp::kCompareEq, n, e.op(ScalarOp::kFloor, n)), e.compare(ScalarOp::kCompareGe, n, zero));
  return e.select(natural, result, e.number(kNan));
}

uint16_t power(Emitter& e, uint16_t base, uint16_t exponent) {
  const std::optional<double> number = e.constant_number(exponent);
  if (number == 2) return e.multiply(base, base);
  if (number == 3) return e.multiply(e.multiply(base, base), base);
  if (number != 0.5 && number != 1.5) return e.power(base, exponent);
  const uint16_t root = e.op(kernels::scalar_op("sqrt"), base);
  // The power of -0 is 0, that of -infinity infinity, unlike the root's.
  const uint16_t finite = number == 0.5 ? e.add(root, e.number(0)) : e.multiply(base, root);
  return e.select(e.compare(ScalarOp::kCompareEq, base, e.number(-kInfinity)), e.number(kInfinity), finite);
}

/// Narrow types are computed in f32 and rounded once.
template <typename Function>
uint16_t computed_wider(const OpView& view, kernels::TileProgram& program, std::span<const uint16_t> operands,
                        Function&& function) {
  const DType dtype = view.operands[0].dtype();
  if (dtype == DType::kFloat32 || dtype == DType::kFloat64) {
    Emitter emitter(program, dtype);
    return function(emitter, operands[0], operands[1]);
  }
  Emitter emitter(program, DType::kFloat32);
  const uint16_t wide = function(emitter, emitter.convert(operands[0]), emitter.convert(operands[1]));
  return program.emit(ScalarOp::kConvert, {wide}, dtype);
}

}  // namespace

uint16_t emit_zeta(const OpView& view, kernels::TileProgram& program, std::span<const uint16_t> operands) {
  return computed_wider(view, program, operands, zeta);
}

uint16_t emit_polygamma(const OpView& view, kernels::TileProgram& program, std::span<const uint16_t> operands) {
  return computed_wider(view, program, operands, polygamma);
}

uint16_t emit_power(const OpView& view, kernels::TileProgram& program, std::span<const uint16_t> operands) {
  const DType dtype = view.operands[0].dtype();
  if (dtype != DType::kFloat32 && dtype != DType::kFloat64)
    return program.emit(ScalarOp::kPower, {operands[0], operands[1]}, dtype);
  Emitter emitter(program, dtype);
  return power(emitter, operands[0], operands[1]);
}

}  // namespace meshd::ops
