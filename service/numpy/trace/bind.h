// The arguments of a call, fitted to a signature: that of a function of the text or of the tables.
#pragma once

#include <string>
#include <vector>

#include "service/numpy/trace/tracer.h"

namespace meshd::numpy {

/// The values of a call in the order of the parameters; `defaults` has one for each (Undefined: none). `*args` gets a
/// tuple, `**kwargs` a dict. Refuses calls that do not fit, naming `name`.
std::vector<Value> bind(Tracer& t, const std::string& name, const std::vector<FunctionParameter>& parameters,
                        const std::vector<Value>& defaults, CallArguments arguments);

}  // namespace meshd::numpy
