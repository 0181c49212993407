// NumPy syntax: programs in the common subset of Python and jax.numpy. A text is read once; it is traced for the types
// of its arguments, as jax.jit traces, and gives a StableHLO module.
//
// Example: "def f(x): return jnp.sum(x * 2)" traced for a float32 array of shape (3,) -> @main(tensor<3xf32>) ->
// tensor<f32> with a multiply and a reduce.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "service/core/hold_memory.h"
#include "service/ir/program.h"
#include "service/mesh/mesh.h"
#include "service/numpy/syntax/syntax.h"
#include "service/tensor/shape.h"

namespace meshd::numpy {

/// An array among the arguments of a trace.
struct ArrayInput {
  tensor::TensorType type;
  bool weak = false;  ///< a bare number of the request
};

/// An argument of a trace: an array by its type, a static value, or a tree of them.
struct Input {
  using ArrayType = ArrayInput;
  using Static = std::variant<std::monostate, bool, int64_t, double, std::string>;  ///< None first
  using List = std::vector<Input>;
  using Dict = std::vector<std::pair<std::string, Input>>;
  std::variant<ArrayType, Static, List, Dict> value;
  bool is_list = false;  ///< of a List: a list of Python, else a tuple
};

/// Arguments of the program's function, by position and by name.
struct Inputs {
  std::vector<Input> positional;
  std::vector<std::pair<std::string, Input>> keywords;
};

/// Equal for inputs that trace the same way.
std::string key_of(const Inputs& inputs);

/// A text that was read. Immutable.
struct Program {
  Syntax syntax;
  FunctionRef main;  ///< the function that runs: `main` where there is one, else the last
  /// Parameters that the text declares static (static_argnames, static_argnums of its jit), by position.
  std::vector<bool> is_static;
  bool has_effects = false;  ///< log is called somewhere

  [[nodiscard]] const std::vector<FunctionParameter>& parameters() const { return main->parameters; }
};
using ProgramRef = std::shared_ptr<const Program>;

/// Reads a text. Throws program_syntax, unsupported_type (statements that are not supported, by name) and
/// invalid_program (no function) with line and column. Pure; any thread.
ProgramRef read(std::string_view text);

/// A traced program.
struct Traced {
  ir::Module module;  ///< verified; one function, @main
  /// The tree of its results, as JSON with "*" for each: {"a":"*","b":["*","*"]}; empty: one array and no tree.
  std::string result_tree;
  std::vector<std::string> logs;  ///< the texts of its effects, by number of the callback
};

/// Traces the program for arguments of these types. `mesh`: what P(...) is over; null: none. Throws invalid_program,
/// invalid_spec, unsupported_op, unsupported_type, unsupported_dtype with line and column. Pure; any thread.
Traced trace(const Program& program, const Inputs& inputs, const mesh::MeshRef& mesh,
             const core::HoldMemory& hold = {});

}  // namespace meshd::numpy
