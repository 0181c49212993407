// Reverse-mode derivatives of rows (OpDef::derivative): what a rule is given, and arithmetic to write one with.
// Used by service/program/gradient/gradient.h, which calls the rules from the last op of a program to its first.
//
// Conventions are JAX's. A cotangent has the type of its value; the pairing of cotangent and value is the real part of
// their product without conjugation, so the cotangent of conj(z) is conj(ct), and that of a real argument of a complex
// product its real part. Where a function has no derivative, rules give what jax.grad gives for the primitive of
// jax.lax: the cotangent itself to abs at 0, half of it to each side of a maximum of equals, equal parts to equal
// maxima of a reduction, zero to the steps of floor. Rules multiply in the order of JAX's transposed rules, on which
// NaN and infinity depend. Functions with other derivatives than their ops (jax.custom_jvp) are said by
// ops::kDifferentiatedAs.
//
// Example: y = sine(x), a cotangent ct of y. The rule writes %c = cosine(x), %g = multiply(ct, %c) and returns {%g}.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "service/ops/op_def.h"
#include "service/ops/rewrites/writer.h"

namespace meshd::ops {

/// A value of a writer's function, with operators that write ops. Both sides of an operator have one type, or one is a
/// number, which becomes a constant of the other's type. A value of this struct is as short-lived as its writer.
struct Term {
  Writer* writer = nullptr;
  ir::ValueId id = ir::kNoValue;

  /// A copy: the writer's table of values moves when an op is written.
  [[nodiscard]] ir::Type type() const { return writer->type(id); }
  [[nodiscard]] tensor::Dims dims() const { return writer->type(id).dims(); }
  [[nodiscard]] tensor::DType dtype() const { return writer->type(id).dtype(); }
  [[nodiscard]] int64_t rank() const { return writer->type(id).rank(); }
  /// An op of one operand and of the same type.
  [[nodiscard]] Term apply(std::string_view op) const { return {writer, writer->add(op, {id})}; }
  /// A constant of this type.
  [[nodiscard]] Term number(double value) const { return {writer, writer->splat(type(), value)}; }
};

Term apply(std::string_view op, Term a, Term b);
inline Term operator+(Term a, Term b) { return apply("stablehlo.add", a, b); }
inline Term operator-(Term a, Term b) { return apply("stablehlo.subtract", a, b); }
inline Term operator*(Term a, Term b) { return apply("stablehlo.multiply", a, b); }
inline Term operator/(Term a, Term b) { return apply("stablehlo.divide", a, b); }
inline Term operator+(Term a, double b) { return a + a.number(b); }
inline Term operator-(Term a, double b) { return a - a.number(b); }
inline Term operator-(double a, Term b) { return b.number(a) - b; }
inline Term operator*(double a, Term b) { return b.number(a) * b; }
inline Term operator/(Term a, double b) { return a / a.number(b); }
inline Term operator/(double a, Term b) { return b.number(a) / b; }
inline Term operator-(Term a) { return a.apply("stablehlo.negate"); }

/// a DIRECTION b, as booleans; DIRECTION is "EQ", "GT", ...
Term compare(Term a, std::string_view direction, Term b);
/// `a` where `where` holds, else `b`. `where` has the shape of both, or is a scalar.
Term select(Term where, Term a, Term b);
/// `value` where `where` holds, else zero.
Term masked(Term where, Term value);
/// Elements of another type; a complex value gives its real part to a real type.
Term converted(Term value, tensor::DType dtype);
/// The sum over these dimensions, which are gone then; a scalar over all of them.
Term summed_over(Term value, const std::vector<int64_t>& dims);
Term sum_of_all(Term value);
/// pad with zeros.
Term padded(Term value, const std::vector<int64_t>& low, const std::vector<int64_t>& high,
            const std::vector<int64_t>& interior);
/// The elements from `start` to before `limit`, by dimension.
Term sliced(Term value, const std::vector<int64_t>& start, const std::vector<int64_t>& limit,
            const std::vector<int64_t>& strides = {});
/// The index of each element along a dimension, as i32.
Term indices_along(Writer& writer, const tensor::Dims& dims, int64_t dim);
/// What `carried` is after `count` iterations of `body(iteration, carried)`; the number of the iteration is an i32.
std::vector<Term> counted_loop(Writer& writer, int64_t count, const std::vector<Term>& carried,
                               const std::function<std::vector<Term>(Term, const std::vector<Term>&)>& body);

/// An op with the cotangents of its results.
struct Vjp {
  OpView view;
  const ir::Op& op;
  std::vector<ir::ValueId> cotangents;  ///< by result; ir::kNoValue: zero, but never for all
  std::vector<ir::ValueId> sums;    ///< by operand: the sum of what other ops gave for it; ir::kNoValue: nothing yet
  std::vector<bool> wanted;         ///< by operand: whether its cotangent is of use
  std::vector<bool> from_integers;  ///< by operand: whether it is integers converted to a type with derivatives
  Writer& writer;

  [[nodiscard]] Term value(ir::ValueId id) const { return {&writer, id}; }
  [[nodiscard]] Term x(size_t operand = 0) const { return value(op.operands.at(operand)); }
  [[nodiscard]] Term y(size_t result = 0) const { return value(op.results.at(result)); }
  /// The cotangent of a result; a constant of zeros where it is zero.
  [[nodiscard]] Term ct(size_t result = 0) const;
};

/// What an op gives for one operand: nothing, a value to be added to the sum, or the new sum itself (an update of a
/// part of the sum costs the part alone).
struct Contribution {
  ir::ValueId value = ir::kNoValue;
  bool has_sum = false;

  Contribution() = default;
  Contribution(Term term) : value(term.id) {}  // NOLINT(google-explicit-constructor): rules return lists of terms
  static Contribution sum(Term term) {
    Contribution out(term);
    out.has_sum = true;
    return out;
  }
};

/// By operand; shorter lists give nothing for the rest. Throws unsupported_op where this instance has no derivative.
using Contributions = std::vector<Contribution>;

/// Derivative::vjp of ops whose results are their operands (constraints, barriers): the op itself, on the cotangents.
Contributions vjp_identity(const Vjp& v);

}  // namespace meshd::ops
