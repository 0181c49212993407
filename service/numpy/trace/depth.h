// Bounds how deep the tracer calls itself.
#pragma once

#include "service/numpy/syntax/limits.h"
#include "service/numpy/trace/tracer.h"

namespace meshd::numpy {

/// One level, for its lifetime. Throws invalid_program beyond kMaxTraceDepth.
class Tracer::Deeper {
 public:
  explicit Deeper(Tracer& tracer) : tracer_(tracer) {
    if (++tracer_.depth_ <= kMaxTraceDepth) return;
    --tracer_.depth_;
    tracer_.refuse("calls and expressions are nested too deep");
  }
  ~Deeper() { --tracer_.depth_; }
  Deeper(const Deeper&) = delete;
  Deeper& operator=(const Deeper&) = delete;

 private:
  Tracer& tracer_;
};

}  // namespace meshd::numpy
