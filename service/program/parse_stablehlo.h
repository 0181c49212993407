// The front end: StableHLO text in, verified program out. It parses, converts older annotations to Shardy's, unpacks
// tuples, verifies, and writes ops on quantised types in ordinary ones, so that later stages see one form.
#pragma once

#include <string_view>

#include "service/core/hold_memory.h"
#include "service/ir/program.h"

namespace meshd::program {

/// The program in `text`, verified: every value defined before use, every op valid by its row, declared types as
/// inferred. Throws core::Error with line, column (1-based) and what was expected: program_syntax (text cannot be
/// read), invalid_program (a rule is broken), unsupported_op, unsupported_dtype, unsupported_type,
/// unsupported_attribute. `hold` is told of attributes, which take memory out of proportion to their text. Pure; any
/// thread.
ir::ModuleRef parse_stablehlo(std::string_view text, const core::HoldMemory& hold = {});

}  // namespace meshd::program
