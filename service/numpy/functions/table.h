// The table of functions that programs call: one row each, by topic. A row has the function's path ("jnp.sum"), its
// signature in Python's words and what it does; parameters, defaults and errors of calls follow from the signature.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "service/numpy/trace/globals.h"
#include "service/numpy/trace/tracer.h"

namespace meshd::numpy {

/// The arguments of a call by the names of the row's signature.
class Arguments {
 public:
  Arguments(const Function& signature, std::vector<Value> values) : signature_(signature), values_(std::move(values)) {}
  /// The value of a parameter that the signature has.
  const Value& operator[](std::string_view name) const;
  /// Of `*name`.
  [[nodiscard]] const std::vector<Value>& all(std::string_view name) const { return (*this)[name].sequence()->items; }

 private:
  const Function& signature_;
  std::vector<Value> values_;
};

/// One row.
struct FunctionRow {
  std::string path;
  std::string signature;
  std::function<Value(Tracer&, const Arguments&)> run;
  bool takes_fields = false;  ///< as Callable::takes_fields
};

/// A name that is no function: jnp.pi, jnp.float32.
struct ConstantRow {
  std::string path;
  Value value;
};

// The topics; each a file of its name.
std::vector<FunctionRow> builtin_functions();
std::vector<FunctionRow> math_functions();
std::vector<FunctionRow> reduction_functions();
std::vector<FunctionRow> shape_functions();
std::vector<FunctionRow> creation_functions();
std::vector<FunctionRow> selection_functions();
std::vector<FunctionRow> linalg_functions();
std::vector<FunctionRow> fft_functions();
std::vector<FunctionRow> random_functions();
std::vector<FunctionRow> nn_functions();
std::vector<FunctionRow> control_functions();
std::vector<FunctionRow> transform_functions();
std::vector<FunctionRow> library_functions();
std::vector<ConstantRow> constant_rows();

/// All rows, in the order of the topics. Any thread.
std::span<const FunctionRow> all_functions();

/// The same by path, with constants, modules, second names and methods: what a tracer is made with. Any thread.
const Globals& all_globals();

}  // namespace meshd::numpy
