#include "service/numpy/trace/arithmetic.h"

#include <fmt/core.h>

namespace meshd::numpy {
namespace {

Array sign(Tracer& t, const Array& x) { return t.op("stablehlo.sign", {x}); }

// Quotient and remainder of floats, rounded down.
std::pair<Array, Array> float_divmod(Tracer& t, const Array& x, const Array& y) {
  Array mod = t.op("stablehlo.remainder", {x, y});
  const Array zero = t.full_like(y, int64_t{0});
  Array div = t.divide(t.select(t.compare("EQ", y, zero), x, t.subtract(x, mod)), y);
  const Array differs =
      t.logical_and(t.compare("NE", mod, t.full_like(mod, int64_t{0})), t.compare("NE", sign(t, y), sign(t, mod)));
  mod = t.select(differs, t.add(mod, y), mod);
  div = t.select(differs, t.subtract(div, t.full_like(div, int64_t{1})), div);
  return {t.op("stablehlo.round_nearest_afz", {div}), mod};
}

void expect_numbers(Tracer& t, const Array& x, const char* what) {
  if (tensor::is_complex(x.dtype())) t.refuse(std::string(what) + " takes no complex numbers");
}

std::vector<Array> numeric_arrays(Tracer& t, const Value& x, const Value& y) {
  std::vector<Array> both = t.broadcast_arrays({x, y});
  if (both[0].dtype() == DType::kBool) {
    for (Array& each : both) each = t.convert(each, DType::kInt32);
  }
  return both;
}

Array integer_power(Tracer& t, Array x, Array y) {
  constexpr int kBits = 6;  // more would overflow for any |x| > 1
  const Array zero = t.full_like(y, int64_t{0});
  const Array one = t.full_like(y, int64_t{1});
  Array out = t.select(t.logical_and(t.compare("EQ", x, zero), t.compare("NE", y, zero)), zero, one);
  for (int bit = 0; bit < kBits; ++bit) {
    out = t.select(t.convert(t.logical_and(y, one), DType::kBool), t.multiply(out, x), out);
    x = t.multiply(x, x);
    y = t.op("stablehlo.shift_right_logical", {y, one});
  }
  return out;
}

}  // namespace

Array elementwise(Tracer& t, std::string_view op, const Value& x, const Value& y) {
  return t.op(op, t.broadcast_arrays({x, y}));
}

Array true_divide(Tracer& t, const Value& x, const Value& y) {
  const std::vector<Array> both = t.inexact_arrays({x, y});
  return t.divide(both[0], both[1]);
}

Array floor_divide(Tracer& t, const Value& x, const Value& y) {
  const std::vector<Array> both = numeric_arrays(t, x, y);
  expect_numbers(t, both[0], "//");
  if (tensor::is_float(both[0].dtype())) return float_divmod(t, both[0], both[1]).first;
  const Array quotient = t.divide(both[0], both[1]);
  if (!tensor::is_signed_integer(quotient.dtype())) return quotient;
  const Array rest = t.op("stablehlo.remainder", both);
  const Array below = t.logical_and(t.compare("NE", sign(t, both[0]), sign(t, both[1])),
                                    t.compare("NE", rest, t.full_like(rest, int64_t{0})));
  return t.select(below, t.subtract(quotient, t.with_number(quotient, int64_t{1})), quotient);
}

Array remainder(Tracer& t, const Value& x, const Value& y) {
  std::vector<Array> both = numeric_arrays(t, x, y);
  expect_numbers(t, both[0], "%");
  const Array zero = t.full_like(both[0], int64_t{0});
  if (tensor::is_integer(both[1].dtype()))
    both[1] = t.select(t.compare("EQ", both[1], zero), t.with_number(both[1], int64_t{1}), both[1]);
  const Array rest = t.op("stablehlo.remainder", both);
  const Array differs = t.compare("NE", t.compare("LT", rest, zero), t.compare("LT", both[1], zero));
  return t.select(t.logical_and(differs, t.compare("NE", rest, zero)), t.add(rest, both[1]), rest);
}

Array power(Tracer& t, const Value& x, const Value& y) {
  const auto* exponent = y.as<int64_t>();
  if (exponent != nullptr) {
    Array base = t.array(x);
    if (base.dtype() == DType::kBool) base = t.convert(base, DType::kInt32);
    if (tensor::is_integer(base.dtype()) && *exponent < 0)
      t.refuse("integers cannot be raised to negative powers; make the base a float");
    return t.integer_pow(base, *exponent);
  }
  const WeakType base = t.type_of(x);
  const WeakType power = t.type_of(y);
  if ((tensor::is_float(base.dtype) || tensor::is_complex(base.dtype)) && tensor::is_integer(power.dtype)) {
    const tensor::Dims dims = t.broadcast_dims({t.dims_of(x), t.dims_of(y)});
    Array made = t.op("stablehlo.power",
                      {t.broadcast_to(t.array(x), dims), t.convert(t.broadcast_to(t.array(y), dims), base.dtype)});
    made.weak = base.weak && power.weak;
    return made;
  }
  const std::vector<Array> both = numeric_arrays(t, x, y);
  if (tensor::is_integer(both[0].dtype())) return integer_power(t, both[0], both[1]);
  return t.op("stablehlo.power", both);
}

Array matmul(Tracer& t, const Value& x, const Value& y) {
  std::vector<Array> both = t.promoted_arrays({x, y});
  Array& a = both[0];
  Array& b = both[1];
  if (a.rank() == 0 || b.rank() == 0) t.refuse("@ takes arrays of at least one dimension; * multiplies by a number");
  const bool a_is_vector = a.rank() == 1;
  const bool b_is_vector = b.rank() == 1;
  if (a_is_vector) a = t.reshape(a, {1, a.dims()[0]});
  if (b_is_vector) b = t.reshape(b, {b.dims()[0], 1});
  const int64_t rows = a.dims()[static_cast<size_t>(a.rank() - 2)];
  const int64_t inner = a.dims().back();
  const int64_t columns = b.dims().back();
  if (inner != b.dims()[static_cast<size_t>(b.rank() - 2)]) {
    t.refuse(fmt::format(
        "@ of shapes {} and {}: the last dimension of the first ({}) and the last but one of the second ({}) have to "
        "be equal",
        shape_text(t.dims_of(x)), shape_text(t.dims_of(y)), inner, b.dims()[static_cast<size_t>(b.rank() - 2)]));
  }
  const bool weak = a.weak && b.weak;
  const bool is_bool = a.dtype() == DType::kBool;
  tensor::Dims batch =
      t.broadcast_dims({{a.dims().begin(), a.dims().end() - 2}, {b.dims().begin(), b.dims().end() - 2}});
  // A side without a batch keeps none: its product has no batch dimensions to repeat.
  Array out;
  if (b.rank() == 2) {
    out = t.dot_general(a, b, {a.rank() - 1}, {0}, {}, {}, a.dtype());
  } else {
    tensor::Dims a_dims = batch;
    a_dims.insert(a_dims.end(), {rows, inner});
    tensor::Dims b_dims = batch;
    b_dims.insert(b_dims.end(), {inner, columns});
    a = t.broadcast_to(a, a_dims);
    b = t.broadcast_to(b, b_dims);
    std::vector<int64_t> dims;
    for (size_t i = 0; i < batch.size(); ++i) dims.push_back(static_cast<int64_t>(i));
    out = t.dot_general(a, b, {a.rank() - 1}, {b.rank() - 2}, dims, dims, a.dtype());
  }
  out.weak = weak && !is_bool;
  if (a_is_vector) batch.push_back(columns);
  if (!a_is_vector) batch.insert(batch.end(), {rows, columns});
  if (b_is_vector) batch.pop_back();
  return t.reshape(out, batch);
}

}  // namespace meshd::numpy
