// Special functions of two arguments as series: emitted as straight-line instructions, so that they fuse like any other
// op.
#pragma once

#include <cstdint>
#include <span>

#include "service/ops/op_def.h"

namespace meshd::ops {

/// Hurwitz zeta: sum over k >= 0 of (q + k)^-x, for operands (x, q). NaN for x < 1; infinity at poles.
uint16_t emit_zeta(const OpView& view, kernels::TileProgram& program, std::span<const uint16_t> operands);
/// Derivative of order n of digamma, for operands (n, x). NaN where n is no natural number.
uint16_t emit_polygamma(const OpView& view, kernels::TileProgram& program, std::span<const uint16_t> operands);

}  // namespace meshd::ops
