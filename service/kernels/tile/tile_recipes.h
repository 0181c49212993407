// Functions that generated code computes by itself: the recipes of float_recipes.h as steps. Private to this folder.
#pragma once

#include <vector>

#include "service/kernels/tile/tile_program.h"
#include "service/kernels/tile/tile_steps.h"

namespace meshd::kernels {

/// Null where there is none. Any thread.
const Recipe* find_recipe(ScalarOp op);

/// A tile program in which every recipe is a run of steps of its own: `program` has their registers and constants
/// behind the given one's, and an instruction for each of `steps`.
struct ExpandedProgram {
  TileProgram program;
  std::vector<TileStep> steps;
};

/// Any thread. Example: y = exp(x) * 2 has two instructions and 23 steps.
ExpandedProgram expand_recipes(const TileProgram& program, CpuLevel level);

}  // namespace meshd::kernels
