// VHLO's ops as StableHLO's: names without versions, attributes that VHLO has apart put together, and those left out
// that have the value which StableHLO means by their absence (VHLO always writes them).
//
// Example: vhlo.dot_general_v1 with lhs_contracting_dimensions = dense<1>, rhs_contracting_dimensions = dense<0>, two
// empty lists of batching dimensions and a precision_config of DEFAULTs is stablehlo.dot_general with
// dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "service/program/bytecode/ir_tables.h"

namespace meshd::program {

/// Attributes of an op by name.
using NamedIndices = std::vector<std::pair<std::string_view, AttributeIndex>>;

/// Prints the properties of a VHLO op, ` <{...}>`; nothing where none are left. Throws program_syntax.
void print_vhlo_attributes(const NamedIndices& attributes, IrTables& tables, TextWriter& out);

}  // namespace meshd::program
