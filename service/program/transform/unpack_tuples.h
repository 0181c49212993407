// Flattens the tuples among arguments and results of @main into their leaves, before the program is verified. Pure.
// Threads: any.
#pragma once

#include "service/ir/program.h"

namespace meshd::program {

/// Rewrites:
/// - An argument or result of @main whose type is a tuple becomes one for each leaf, from left to right:
///   @main(tuple<tensor<2xf32>, tuple<tensor<i32>, !stablehlo.token>>) takes tensor<2xf32>, tensor<i32> and a token.
///   Numbers of results in tf.aliasing_output follow; jax.result_info gets "[1][0]" behind it; a tuple of shardings in
///   mhlo.sharding is distributed to the leaves.
/// - A custom call that gives one tuple (in texts before 2023) returns its leaves.
/// Throws Error invalid_program when the shardings are not as many as the leaves, or a tuple has an sdy.sharding;
/// unsupported_attribute when tf.aliasing_output is on a tuple or names one.
ir::Module unpack_tuples(ir::Module module);

}  // namespace meshd::program
