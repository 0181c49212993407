// What the bits of a job's results depend on beside its program, its arguments and its mesh: the build, the processor
// and the choices of kernels. Each job with a row records it as a line of text.
#pragma once

#include <string>

#include "service/compile/plan/plan.h"

namespace meshd::jobs {

/// Of this process. `build`: what names it. Lines differ where build, processor or choices of kernels do. Any thread.
///
/// Example: "meshd 0.9.0+28623c69a0b1; AMD EPYC 9B45; avx512; products f32 onednn, f32 small packed, f64 openblas, bf16
/// onednn, f16 converted, int8 onednn; openblas SkylakeX"
std::string environment_text(const std::string& build, const compile::PlanSettings& settings);

}  // namespace meshd::jobs
