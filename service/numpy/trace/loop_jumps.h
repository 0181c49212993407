// break and continue of loops on arrays: the body of a loop rewritten without them, as a while_loop that carries flags.
#pragma once

#include <string>

#include "service/numpy/syntax/syntax.h"

namespace meshd::numpy {

/// Whether a block has a break or continue of the loop that it is the body of: at its top or below ifs.
bool has_jumps(const Block& body);

/// A loop's body without its jumps.
struct JumpFreeBody {
  Block body;
  std::string broken;  ///< the name of the flag that a break sets: no name of a program
};

/// break sets both flags, continue the second, and what follows an if that may set one runs where the second is not
/// set.
///
/// Example:  if c: break       skipped = False
///           x = x + 1    ->   if c: broken = True; skipped = True
///                             if skipped: pass
///                             else: x = x + 1
JumpFreeBody without_jumps(const Statement& loop);

}  // namespace meshd::numpy
