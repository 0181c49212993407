#include "service/numpy/functions/shared.h"

namespace meshd::numpy {

std::vector<FunctionRow> transform_functions() { return {}; }

}  // namespace meshd::numpy
