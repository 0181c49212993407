// The verifier: the constraints of a program before any stage reads it, except names and dominance, which the parser
// checks.
#pragma once

#include "service/ir/program.h"

namespace meshd::program {

/// Throws core::Error (invalid_program with line and column) at the first broken rule: @main exists; functions are
/// named once, call each other with the right types and not in circles; ops keep the signature of their row and have
/// the types that the row infers; regions end in a return; shardings fit ranks and results; manual computations have
/// local types in their bodies. Pure; any thread.
void verify(const ir::Module& module);

/// The first op (in text order) that uses a value which is not defined above it in its region or in one around; null
/// when all are.
const ir::Op* first_undefined_use(const ir::Function& function);

/// The part of it that is about the meshes of a module (verify_meshes.cpp): all together they are over devices 0 to n -
/// 1, or below mhlo.num_partitions. Throws invalid_mesh.
void verify_meshes(const ir::Module& module);

/// The part of it that is about shardings of one function (verify_shardings.cpp).
void verify_shardings(const ir::Function& function);

}  // namespace meshd::program
