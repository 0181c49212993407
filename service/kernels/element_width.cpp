#include "service/kernels/element_width.h"

#include <fmt/core.h>

#include "service/core/error.h"

namespace meshd::kernels {

void refuse_element_width(int64_t bytes) {
  throw core::Error("internal", fmt::format("no element has {} bytes", bytes));
}

}  // namespace meshd::kernels
