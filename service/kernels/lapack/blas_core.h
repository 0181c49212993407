// Selects OpenBLAS's kernels by CPU features. OpenBLAS itself selects by processor model when it is loaded, and falls
// back to those of 2004 (SSE3) on models newer than itself: a twentieth of the speed.
#pragma once

#include <string>

namespace meshd::kernels {

/// Once for the process, before the first product: one thread for each call, and loops that use the processor's
/// vectors. A core that the user forced by OPENBLAS_CORETYPE stays. Any thread.
void prepare_openblas();

/// The name of the loops in use ("SkylakeX"); benchmarks print it.
std::string openblas_core();

}  // namespace meshd::kernels
