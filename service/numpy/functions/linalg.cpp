#include "service/numpy/functions/shared.h"

namespace meshd::numpy {

std::vector<FunctionRow> linalg_functions() { return {}; }

}  // namespace meshd::numpy
