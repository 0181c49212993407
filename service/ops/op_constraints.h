// What the verifier checks of an op, as text for the reference: what the signature requires, then the labelled checks,
// which the build reads from the sources that make them (cmake/op_constraints.cpp). What a message of the verifier
// names, "slice C3", is here with its text.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "service/ops/op_def.h"

namespace meshd::ops {

/// One check. `op` is the name behind the dialect ("slice"), or "pointwise" for what all pointwise ops share; `label`
/// is that of the StableHLO specification (C1) or of its inputs (I1); "..." in `text` is what a message fills in.
struct OpConstraint {
  std::string_view op;
  std::string_view label;
  std::string_view text;
};

/// All of them, sorted by op. Any thread.
std::span<const OpConstraint> op_constraints();

/// Operands, regions and attributes that the signature requires, then the labelled checks, inputs first. Example:
/// stablehlo.slice -> "takes 1 operand", "attribute 'start_indices': ...", "C2: ...", "C3: ...". Any thread.
std::vector<std::string> constraints_of(const OpDef& def);

}  // namespace meshd::ops
