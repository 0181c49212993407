// The families of op rows. Each family is one .cpp file (two for the large ones) that makes its rows; table.cpp
// concatenates them and keeps them. A new family is a line in both; a new op is a row in its family. README.md lists
// the ops that need more: those with a pretty form or a structural role.
#pragma once

#include <vector>

#include "service/ops/op_def.h"

namespace meshd::ops {

/// add, compare, select, convert, ...: one scalar operation over any shape.
std::vector<OpDef> pointwise_rows();
/// chlo.*: the pointwise ops that StableHLO leaves to its extension dialect.
std::vector<OpDef> chlo_pointwise_rows();
/// map: a region of scalar ops over any shape.
std::vector<OpDef> map_rows();
/// Constants, tokens, tuples, ids, barriers: ops that move nothing and compute nothing.
std::vector<OpDef> structural_rows();
/// infeed, outfeed.
std::vector<OpDef> feed_rows();
/// while, case, if, calls, returns, composites.
std::vector<OpDef> control_rows();
/// sdy.*: sharding annotations.
std::vector<OpDef> sharding_rows();
/// sdy.all_gather, ...: Shardy's own collectives, and data_flow_edge.
std::vector<OpDef> sdy_collective_rows();
/// all_reduce, all_gather, ...: functions of a group of devices.
std::vector<OpDef> collective_rows();
/// transpose, slice, pad, concatenate, iota, ...: elements moved, not computed.
std::vector<OpDef> movement_rows();
/// dot_general, dot.
std::vector<OpDef> dot_rows();
/// reduce.
std::vector<OpDef> reduce_rows();
/// reduce_window.
std::vector<OpDef> reduce_window_rows();
/// select_and_scatter.
std::vector<OpDef> select_and_scatter_rows();
/// convolution.
std::vector<OpDef> convolution_rows();
/// batch_norm_training, batch_norm_inference, batch_norm_grad.
std::vector<OpDef> batch_norm_rows();
/// gather, scatter.
std::vector<OpDef> gather_scatter_rows();
/// sort.
std::vector<OpDef> sort_rows();
/// fft.
std::vector<OpDef> fft_rows();
/// cholesky, triangular_solve.
std::vector<OpDef> linalg_rows();
/// stablehlo.custom_call; its targets are in custom_calls.h.
std::vector<OpDef> custom_call_rows();
/// chlo.top_k.
std::vector<OpDef> top_k_rows();
/// rng_bit_generator, rng.
std::vector<OpDef> random_rows();
/// broadcast, einsum, torch_index_select, ...: ops with a decomposition only.
std::vector<OpDef> composed_rows();
/// dynamic_reshape, dynamic_iota, ...: ops whose result shape is a value.
std::vector<OpDef> dynamic_rows();
/// chlo.broadcast_*: pointwise ops over shapes that NumPy would broadcast.
std::vector<OpDef> chlo_broadcast_rows();
/// chlo.constant_like, ragged_dot, scan, ...: what is left of CHLO.
std::vector<OpDef> chlo_other_rows();
/// send, recv.
std::vector<OpDef> channel_rows();

}  // namespace meshd::ops
