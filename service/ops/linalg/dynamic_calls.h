// Custom calls whose shapes are values, as JAX prints them of functions with symbolic shapes: those that name operands
// as the shapes of their results, and dynamic forms of ops that StableHLO has with static shapes alone.
//
//   custom_call @lapack_spotrf_ffi(%x, %s, %t) {indices_of_shape_operands = dense<[1, 2]>}, %s = [3, 4, 4], %t = [3]
//     ->  custom_call @lapack_spotrf_ffi(%x) : (tensor<3x4x4xf32>) -> (tensor<3x4x4xf32>, tensor<3xi32>)
//   custom_call @stablehlo.dynamic_top_k(%x, %k)                          ->  chlo.top_k(%x, k = ...)
//   custom_call @stablehlo.dynamic_rng_bit_generator(%state, %shape)      ->  rng_bit_generator
//   custom_call @stablehlo.dynamic_reduce_window(%x, %init, %window, %strides, %base, %dilation, %padding)
//     ->  reduce_window
//   custom_call @stablehlo.dynamic_approx_top_k(%x, %i, %init, %none, %k, %s, %t)  ->  custom_call @ApproxTopK
#pragma once

#include <optional>
#include <vector>

#include "service/ops/op_def.h"

namespace meshd::ops {

/// Whether the call names operands that are shapes of its results.
bool has_shape_operands(const OpView& view);
/// The call without them. Here and below: nothing where a shape is not known before the program runs; throws
/// invalid_program where operands are not those that the target has.
std::optional<std::vector<ir::ValueId>> expand_shape_operands(const OpView& view, Writer& writer);

std::optional<std::vector<ir::ValueId>> expand_dynamic_approx_top_k(const OpView& view, Writer& writer);
std::optional<std::vector<ir::ValueId>> expand_dynamic_reduce_window(const OpView& view, Writer& writer);
std::optional<std::vector<ir::ValueId>> expand_dynamic_random_bits(const OpView& view, Writer& writer);
std::optional<std::vector<ir::ValueId>> expand_dynamic_top_k(const OpView& view, Writer& writer);

}  // namespace meshd::ops
