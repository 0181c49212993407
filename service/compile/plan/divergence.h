// Pass 1 of the plan builder: over which sub-axes values vary behind control flow.
#pragma once

#include <vector>

#include "service/partition/local_program.h"

namespace meshd::compile {

/// The sub-axes that each value varies over after divergence analysis: where a condition or index varies, so does what
/// its blocks assign.
std::vector<sharding::SubAxisSet> analyze_divergence(const partition::LocalProgram& program);

}  // namespace meshd::compile
