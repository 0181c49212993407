// The labelled constraints of ops, read by the build from where they are checked (cmake/op_constraints.cpp). What a
// message of the verifier names, "slice C3", is here with its text.
#pragma once

#include <span>
#include <string_view>

namespace meshd::program {

/// One check. `op` is the name behind the dialect ("slice"), or "pointwise" for what all pointwise ops share; `label`
/// is that of the StableHLO specification (C1) or of its inputs (I1); "..." in `text` is what a message fills in.
struct OpConstraint {
  std::string_view op;
  std::string_view label;
  std::string_view text;
};

/// All of them, sorted by op. Any thread.
std::span<const OpConstraint> op_constraints();

}  // namespace meshd::program
