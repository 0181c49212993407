#include "service/numpy/syntax/mistakes.h"

namespace meshd::numpy {

void fail(core::ErrorCode code, Place place, const std::string& message) {
  const std::string detail =
      "line " + std::to_string(place.line) + ", column " + std::to_string(place.column) + ": " + message;
  throw core::Error(code, detail, {{"", message, place.line, place.column}});
}

}  // namespace meshd::numpy
