// The StableHLO parser: text in, verified program out. Reads what `jax.jit(f).lower(x).as_text()` prints, pretty and
// generic, with Shardy annotations; pretty forms become the attribute names of the generic form, so later stages see
// only one form.
#pragma once

#include <string_view>

#include "service/ir/program.h"

namespace meshd::program {

/// The program in `text`, verified: every value defined before use, every op valid by its row, declared types as
/// inferred. Throws core::Error with line, column (1-based) and what was expected: program_syntax (text cannot be
/// read), invalid_program (a rule is broken), unsupported_op, unsupported_dtype, unsupported_type,
/// unsupported_attribute. Pure; any thread.
ir::ModuleRef parse_stablehlo(std::string_view text);

/// The same without the verifier: names are resolved and ops looked up, rules are not checked. For tests and tools.
ir::Module parse_unverified(std::string_view text);

/// One attribute as text, such as a sharding that is in a string. Meshes that it names are in `meshes`; those that it
/// writes out are added there. Throws as parse_unverified, with places in `text`.
ir::Attribute parse_attribute(std::string_view text, std::vector<ir::NamedMesh>& meshes);

/// Meshes as a dictionary in a string: {mesh = #sdy.mesh<["x"=2]>}.
std::vector<ir::NamedMesh> parse_meshes(std::string_view text);

}  // namespace meshd::program
