// Converts GSPMD annotations to Shardy (XLA: stablehlo-import-shardings), so that later stages see only Shardy:
// mhlo.sharding strings become sdy.sharding, @Sharding calls constraints or groups, @SPMDFullToShardShape ...
// @SPMDShardToFullShape around a call a manual computation.
#pragma once

#include "service/ir/program.h"

namespace meshd::program {

/// True when a function's argument or result or an op carries an mhlo.sharding string.
bool uses_gspmd(const ir::Module& module);

/// The same program with Shardy's annotations, over at most 16 generated meshes (@mesh, @mesh_0, ...; axes
/// _axis_0, ...), in place of the strings. Throws core::Error at the line of what Shardy cannot express:
/// invalid_program for strings that are wrong, unsupported_attribute for lists of devices or manual regions of other
/// shapes than JAX prints.
ir::Module import_gspmd(ir::Module module);

}  // namespace meshd::program
