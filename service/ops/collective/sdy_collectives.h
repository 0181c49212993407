// Shardy's own collectives and data_flow_edge, as its passes print them: on global values each is a reshard of its
// operand, whose axes are given redundantly (the result's sharding is attribute `sharding`, `out_sharding` in text).
// Their rows are sdy_collective_rows() of families.h; here are data_flow_edges that inline_calls writes.
#pragma once

#include <cstdint>
#include <string_view>

#include "service/ops/op_def.h"

namespace meshd::ops {

// Edges of called functions in a program whose calls are copied in: data_flow_edges that only give a value another
// name, so that what the text tells apart stays apart. inline_calls writes one where a call is given one value twice,
// where a function returns an argument of its own, and where it returns one value twice; propagation takes them out
// again.
//
// Example, f(%a, %b) called as f(%x, %x): inside, %a is %x and %b is `sdy.data_flow_edge %x {meshd.call_edge = 1}`.

/// Attribute of such an op: the number of the argument that it is, or kReturnedEdge.
inline constexpr std::string_view kCallEdge = "meshd.call_edge";
inline constexpr int64_t kReturnedEdge = -1;

/// The op has that attribute, and its result is its operand.
bool is_call_edge(const ir::Op& op);
/// Users of every edge use its operand; the edges are gone.
void drop_call_edges(ir::Module& module);

}  // namespace meshd::ops
