// Writes quantised ops in ordinary StableHLO, as the specification defines them, so that no later stage knows quantised
// types: values of such types become their storage integers, an op on them becomes dequantise, the op on floats,
// quantise.
//
// Example, with q = !quant.uniform<i8:f32, 0.5:3>:
//   %1 = add %0, %0 : tensor<4xq>   ->   %d = (convert to i32 of %0 - 3) converted to f32 * 0.5
//                                        %s = add %d, %d : tensor<4xf32>
//                                        %1 = round_nearest_even(clamp(-128, %s / 0.5 + 3, 127)) converted to i8
#pragma once

#include "service/ir/program.h"

namespace meshd::program {

/// True when a value of the module is quantised.
bool has_quantized_types(const ir::Module& module);

/// The module without quantised types; `module` is verified. Parameters remember theirs (Parameter::quantized).
ir::Module legalize_quantized(ir::Module module);

}  // namespace meshd::program
