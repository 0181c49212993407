#include "service/numpy/syntax/mistakes.h"

#include <fmt/core.h>

namespace meshd::numpy {

void fail(core::ErrorCode code, Place place, const std::string& message) {
  const std::string detail = fmt::format("line {}, column {}: {}", place.line, place.column, message);
  throw core::Error(code, detail, {{"", message, place.line, place.column}});
}

}  // namespace meshd::numpy
