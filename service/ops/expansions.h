// Ops that other ops say: broadcast is a broadcast_in_dim, dynamic_reshape a reshape once its shape is known. Their
// rows say what they take and give as all rows do; here stands how they are written. program/specialise.h asks before
// propagation, and the stages behind it meet only what they know. Also the families that came with them.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "service/ops/op_def.h"

namespace meshd::ops {

class Writer;

/// Writes an op in other ops (writer.h) and returns the values that stand for its results; nothing when it cannot be
/// said before a shape is known that depends on data: then the op is run as its row says. With global types.
using ExpandFn = std::optional<std::vector<ir::ValueId>> (*)(const OpView&, Writer&);

struct Expansion {
  std::string_view name;
  ExpandFn expand = nullptr;
};

/// How the op of this name is said by others, or null.
ExpandFn expansion_of(std::string_view name);

/// Attribute that `localize` adds where results are cut in ways of their own (the state and the bits of
/// rng_bit_generator): each is then made by a step of its own.
inline constexpr std::string_view kResultsApart = "meshd.results_apart";
/// On such a step: the number of the result that it makes, its only one.
inline constexpr std::string_view kOnlyResult = "meshd.only_result";

/// chlo.top_k.
std::span<const OpDef> top_k_rows();
/// rng_bit_generator, rng.
std::span<const OpDef> random_rows();
/// broadcast, einsum, torch_index_select, ...
std::span<const OpDef> composed_rows();
std::span<const Expansion> composed_expansions();
/// dynamic_reshape, dynamic_iota, ...: ops whose result shape is a value.
std::span<const OpDef> dynamic_rows();
std::span<const Expansion> dynamic_expansions();
/// chlo.broadcast_*: pointwise ops over shapes that NumPy would broadcast.
std::span<const OpDef> chlo_broadcast_rows();
std::span<const Expansion> chlo_broadcast_expansions();
/// chlo.constant_like, ragged_dot, scan, ...: what is left of CHLO.
std::span<const OpDef> chlo_other_rows();
std::span<const Expansion> chlo_other_expansions();
/// send, recv.
std::span<const OpDef> channel_rows();

}  // namespace meshd::ops
