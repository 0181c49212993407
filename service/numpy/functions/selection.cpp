#include "service/numpy/functions/shared.h"

namespace meshd::numpy {

std::vector<FunctionRow> selection_functions() { return {}; }

}  // namespace meshd::numpy
