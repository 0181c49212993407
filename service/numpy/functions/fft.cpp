#include "service/numpy/functions/shared.h"

namespace meshd::numpy {

std::vector<FunctionRow> fft_functions() { return {}; }

}  // namespace meshd::numpy
