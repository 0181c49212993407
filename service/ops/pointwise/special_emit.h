// Functions of two arguments that take several instructions: series, and powers. Emitted as straight-line instructions,
// so that they fuse like any other op.
#pragma once

#include <cstdint>
#include <span>

#include "service/ops/op_def.h"

namespace meshd::ops {

/// Hurwitz zeta: sum over k >= 0 of (q + k)^-x, for operands (x, q). NaN for x < 1; infinity at poles.
uint16_t emit_zeta(const OpView& view, kernels::TileProgram& program, std::span<const uint16_t> operands);
/// Derivative of order n of digamma, for operands (n, x). NaN where n is no natural number.
uint16_t emit_polygamma(const OpView& view, kernels::TileProgram& program, std::span<const uint16_t> operands);
/// The first operand to the power of the second. A constant exponent of 0.5, 1.5, 2 or 3, of f32 or f64, is strength
/// reduced to products and a square root, as XLA's AlgebraicSimplifier does with whole exponents: at most one unit in
/// the last place more than the general function.
uint16_t emit_power(const OpView& view, kernels::TileProgram& program, std::span<const uint16_t> operands);

}  // namespace meshd::ops
