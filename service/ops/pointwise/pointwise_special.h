// Rows of the pointwise ops that need more than a line: attributes, operands of different types, bodies that depend on
// types.
#pragma once

#include "service/ops/op_def.h"

namespace meshd::ops {

OpDef atan2_row();
OpDef bitcast_convert_row();
OpDef clamp_row();
OpDef compare_row();
OpDef complex_row();
OpDef convert_row();
OpDef imag_row();
OpDef maximum_row();
OpDef minimum_row();
OpDef power_row();
OpDef real_row();
OpDef reduce_precision_row();
OpDef select_row();
OpDef uniform_dequantize_row();
OpDef uniform_quantize_row();

}  // namespace meshd::ops
