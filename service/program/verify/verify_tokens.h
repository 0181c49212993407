// Verifies that the tokens of ordered effects are used: an effect with an unused token would have no order. Behaviour
// E22.
#pragma once

#include "service/ir/program.h"

namespace meshd::program {

/// `flat` is what inline_calls made. Where @main takes and returns tokens: throws invalid_program with line and column
/// when the token of an ordered callback is not used, or when @main returns a token that an effect has used.
void verify_tokens(const ir::Module& flat);

}  // namespace meshd::program
