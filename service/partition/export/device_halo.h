// A halo exchange in StableHLO: rows come from neighbours by collective_permute, are put behind one another, and every
// device takes its window of them by its position. What no row stands in is filled by a select.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "service/partition/export/device_writer.h"
#include "service/partition/local_program.h"

namespace meshd::partition {

/// What the program around lends.
struct HaloSurroundings {
  DeviceWriter& writer;
  const LocalProgram& local;
  /// Which part of a dimension cut by these sub-axes of a view this device has, a scalar of 64 bits.
  std::function<ir::ValueId(int view, const std::vector<int>& sub_axes)> part;
  /// The value with all parts of a dimension behind one another.
  std::function<ir::ValueId(ir::ValueId value, int view, size_t dim, const std::vector<int>& sub_axes)> gather;
  int64_t& channel;  ///< last channel taken
};

/// Writes `op` (kHalo) and returns its result. `operands` are those of the op.
ir::ValueId write_halo(const HaloSurroundings& around, const LocalOp& op, std::span<const ir::ValueId> operands);

}  // namespace meshd::partition
