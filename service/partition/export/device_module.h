// The local program as StableHLO again: @main of the same global arguments around one sdy.manual_computation over all
// axes, whose body is what every device runs. For readers and for other compilers.
//
// Steps of device_module():
//   1. Choose the mesh of the first view; views over other meshes are gathered and sliced at the edges.
//   2. Write the ops of the local program in their order. A step that is one op of the dialect is written in place; any
//      other (device_steps.h) becomes a composite whose decomposition is a private function.
//   3. Pad uneven arguments before the manual computation, slice uneven results behind it.
//
// Example: README.md, "The text of :partition".
#pragma once

#include "service/ir/program.h"
#include "service/partition/local_program.h"

namespace meshd::partition {

/// A module that parses and runs again with the same results. Effects that happen once happen on partition 0. Throws
/// unsupported_partition with a line for what StableHLO cannot express.
ir::Module device_module(const LocalProgram& local);

}  // namespace meshd::partition
