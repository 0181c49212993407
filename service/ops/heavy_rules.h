// Factor rules of windows, convolution, gather, scatter, sort, fft, random bits and linear algebra: those of Shardy,
// transforms/propagation/op_sharding_rule_registry.cc. Rows of these ops name them; rules look at types and attributes
// only.
#pragma once

#include "service/ops/op_def.h"

namespace meshd::ops {

/// A window's dimension goes with the number of windows; neighbours exchange edges.
sharding::FactorRule reduce_window_rule(const OpView& view);
sharding::FactorRule select_and_scatter_rule(const OpView& view);
sharding::FactorRule sort_rule(const OpView& view);
sharding::FactorRule fft_rule(const OpView& view);
sharding::FactorRule cholesky_rule(const OpView& view);
sharding::FactorRule triangular_solve_rule(const OpView& view);
sharding::FactorRule gather_rule(const OpView& view);
sharding::FactorRule scatter_rule(const OpView& view);
sharding::FactorRule convolution_rule(const OpView& view);
sharding::FactorRule rng_bit_generator_rule(const OpView& view);
/// Of batch_norm_inference: vectors go with the feature dimension.
sharding::FactorRule batch_norm_rule(const OpView& view);

}  // namespace meshd::ops
