// Derivatives of functions of a program: what jax.grad and its relatives are made of. A function is traced aside, its
// ops are differentiated (program/gradient), and what came of it takes their place.
#pragma once

#include <memory>
#include <vector>

#include "service/numpy/trace/tracer.h"

namespace meshd::numpy {

/// What is differentiated, and how its result is to be read.
struct Differentiated {
  Value function;
  std::vector<int64_t> argnums;  ///< positional arguments
  bool one_argnum = true;        ///< derivatives are not put into a tuple
  bool has_aux = false;          ///< the function gives (value, aux)
};

/// jax.grad and jax.value_and_grad of a scalar function at `given`. Throws invalid_program where JAX raises,
/// unsupported_op by op and line where there is no derivative.
Value gradient_of(Tracer& t, const Differentiated& what, bool with_value, const CallArguments& given);

/// A function at some arguments: its value, and what is linear in a change of them.
class Linearised {
 public:
  /// `name` is for messages ("vjp"). Refuses what is not differentiated: integers among the chosen arguments and the
  /// results.
  Linearised(Tracer& t, std::string name, const Differentiated& what, const CallArguments& given);
  ~Linearised();
  Linearised(Linearised&&) noexcept;
  Linearised& operator=(Linearised&&) noexcept;

  /// What the function gives (without aux), and aux.
  [[nodiscard]] const Value& value() const;
  [[nodiscard]] const Value& aux() const;
  /// The chosen arguments as a tuple, or the one.
  [[nodiscard]] const Value& primals() const;
  /// Of cotangents like the value, those of the arguments, like primals(): a vector-Jacobian product.
  Value pull_back(Tracer& t, const Value& cotangents) const;
  /// Of tangents like primals(), those of the value: a Jacobian-vector product, the transpose of the other.
  Value push_forward(Tracer& t, const Value& tangents) const;

 private:
  struct Parts;
  std::shared_ptr<Parts> parts_;
};

/// For each leaf of the value the derivative with respect to each leaf of the arguments, whose shape is that of the
/// first and then that of the second: by pulling back (jax.jacrev) or pushing forward (jax.jacfwd) a basis.
Value jacobian_of(Tracer& t, const Differentiated& what, bool forward, const CallArguments& given);

}  // namespace meshd::numpy
