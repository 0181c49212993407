// Texts that are sent in the place of StableHLO by mistake: known by how they begin. Private to parse.
#pragma once

#include <string_view>

namespace meshd::program {

/// Throws program_syntax, saying what the text is and what to send, where it begins as Python, HLO, a jaxpr, JSON, HTML
/// or LLVM IR does. Never for what begins as a module.
void refuse_other_languages(std::string_view text);

}  // namespace meshd::program
