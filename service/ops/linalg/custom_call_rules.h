// Factor rules of the custom-call targets that decompose matrices, as Shardy has them.
#pragma once

#include "service/ops/op_def.h"

namespace meshd::ops {

/// Eigh: batch dimensions, and both matrix dimensions to the vectors, the last one also to the values.
sharding::FactorRule eigh_rule(const OpView& view);
/// Qr: batch dimensions, and both matrix dimensions to the first result.
sharding::FactorRule qr_rule(const OpView& view);
/// ProductOfElementaryHouseholderReflectors: batch dimensions, and both matrix dimensions of the first operand.
sharding::FactorRule householder_rule(const OpView& view);

}  // namespace meshd::ops
