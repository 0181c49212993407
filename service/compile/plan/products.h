// What is done to matrix products of a local program before steps are made of it.
#pragma once

#include <optional>

#include "service/compile/plan/plan.h"

namespace meshd::compile {

/// The program with transposes that became part of products, and with products that do not change in front of their
/// loops; nothing where it would be the same program. A product of the loops of our own has the same bits however its
/// matrices lie; libraries may add in another order. Any thread.
std::optional<partition::LocalProgram> rewrite_products(const partition::LocalProgram& program,
                                                        const PlanSettings& settings);

}  // namespace meshd::compile
