// oneDNN's engine for this processor. Private to the files that call oneDNN's primitives.
#pragma once

#include <oneapi/dnnl/dnnl.hpp>

namespace meshd::kernels {

/// One for the process; any thread.
inline dnnl::engine& cpu_engine() {
  static dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

}  // namespace meshd::kernels
