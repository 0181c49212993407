// Whether a plan's devices need each other's memory.
#pragma once

#include "service/compile/plan/plan.h"

namespace meshd::compile {

/// Some step or result of the plan uses a shard of a slot on a device that holds another one. Collectives fetch what
/// they read, and every process has the constants: they do not count. Pure; needs tables, maps, slots and steps.
bool reads_other_shards(const Plan& plan);

}  // namespace meshd::compile
