#include "service/numpy/functions/shared.h"

namespace meshd::numpy {

std::vector<FunctionRow> control_functions() { return {}; }

}  // namespace meshd::numpy
