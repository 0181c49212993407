// A halo exchange in StableHLO: rows come from neighbours by collective_permute, are put behind one another, and every
// device takes its window of them by its position. What no row is in is filled by a select.
#pragma once

#include <span>

#include "service/partition/export/device_function.h"

namespace meshd::partition {

/// Writes `op` (kHalo) and returns its result. `operands` are those of the op.
ir::ValueId write_halo(DeviceFunction& to, const LocalOp& op, std::span<const ir::ValueId> operands);

}  // namespace meshd::partition
