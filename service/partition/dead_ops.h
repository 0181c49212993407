// Dead code elimination of local programs.
#pragma once

#include "service/partition/local_program.h"

namespace meshd::partition {

/// Removes ops without effects whose results nobody reads, and what only they read. Values keep their numbers.
void drop_dead_ops(LocalProgram& program);

}  // namespace meshd::partition
