#include "service/ops/pointwise/pointwise_vjp.h"

#include <numbers>

#include "service/ops/checks.h"

namespace meshd::ops {
namespace {

bool is_complex(Term term) { return tensor::is_complex(term.dtype()); }

Term complex_of(Term real, Term imaginary) { return apply("stablehlo.complex", real, imaginary); }

// A scalar beside larger operands (the bounds of clamp) gets the sum of what each element gives.
Term shaped_as(Term like, Term value) { return like.rank() < value.rank() ? sum_of_all(value) : value; }

Term both(Term a, Term b) { return apply("stablehlo.and", a, b); }

Term zero_as_one(Term value) { return select(compare(value, "EQ", value.number(0)), value.number(1), value); }

}  // namespace

Contributions vjp_abs(const Vjp& v) {
  // At 0 the slope is that of the right side; NaN has the left side's.
  if (!is_complex(v.x())) return {select(compare(v.x(), "GE", v.x().number(0)), v.ct(), -v.ct())};
  const Term magnitude = zero_as_one(v.y());
  const Term zero = magnitude.number(0);
  return {complex_of(v.ct(), zero) * (v.x().apply("chlo.conj") / complex_of(magnitude, zero))};
}

Contributions vjp_acos(const Vjp& v) { return {-(v.ct() * (1.0 - v.x() * v.x()).apply("stablehlo.rsqrt"))}; }

Contributions vjp_acosh(const Vjp& v) { return {v.ct() * (v.x() * v.x() - 1.0).apply("stablehlo.rsqrt")}; }

Contributions vjp_asin(const Vjp& v) { return {v.ct() * (1.0 - v.x() * v.x()).apply("stablehlo.rsqrt")}; }

Contributions vjp_asinh(const Vjp& v) { return {v.ct() * (v.x() * v.x() + 1.0).apply("stablehlo.rsqrt")}; }

Contributions vjp_atan(const Vjp& v) { return {v.ct() / (v.x() * v.x() + 1.0)}; }

Contributions vjp_atanh(const Vjp& v) { return {v.ct() * (1.0 / (v.x() + 1.0)) / (1.0 - v.x())}; }

Contributions vjp_cbrt(const Vjp& v) { return {v.ct() * (1.0 / 3.0 * (1.0 / (v.y() * v.y())))}; }

Contributions vjp_conj(const Vjp& v) { return {is_complex(v.x()) ? v.ct().apply("chlo.conj") : v.ct()}; }

Contributions vjp_convert(const Vjp& v) { return {converted(v.ct(), v.x().dtype())}; }

Contributions vjp_cosh(const Vjp& v) { return {v.ct() * v.x().apply("chlo.sinh")}; }

Contributions vjp_cosine(const Vjp& v) { return {-(v.ct() * v.x().apply("stablehlo.sine"))}; }

Contributions vjp_digamma(const Vjp& v) { return {v.ct() * apply("chlo.polygamma", v.x().number(1), v.x())}; }

namespace {

// 2 / sqrt(pi) exp(-x^2), the derivative of erf.
Term erf_slope(Term x) { return 2 * std::numbers::inv_sqrtpi * (-(x * x)).apply("stablehlo.exponential"); }

}  // namespace

Contributions vjp_erf(const Vjp& v) { return {v.ct() * erf_slope(v.x())}; }

Contributions vjp_erfc(const Vjp& v) { return {-(v.ct() * erf_slope(v.x()))}; }

Contributions vjp_erf_inv(const Vjp& v) {
  return {v.ct() * (0.5 / std::numbers::inv_sqrtpi * (v.y() * v.y()).apply("stablehlo.exponential"))};
}

Contributions vjp_exponential(const Vjp& v) { return {v.ct() * v.y()}; }

Contributions vjp_exponential_minus_one(const Vjp& v) { return {v.ct() * (v.y() + 1.0)}; }

Contributions vjp_imag(const Vjp& v) {
  if (!is_complex(v.x())) return {};
  return {complex_of(v.ct().number(0), -v.ct())};
}

Contributions vjp_lgamma(const Vjp& v) { return {v.ct() * v.x().apply("chlo.digamma")}; }

Contributions vjp_log(const Vjp& v) { return {v.ct() / v.x()}; }

Contributions vjp_log_plus_one(const Vjp& v) { return {v.ct() / (v.x() + 1.0)}; }

Contributions vjp_logistic(const Vjp& v) { return {v.ct() * (v.y() * (1.0 - v.y()))}; }

Contributions vjp_negate(const Vjp& v) { return {-v.ct()}; }

Contributions vjp_real(const Vjp& v) {
  if (!is_complex(v.x())) return {v.ct()};
  return {complex_of(v.ct(), v.ct().number(0))};
}

Contributions vjp_reduce_precision(const Vjp& v) {
  return {Term{&v.writer, v.writer.add(v.op.name, {v.ct().id}, v.op.attributes)}};
}

Contributions vjp_rsqrt(const Vjp& v) { return {v.ct() * (-0.5 * (v.y() / v.x()))}; }

Contributions vjp_sine(const Vjp& v) { return {v.ct() * v.x().apply("stablehlo.cosine")}; }

Contributions vjp_sinh(const Vjp& v) { return {v.ct() * v.x().apply("chlo.cosh")}; }

Contributions vjp_sqrt(const Vjp& v) { return {v.ct() * (0.5 / v.y())}; }

Contributions vjp_square(const Vjp& v) { return {v.ct() * (2.0 * v.x())}; }

Contributions vjp_tan(const Vjp& v) { return {v.ct() * (v.y() * v.y() + 1.0)}; }

Contributions vjp_tanh(const Vjp& v) { return {v.ct() * ((v.y() + 1.0) * (1.0 - v.y()))}; }

Contributions vjp_add(const Vjp& v) { return {v.ct(), v.ct()}; }

Contributions vjp_atan2(const Vjp& v) {
  const Term square = v.x(0) * v.x(0) + v.x(1) * v.x(1);
  return {v.ct() * (v.x(1) / square), v.ct() * (-v.x(0) / square)};
}

Contributions vjp_clamp(const Vjp& v) {
  // A bound that is a scalar is compared as what it is repeated to.
  const auto repeated = [&](Term bound) {
    return bound.rank() < v.x(1).rank() ? v.value(v.writer.broadcast(bound.id, v.x(1).dims(), {})) : bound;
  };
  const Term least = repeated(v.x(0));
  const Term most = repeated(v.x(2));
  // Where the bounds leave nothing between them, the upper one counts.
  const Term is_range = compare(least, "LT", most);
  return {shaped_as(v.x(0), masked(both(compare(least, "GT", v.x(1)), is_range), v.ct())),
          masked(both(compare(v.x(1), "GT", least), compare(v.x(1), "LT", most)), v.ct()),
          shaped_as(v.x(2), masked(compare(v.x(1), "GT", most), v.ct()))};
}

Contributions vjp_complex(const Vjp& v) { return {v.ct().apply("stablehlo.real"), -v.ct().apply("stablehlo.imag")}; }

Contributions vjp_divide(const Vjp& v) { return {v.ct() / v.x(1), -(v.ct() * (1.0 / (v.x(1) * v.x(1))) * v.x(0))}; }

Contributions vjp_extreme(const Vjp& v) {
  if (is_complex(v.ct()))
    reject(v.view, "unsupported_op", "the derivative of '" + v.op.name + "' of complex numbers is not supported");
  const Term zero = v.ct().number(0);
  const Term one = v.ct().number(1);
  const auto share = [&](Term mine, Term other) {
    const Term is_mine = select(compare(mine, "EQ", v.y()), one, zero);
    return v.ct() * (is_mine / select(compare(other, "EQ", v.y()), v.ct().number(2), one));
  };
  return {share(v.x(0), v.x(1)), share(v.x(1), v.x(0))};
}

Contributions vjp_multiply(const Vjp& v) { return {v.ct() * v.x(1), v.ct() * v.x(0)}; }

Contributions vjp_polygamma(const Vjp& v) {
  return {Contribution(), v.ct() * apply("chlo.polygamma", v.x(0) + 1.0, v.x(1))};
}

Contributions vjp_power(const Vjp& v) {
  const Term x = v.x(0);
  const Term y = v.x(1);
  // JAX has a rule for whole exponents, in which x to the power of 0 is a constant at 0, too.
  const Term slope = v.from_integers.at(1)
                         ? masked(compare(y, "NE", y.number(0)), zero_as_one(y) * apply("stablehlo.power", x, y - 1.0))
                         : y * apply("stablehlo.power", x, y - 1.0);
  // 0 to the power of 0 has the slope of a constant in its exponent, as JAX has it.
  return {v.ct() * slope, v.ct() * (zero_as_one(x).apply("stablehlo.log") * v.y())};
}

Contributions vjp_zeta(const Vjp& v) {
  if (v.wanted[0]) reject(v.view, "unsupported_op", "'" + v.op.name + "' has a derivative in its second operand alone");
  return {Contribution(), v.ct() * (-v.x(0) * apply("chlo.zeta", v.x(0) + 1.0, v.x(1)))};
}

Contributions vjp_remainder(const Vjp& v) {
  const Term quotient = v.x(0) / v.x(1);
  const Term whole = quotient.apply("stablehlo.sign") * quotient.apply("stablehlo.abs").apply("stablehlo.floor");
  return {v.ct(), -v.ct() * whole};
}

Contributions vjp_select(const Vjp& v) {
  const Term zero = v.ct().number(0);
  return {Contribution(), select(v.x(0), v.ct(), zero), select(v.x(0), zero, v.ct())};
}

Contributions vjp_subtract(const Vjp& v) { return {v.ct(), -v.ct()}; }

}  // namespace meshd::ops
