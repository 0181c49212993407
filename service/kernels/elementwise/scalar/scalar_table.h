// The table of scalar operations: one row each, with its name, its facts and the functors that compute it. A new
// operation is a row at the end (and its functor, here or in the headers of functors) and the row of its op in
// service/ops; only what C++ composes or looks for by itself (sums, comparisons) has an enumerator as well. Private to
// this folder: functors of this header must be compiled with the options of kernels/CMakeLists.txt.
#pragma once

#include <array>
#include <tuple>
#include <utility>

#include "service/kernels/elementwise/functors/bessel.h"
#include "service/kernels/elementwise/functors/complex_functors.h"
#include "service/kernels/elementwise/functors/float_functors.h"
#include "service/kernels/elementwise/functors/integer_functors.h"
#include "service/kernels/elementwise/functors/special_functions.h"
#include "service/kernels/elementwise/lanes/lane_loop.h"
#include "service/kernels/elementwise/lanes/splat_second.h"
#include "service/kernels/elementwise/scalar/scalar_tables.h"

namespace meshd::kernels {

// --- columns: how a family of element types computes an operation ---

/// No type of the family has it.
struct None {};
/// F<T>::apply in a loop that the compiler vectorises.
template <template <class> class F>
struct Loop {
  template <class T>
  using Of = F<T>;
  static constexpr bool kIsCall = false;
};
/// The same for types, and parts of complex numbers, of at most 32 bits; wider ones are taken element by element.
template <template <class> class F>
struct ShortLoop {
  template <class T>
  using Of = F<T>;
  static constexpr bool kIsCall = false;
};
/// F<T>::apply calls a function, element by element.
template <template <class> class F>
struct Calls {
  template <class T>
  using Of = F<T>;
  static constexpr bool kIsCall = true;
};

/// Functions that have no vector form: through double.
template <double (*F)(double)>
struct ThroughDouble {
  template <class T>
  struct Of {
    static T apply(T x) { return static_cast<T>(F(x)); }
  };
};
template <double (*F)(double, double)>
struct TwoThroughDouble {
  template <class T>
  struct Of {
    static T apply(T x, T y) { return static_cast<T>(F(x, y)); }
  };
};
template <std::complex<double> (*F)(const std::complex<double>&)>
struct ThroughComplex {
  template <class T>
  struct Of {
    static ComplexPair<T> apply(ComplexPair<T> z) { return from_double<T>(F(to_double(z))); }
  };
};
/// A function that the complex functions of the C library lose digits of: complex128 goes through long double, too.
template <std::complex<double> (*F)(const std::complex<double>&),
          std::complex<long double> (*Wider)(const std::complex<long double>&)>
struct ThroughWider {
  template <class T>
  struct Of {
    static ComplexPair<T> apply(ComplexPair<T> z) {
      if constexpr (sizeof(T) == sizeof(float)) {
        return from_wide<T>(F(to_wide(z)));
      } else {
        return from_wide<T>(Wider(to_wide(z)));
      }
    }
  };
};
/// A comparison in the order -NaN < -inf < ... < inf < NaN.
template <template <class> class Compare>
struct Total {
  template <class T>
  using Of = TotalCompare<T, Compare>;
};

/// One row. The columns are the functors on float and double; on integers of 8 to 64 bits; on bool, a byte that is 0 or
/// 1; on the parts of complex numbers. Types of fewer bits are computed in float or in bytes.
template <class OfFloats = None, class OfIntegers = None, class OfBools = None, class OfComplexes = None>
struct Row {
  using Floats = OfFloats;
  using Integers = OfIntegers;
  using Bools = OfBools;
  using Complexes = OfComplexes;
  ScalarFacts facts;
};

constexpr ScalarFacts function(std::string_view name, double cost) {
  return {.name = name, .cost = cost, .vector_function = true};
}
constexpr ScalarFacts comparison(ScalarOp op, std::string_view name) {
  return {.op = op, .name = name, .operands = 2, .result = ScalarResult::kBool, .bfloat16_loop = true};
}

// Rows with an enumerator come first, in the enum's order. Copies, conversions, bitcasts and selects move bytes:
// find_scalar_kernel has their kernels.
inline constexpr std::tuple kScalarTable{
    Row<>{{.op = ScalarOp::kCopy, .name = "copy"}},
    Row<>{{.op = ScalarOp::kConvert, .name = "convert"}},
    Row<>{{.op = ScalarOp::kBitcast, .name = "bitcast_convert"}},
    Row<Loop<Absolute>, Loop<IntAbsolute>, None, Loop<ComplexAbs>>{
        {.op = ScalarOp::kAbs, .name = "abs", .result = ScalarResult::kPart, .bfloat16_loop = true}},
    Row<Loop<Negate>, Loop<IntNegate>, None, Loop<ComplexNegate>>{
        {.op = ScalarOp::kNegate, .name = "negate", .bfloat16_loop = true}},
    Row<Loop<Exp>, None, None, ShortLoop<ComplexExp>>{
        {.op = ScalarOp::kExp, .name = "exponential", .cost = 10, .vector_function = true}},
    Row<Loop<Floor>>{{.op = ScalarOp::kFloor, .name = "floor"}},
    Row<None, None, None, Loop<ComplexReal>>{{.op = ScalarOp::kReal, .name = "real", .result = ScalarResult::kPart}},
    Row<None, None, None, Loop<ComplexImag>>{{.op = ScalarOp::kImag, .name = "imag", .result = ScalarResult::kPart}},
    Row<None, None, None, Loop<ComplexConj>>{{.op = ScalarOp::kConj, .name = "conj"}},
    Row<Calls<ThroughDouble<log_gamma>::Of>>{{.op = ScalarOp::kLgamma, .name = "lgamma", .cost = 40}},
    Row<Calls<ThroughDouble<digamma>::Of>>{{.op = ScalarOp::kDigamma, .name = "digamma", .cost = 40}},
    Row<Loop<Add>, Loop<IntAdd>, Loop<IntOr>, Loop<ComplexAdd>>{
        {.op = ScalarOp::kAdd, .name = "add", .operands = 2, .identity = Identity::kSum, .bfloat16_loop = true}},
    Row<Loop<Subtract>, Loop<IntSubtract>, None, Loop<ComplexSubtract>>{
        {.op = ScalarOp::kSubtract, .name = "subtract", .operands = 2, .bfloat16_loop = true}},
    Row<Loop<Multiply>, Loop<IntMultiply>, Loop<IntAnd>, Loop<ComplexMultiply>>{{.op = ScalarOp::kMultiply,
                                                                                 .name = "multiply",
                                                                                 .operands = 2,
                                                                                 .identity = Identity::kOne,
                                                                                 .bfloat16_loop = true}},
    Row<Loop<Divide>, ShortLoop<IntDivide>, None, ShortLoop<ComplexDivide>>{
        {.op = ScalarOp::kDivide, .name = "divide", .operands = 2, .cost = 4, .bfloat16_loop = true}},
    Row<Calls<Remainder>, ShortLoop<IntRemainder>>{
        {.op = ScalarOp::kRemainder, .name = "remainder", .operands = 2, .cost = 4}},
    Row<Loop<Power>, Calls<IntPower>, None, Calls<ComplexPower>>{
        {.op = ScalarOp::kPower, .name = "power", .operands = 2, .cost = 10, .vector_function = true}},
    Row<Loop<Maximum>, Loop<IntMaximum>, Loop<IntOr>>{{.op = ScalarOp::kMaximum,
                                                       .name = "maximum",
                                                       .operands = 2,
                                                       .identity = Identity::kLowest,
                                                       .is_idempotent = true,
                                                       .bfloat16_loop = true}},
    Row<Loop<Minimum>, Loop<IntMinimum>, Loop<IntAnd>>{{.op = ScalarOp::kMinimum,
                                                        .name = "minimum",
                                                        .operands = 2,
                                                        .identity = Identity::kHighest,
                                                        .is_idempotent = true,
                                                        .bfloat16_loop = true}},
    Row<None, Loop<IntAnd>, Loop<IntAnd>>{
        {.op = ScalarOp::kAnd, .name = "and", .operands = 2, .identity = Identity::kOnes, .is_idempotent = true}},
    Row<None, Loop<IntOr>, Loop<IntOr>>{
        {.op = ScalarOp::kOr, .name = "or", .operands = 2, .identity = Identity::kZero, .is_idempotent = true}},
    Row<None, Loop<IntXor>, Loop<IntXor>>{
        {.op = ScalarOp::kXor, .name = "xor", .operands = 2, .identity = Identity::kZero}},
    Row<None, Loop<ShiftLeft>>{{.op = ScalarOp::kShiftLeft, .name = "shift_left", .operands = 2}},
    Row<None, Loop<ShiftRightLogical>>{{.op = ScalarOp::kShiftRightLogical,
                                        .name = "shift_right_logical",
                                        .operands = 2,
                                        .narrow = NarrowCarrier::kUnsigned}},
    Row<Loop<MakeComplex>>{
        {.op = ScalarOp::kComplex, .name = "complex", .operands = 2, .result = ScalarResult::kComplex}},
    Row<Loop<NextAfter>>{{.op = ScalarOp::kNextAfter, .name = "next_after", .operands = 2}},
    Row<Loop<CompareEq>, Loop<CompareEq>, Loop<CompareEq>, Loop<ComplexEq>>{
        comparison(ScalarOp::kCompareEq, "compare EQ")},
    Row<Loop<CompareNe>, Loop<CompareNe>, Loop<CompareNe>, Loop<ComplexNe>>{
        comparison(ScalarOp::kCompareNe, "compare NE")},
    Row<Loop<CompareLt>, Loop<CompareLt>, Loop<CompareLt>>{comparison(ScalarOp::kCompareLt, "compare LT")},
    Row<Loop<CompareLe>, Loop<CompareLe>, Loop<CompareLe>>{comparison(ScalarOp::kCompareLe, "compare LE")},
    Row<Loop<CompareGt>, Loop<CompareGt>, Loop<CompareGt>>{comparison(ScalarOp::kCompareGt, "compare GT")},
    Row<Loop<CompareGe>, Loop<CompareGe>, Loop<CompareGe>>{comparison(ScalarOp::kCompareGe, "compare GE")},
    Row<Loop<Total<CompareEq>::Of>, Loop<CompareEq>, Loop<CompareEq>>{
        {.op = ScalarOp::kTotalEq, .name = "compare EQ TOTALORDER", .operands = 2, .result = ScalarResult::kBool}},
    Row<Loop<Total<CompareNe>::Of>, Loop<CompareNe>, Loop<CompareNe>>{
        {.op = ScalarOp::kTotalNe, .name = "compare NE TOTALORDER", .operands = 2, .result = ScalarResult::kBool}},
    Row<Loop<Total<CompareLt>::Of>, Loop<CompareLt>, Loop<CompareLt>>{
        {.op = ScalarOp::kTotalLt, .name = "compare LT TOTALORDER", .operands = 2, .result = ScalarResult::kBool}},
    Row<Loop<Total<CompareLe>::Of>, Loop<CompareLe>, Loop<CompareLe>>{
        {.op = ScalarOp::kTotalLe, .name = "compare LE TOTALORDER", .operands = 2, .result = ScalarResult::kBool}},
    Row<Loop<Total<CompareGt>::Of>, Loop<CompareGt>, Loop<CompareGt>>{
        {.op = ScalarOp::kTotalGt, .name = "compare GT TOTALORDER", .operands = 2, .result = ScalarResult::kBool}},
    Row<Loop<Total<CompareGe>::Of>, Loop<CompareGe>, Loop<CompareGe>>{
        {.op = ScalarOp::kTotalGe, .name = "compare GE TOTALORDER", .operands = 2, .result = ScalarResult::kBool}},
    Row<>{{.op = ScalarOp::kSelect, .name = "select", .operands = 3}},
    Row<Loop<Clamp>, Loop<IntClamp>, Loop<IntClamp>>{{.op = ScalarOp::kClamp, .name = "clamp", .operands = 3}},
    Row<Loop<Sign>, Loop<IntSign>, None, Calls<ComplexSign>>{{.name = "sign"}},
    Row<Loop<Expm1>, None, None, Calls<ThroughWider<complex_expm1<double>, complex_expm1<long double>>::Of>>{
        function("exponential_minus_one", 10)},
    Row<Loop<Log>, None, None, ShortLoop<ComplexLog>>{function("log", 10)},
    Row<Loop<Log1p>, None, None, Calls<ThroughComplex<complex_log1p>::Of>>{function("log_plus_one", 10)},
    Row<Loop<Sqrt>, None, None, ShortLoop<ComplexSqrt>>{{.name = "sqrt", .cost = 4, .bfloat16_loop = true}},
    Row<Loop<Rsqrt>, None, None, Calls<ThroughComplex<complex_rsqrt>::Of>>{function("rsqrt", 4)},
    Row<Loop<Cbrt>, None, None, Calls<ThroughComplex<complex_cbrt>::Of>>{function("cbrt", 10)},
    Row<Loop<Sin>, None, None, Calls<ThroughWider<std::sin<double>, complex_sin>::Of>>{function("sine", 10)},
    Row<Loop<Cos>, None, None, Calls<ThroughWider<std::cos<double>, complex_cos>::Of>>{function("cosine", 10)},
    Row<Loop<Tan>, None, None, Calls<ThroughWider<std::tan<double>, std::tan<long double>>::Of>>{function("tan", 10)},
    Row<Loop<Tanh>, None, None, Calls<ThroughWider<std::tanh<double>, std::tanh<long double>>::Of>>{
        function("tanh", 10)},
    Row<Loop<Logistic>, None, None, Calls<ThroughComplex<complex_logistic>::Of>>{function("logistic", 10)},
    Row<Loop<Ceil>>{{.name = "ceil"}},
    Row<Loop<RoundAway>>{{.name = "round_nearest_afz"}},
    Row<Loop<RoundEven>>{{.name = "round_nearest_even"}},
    Row<None, Loop<IntNot>, Loop<BoolNot>>{{.name = "not"}},
    Row<None, Loop<PopulationCount>>{{.name = "popcnt", .narrow = NarrowCarrier::kUnsigned}},
    Row<None, Loop<CountLeadingZeros>>{
        {.name = "count_leading_zeros", .narrow = NarrowCarrier::kUnsigned, .counts_width = true}},
    Row<Loop<IsFinite>>{{.name = "is_finite", .result = ScalarResult::kBool}},
    Row<Loop<Erf>>{function("erf", 40)},
    Row<Loop<Erfc>>{function("erfc", 40)},
    Row<Loop<ErfInv>>{function("erf_inv", 40)},
    Row<Loop<Asin>, None, None, Calls<ThroughComplex<from_above<std::asin<double>>>::Of>>{function("asin", 40)},
    Row<Loop<Acos>, None, None, Calls<ThroughComplex<from_above<std::acos<double>>>::Of>>{function("acos", 40)},
    Row<Loop<Atan>, None, None, Calls<ThroughWider<std::atan<double>, std::atan<long double>>::Of>>{
        function("atan", 40)},
    Row<Loop<Sinh>, None, None, Calls<ThroughComplex<std::sinh<double>>::Of>>{function("sinh", 40)},
    Row<Loop<Cosh>, None, None, Calls<ThroughComplex<std::cosh<double>>::Of>>{function("cosh", 40)},
    Row<Loop<Asinh>, None, None, Calls<ThroughComplex<from_the_right<std::asinh<double>>>::Of>>{function("asinh", 40)},
    Row<Loop<Acosh>, None, None, Calls<ThroughComplex<from_above<std::acosh<double>>>::Of>>{function("acosh", 40)},
    Row<Loop<Atanh>, None, None, Calls<ThroughWider<std::atanh<double>, std::atanh<long double>>::Of>>{
        function("atanh", 40)},
    Row<Loop<BesselI0e>>{function("bessel_i0e", 40)},
    Row<Loop<BesselI1e>>{function("bessel_i1e", 40)},
    Row<Loop<Square>, Loop<IntSquare>, None, Loop<ComplexSquare>>{{.name = "square", .bfloat16_loop = true}},
    Row<Loop<Atan2>>{{.name = "atan2", .operands = 2, .cost = 10, .vector_function = true}},
    Row<None, Loop<ShiftRightArithmetic>>{
        {.name = "shift_right_arithmetic", .operands = 2, .narrow = NarrowCarrier::kSigned}},
    Row<Calls<TwoThroughDouble<zeta>::Of>>{{.name = "zeta", .operands = 2}},
    Row<Calls<TwoThroughDouble<polygamma>::Of>>{{.name = "polygamma", .operands = 2}}};

inline constexpr size_t kScalarOpCount = std::tuple_size_v<decltype(kScalarTable)>;
template <size_t kNumber>
using ScalarRow = std::tuple_element_t<kNumber, decltype(kScalarTable)>;
template <size_t kNumber>
inline constexpr ScalarFacts kFactsOf = std::get<kNumber>(kScalarTable).facts;

// --- kernels of a column ---

template <class Column>
inline constexpr bool kIsCall = Column::kIsCall;
template <>
inline constexpr bool kIsCall<None> = false;

template <class Column>
inline constexpr bool kIsWideCall = kIsCall<Column>;
template <template <class> class F>
inline constexpr bool kIsWideCall<ShortLoop<F>> = true;
template <class Column, class T>
inline constexpr bool kCalls = sizeof(T) > 4 ? kIsWideCall<Column> : kIsCall<Column>;

/// What an operation on `Operand` gives; `Part` is a complex operand's part, else the operand's type itself.
template <ScalarResult kResult, class Part, class Operand>
using ResultOf = std::conditional_t<
    kResult == ScalarResult::kBool, uint8_t,
    std::conditional_t<kResult == ScalarResult::kPart, Part,
                       std::conditional_t<kResult == ScalarResult::kComplex, ComplexPair<Part>, Operand>>>;

template <bool kIsCalled, class F, class Result, class... Operands>
ScalarKernel plain_loop_of() {
  if constexpr (kIsCalled) {
    return call_kernel<F, Result, Operands...>();
  } else {
    return vector_kernel<F, Result, Operands...>();
  }
}

template <bool kIsCalled, class F, class Result, class... Operands>
ScalarKernel loop_of() {
  if constexpr (HasSplatSecond<F>) {
    return [](const std::byte* const* operands, std::byte* result, int64_t count) {
      if (run_splat_second<F, Result>(operands, result, count)) return;
      plain_loop_of<kIsCalled, F, Result, Operands...>()(operands, result, count);
    };
  } else {
    return plain_loop_of<kIsCalled, F, Result, Operands...>();
  }
}

/// The kernel of one row in one family; null where it has none.
template <class Column, class Part, class Operand, size_t kNumber>
ScalarKernel column_kernel() {
  if constexpr (std::is_same_v<Column, None>) {
    return nullptr;
  } else {
    using F = typename Column::template Of<Part>;
    using Result = ResultOf<kFactsOf<kNumber>.result, Part, Operand>;
    constexpr int kOperands = kFactsOf<kNumber>.operands;
    if constexpr (kOperands == 1) {
      return loop_of<kCalls<Column, Part>, F, Result, Operand>();
    } else if constexpr (kOperands == 2) {
      return loop_of<kCalls<Column, Part>, F, Result, Operand, Operand>();
    } else {
      return loop_of<kCalls<Column, Part>, F, Result, Operand, Operand, Operand>();
    }
  }
}

struct FloatFamily {
  template <size_t kNumber>
  using Column = typename ScalarRow<kNumber>::Floats;
};
struct IntegerFamily {
  template <size_t kNumber>
  using Column = typename ScalarRow<kNumber>::Integers;
};
struct BoolFamily {
  template <size_t kNumber>
  using Column = typename ScalarRow<kNumber>::Bools;
};
struct ComplexFamily {
  template <size_t kNumber>
  using Column = typename ScalarRow<kNumber>::Complexes;
};

/// The kernel of an operation in a family, for operands of `Operand`; null where there is none.
template <class Family, class Part, class Operand = Part>
ScalarKernel find_in_family(ScalarOp op) {
  return []<size_t... kNumber>(ScalarOp wanted, std::index_sequence<kNumber...>) {
    using Maker = ScalarKernel (*)();
    static constexpr std::array<Maker, kScalarOpCount> kMakers = {
        column_kernel<typename Family::template Column<kNumber>, Part, Operand, kNumber>...};
    return kMakers[static_cast<size_t>(wanted)]();
  }
  (op, std::make_index_sequence<kScalarOpCount>{});
}

}  // namespace meshd::kernels
