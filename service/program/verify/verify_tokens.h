// Ordered effects must give their token on: an effect whose token goes nowhere could not be kept in its place.
// Behaviour E22.
#pragma once

#include "service/ir/program.h"

namespace meshd::program {

/// `flat` is what inline_calls made. Where @main takes and gives tokens: throws invalid_program with line and column
/// when the token of an ordered callback is not used, or when @main gives back a token that an effect has used up.
void verify_tokens(const ir::Module& flat);

}  // namespace meshd::program
