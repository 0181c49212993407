// Argument numbers of a call: which are static, which donated, and the numbers without these. Pure functions. JAX:
// rebase_donate_argnums and donation_vector in jax/_src/api_util.py; behaviours P9 to P13.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace meshd::jobs::call_plan {

/// "is only 1 positional argument" or "are only 3 positional arguments", which must be passed positionally (S29).
std::string only_positional(int64_t count);

/// Positions of donated arguments among those that are not static: sorted, each once, shifted down by the static ones
/// before them. Throws invalid_argument when the two lists intersect or name arguments that are not there.
std::vector<int64_t> rebase_donation(std::vector<int64_t> donated, const std::vector<int64_t>& statics, int64_t count);

/// One entry for each leaf: true for all leaves of donated positional arguments, false for those of keywords.
/// `leaves`: how many leaves each positional argument has.
std::vector<bool> donation_vector(const std::vector<int64_t>& donated, const std::vector<int64_t>& leaves,
                                  int64_t keyword_leaves);

}  // namespace meshd::jobs::call_plan
