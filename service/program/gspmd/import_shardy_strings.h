// Converts Shardy's annotations as XLA keeps them where there is no Shardy dialect (the "xla.sdy" round trip, which
// jax.export used up to 2025) back to Shardy: strings in mhlo.frontend_attributes become meshes, shardings and sharding
// rules, custom calls with targets `xla.sdy....` become the ops that they stand for.
//
//   module attributes {mhlo.frontend_attributes = {xla.sdy.meshes = "{mesh = #sdy.mesh<["x"=2]>}"}}
//   %arg0: tensor<8xf32> {mhlo.frontend_attributes = {xla.sdy.sharding = "#sdy.sharding<@mesh, [{"x"}]>"}}
//   %1 = stablehlo.custom_call @xla.sdy.GlobalToLocalShape(%arg0), %2 = call @xla.sdy.manual_computation_body(%1),
//   %3 = stablehlo.custom_call @xla.sdy.LocalToGlobalShape(%2): a manual computation
//
// GSPMD's strings beside them say the same and are dropped.
#pragma once

#include "service/ir/program.h"

namespace meshd::program {

/// True for a module with meshes in its mhlo.frontend_attributes, or with an op that has a sharding rule there.
bool has_shardy_strings(const ir::Module& module);

/// In place. Throws core::Error at the line of what is wrong: program_syntax for strings, invalid_program for calls
/// that do not belong together.
void import_shardy_strings(ir::Module& module);

}  // namespace meshd::program
