// A function of a program as a module of its own, for what transforms functions as programs: derivatives and batching.
#pragma once

#include <functional>
#include <vector>

#include "service/ir/program.h"
#include "service/numpy/trace/tracer.h"

namespace meshd::numpy {

/// @main takes the parameters that were asked for, then what the function reads from around it.
struct TracedFunction {
  ir::Module module;                  ///< specialised
  Value made;                         ///< what the function gives; leaves that are numbers have become arrays
  std::vector<Array> results;         ///< the arrays among the leaves of `made`, which are @main's results
  std::vector<ir::ValueId> captured;  ///< what @main takes behind its parameters, by its names here
};

/// Traces `body` for parameters of these types, aside: the program here gets none of its ops. Refuses programs that
/// log; `what` names what is done ("vjp").
TracedFunction trace_function(Tracer& t, const std::vector<WeakType>& types, const std::vector<tensor::Dims>& dims,
                              std::string_view what, const std::function<Value(const std::vector<Array>&)>& body);
/// The ops of a module's @main for these arguments, in the program here. Gives its results.
std::vector<ir::ValueId> insert_main(Tracer& t, const ir::Module& module, const std::vector<ir::ValueId>& arguments);

/// `made` with `leaves` in place of its arrays, in order.
Value with_arrays(const Value& made, const std::vector<Value>& leaves);

}  // namespace meshd::numpy
