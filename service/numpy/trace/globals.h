// What a program names without defining it: functions, constants and modules, by path. The tables of functions
// (functions/table.h) fill it; the tracer looks names up in it.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "service/numpy/trace/value.h"

namespace meshd::numpy {

/// Immutable; any thread.
class Globals {
 public:
  using Values = std::map<std::string, Value, std::less<>>;
  /// A name, and the path that it means.
  using Meaning = std::pair<std::string_view, std::string_view>;

  /// `values` by path. `modules`: names of modules ("jax.numpy" means "jnp"). `names`: those that are there without an
  /// import. `methods`: functions of "jnp" that are methods of arrays. What the spans show outlives this.
  Globals(Values values, std::span<const Meaning> modules, std::span<const Meaning> names,
          std::span<const std::string_view> methods);

  /// What is at a path ("jnp.linalg.norm", "jnp.pi", "jnp.linalg"); null: nothing.
  [[nodiscard]] const Value* find(std::string_view path) const;
  /// What a name means without an import (jnp, np, jax, random, P, log, len); null: nothing.
  [[nodiscard]] const Value* find_name(std::string_view name) const;
  [[nodiscard]] std::vector<std::string> names() const;
  /// Names below a module, for messages.
  [[nodiscard]] std::vector<std::string> names_in(std::string_view path) const;
  /// The path that a module's name means: "jax.numpy" -> "jnp"; others as they are.
  [[nodiscard]] std::string canonical_path(std::string_view path) const;
  /// The function that a method of an array is (x.sum -> jnp.sum), or null.
  [[nodiscard]] const Value* find_method(std::string_view name) const;
  [[nodiscard]] std::vector<std::string> method_names() const;

 private:
  Values values_;
  std::span<const Meaning> modules_;
  std::span<const Meaning> names_;
  std::span<const std::string_view> methods_;
};

}  // namespace meshd::numpy
