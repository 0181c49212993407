// A digest of a plan: equal where ranks would execute the same steps on the same shards.
#pragma once

#include <string>

#include "service/compile/plan/plan.h"

namespace meshd::hosts {

/// Pure.
std::string plan_digest(const compile::Plan& plan);

}  // namespace meshd::hosts
