// What programs may call, for readers: made from the table of functions.
#pragma once

#include <string>
#include <vector>

namespace meshd::numpy {

struct FunctionFacts {
  std::string name;                      ///< "jnp.sum"; of Python's own without a module: "len"
  std::string parameters;                ///< in Python's words: "a, axis=None, *, keepdims=False"
  std::vector<std::string> other_names;  ///< "lax.abs" of jnp.abs
};

/// All of them, by name. Any thread.
std::vector<FunctionFacts> all_function_facts();

}  // namespace meshd::numpy
