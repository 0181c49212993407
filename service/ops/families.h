// The families of op rows. Each family is one .cpp file (two for the large ones) that holds its rows in a static table;
// table.cpp concatenates them. A new family is a line in both; a new op is a row in its family. README.md lists the ops
// that need more: those with a pretty form or a structural role.
#pragma once

#include <span>

#include "service/ops/op_def.h"

namespace meshd::ops {

/// add, compare, select, convert, ...: one scalar operation over any shape.
std::span<const OpDef> pointwise_rows();
/// chlo.*: the pointwise ops that StableHLO leaves to its extension dialect.
std::span<const OpDef> chlo_pointwise_rows();
/// map: a region of scalar ops over any shape.
std::span<const OpDef> map_rows();
/// Constants, tokens, tuples, ids, barriers: ops that move nothing and compute nothing.
std::span<const OpDef> structural_rows();
/// infeed, outfeed.
std::span<const OpDef> feed_rows();
/// while, case, if, calls, returns, composites.
std::span<const OpDef> control_rows();
/// sdy.*: sharding annotations.
std::span<const OpDef> sharding_rows();
/// all_reduce, all_gather, ...: functions of a group of devices.
std::span<const OpDef> collective_rows();
/// transpose, slice, pad, concatenate, iota, ...: elements moved, not computed.
std::span<const OpDef> movement_rows();
/// dot_general, dot.
std::span<const OpDef> dot_rows();
/// reduce.
std::span<const OpDef> reduce_rows();
/// reduce_window.
std::span<const OpDef> reduce_window_rows();
/// select_and_scatter.
std::span<const OpDef> select_and_scatter_rows();
/// convolution.
std::span<const OpDef> convolution_rows();
/// batch_norm_training, batch_norm_inference, batch_norm_grad.
std::span<const OpDef> batch_norm_rows();
/// gather, scatter.
std::span<const OpDef> gather_scatter_rows();
/// sort.
std::span<const OpDef> sort_rows();
/// fft.
std::span<const OpDef> fft_rows();
/// cholesky, triangular_solve.
std::span<const OpDef> linalg_rows();
/// stablehlo.custom_call; its targets are in custom_calls.h.
std::span<const OpDef> custom_call_rows();
/// chlo.top_k.
std::span<const OpDef> top_k_rows();
/// rng_bit_generator, rng.
std::span<const OpDef> random_rows();
/// broadcast, einsum, torch_index_select, ...: ops with a decomposition only.
std::span<const OpDef> composed_rows();
/// dynamic_reshape, dynamic_iota, ...: ops whose result shape is a value.
std::span<const OpDef> dynamic_rows();
/// chlo.broadcast_*: pointwise ops over shapes that NumPy would broadcast.
std::span<const OpDef> chlo_broadcast_rows();
/// chlo.constant_like, ragged_dot, scan, ...: what is left of CHLO.
std::span<const OpDef> chlo_other_rows();
/// send, recv.
std::span<const OpDef> channel_rows();

}  // namespace meshd::ops
