// Which kernels this process chooses, as a text: results of other choices may have other last bits.
#pragma once

#include <string>

namespace meshd::kernels {

/// "avx512; products f32 onednn, f32 small packed, ...; openblas SkylakeX": the level of our own loops, what multiplies
/// matrices of each kind, and OpenBLAS's loops. Equal in all processes of one build on one model of processor, unless
/// their environment masks instructions. Any thread.
std::string kernel_choices();

}  // namespace meshd::kernels
