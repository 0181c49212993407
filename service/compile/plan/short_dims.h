// What is done to sums over arrays of short rows (coordinates of points) before steps are made of a local program.
#pragma once

#include <optional>

#include "service/compile/plan/plan.h"

namespace meshd::compile {

/// The program with such sums element by element of the short last dim; nothing where there are none. They are added as
/// floats, as XLA adds them, or in another order: last bits may be others. Any thread.
std::optional<partition::LocalProgram> split_short_dims(const partition::LocalProgram& program,
                                                        const PlanSettings& settings);

}  // namespace meshd::compile
