// The front end: StableHLO text in, verified program out. It parses, converts older annotations to Shardy's, unpacks
// tuples, verifies, and writes ops on quantised types in ordinary ones, so that later stages see one form.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "service/ir/program.h"

namespace meshd::program {

/// Told before each piece of a text that takes memory out of proportion to its length, with the bytes; what it throws
/// ends the reading.
using HoldMemory = std::function<void(int64_t bytes)>;

/// The program in `text`, verified: every value defined before use, every op valid by its row, declared types as
/// inferred. Throws core::Error with line, column (1-based) and what was expected: program_syntax (text cannot be
/// read), invalid_program (a rule is broken), unsupported_op, unsupported_dtype, unsupported_type,
/// unsupported_attribute. Pure; any thread.
ir::ModuleRef parse_stablehlo(std::string_view text, const HoldMemory& hold = {});

}  // namespace meshd::program
