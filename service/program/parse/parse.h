// The StableHLO parser: text in, program out, not verified (parse_stablehlo.h verifies). Reads what
// `jax.jit(f).lower(x).as_text()` prints, pretty and generic, with Shardy annotations; pretty forms become the
// attribute names of the generic form, so later stages see only one form.
#pragma once

#include <string_view>

#include "service/core/hold_memory.h"
#include "service/ir/program.h"

namespace meshd::program {

/// The program in `text`: names are resolved and ops looked up, rules are not checked. Throws core::Error with line,
/// column (1-based) and what was expected. `hold`: as parse_stablehlo has it. Pure; any thread.
ir::Module parse_unverified(std::string_view text, const core::HoldMemory& hold = {});

/// One attribute as text, such as a sharding that is in a string. Meshes that it names are in `meshes`; those that it
/// writes out are added there. Throws as parse_unverified, with places in `text`.
ir::Attribute parse_attribute(std::string_view text, std::vector<ir::NamedMesh>& meshes);

/// Meshes as a dictionary in a string: {mesh = #sdy.mesh<["x"=2]>}.
std::vector<ir::NamedMesh> parse_meshes(std::string_view text);

}  // namespace meshd::program
