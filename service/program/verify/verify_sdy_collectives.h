// Verifies Shardy's collectives: operand, axes and result must fit. Shardy: dialect/sdy/ir/verifiers.cc.
#pragma once

#include <map>

#include "service/ir/program.h"

namespace meshd::program {

/// The shardings of values that the text has annotated so far.
using KnownShardings = std::map<ir::ValueId, sharding::TensorSharding>;

/// Throws invalid_program naming the dimension, the axes and both shardings when `op` is one of them and they do not
/// fit; does nothing for other ops. An operand without a sharding is replicated.
void verify_sdy_collective(const ir::Function& function, const ir::Op& op, const KnownShardings& known);

}  // namespace meshd::program
