// What a region of scalar ops computes, as text that is compared.
#pragma once

#include <optional>
#include <string>

#include "service/ir/program.h"

namespace meshd::ops {

/// Regions with the same text compute the same, whatever their values are called. Not for people. Nothing where the
/// region is none of scalar ops.
std::optional<std::string> region_text(const ir::Function& function, const ir::Region& region);

}  // namespace meshd::ops
