// Builds ops of StableHLO on local types: what device_module is made with. It has no shardings.
#pragma once

#include <cstdint>
#include <string>

#include "service/ir/op_builder.h"

namespace meshd::partition {

/// The builder of a device's program, with the ops that halo exchanges and uneven shards need.
class DeviceWriter : public ir::OpBuilder {
 public:
  explicit DeviceWriter(ir::Function& function);

  ir::ValueId binary(const std::string& name, ir::ValueId left, ir::ValueId right);
  ir::ValueId broadcast(ir::ValueId scalar, const tensor::Dims& dims);
  /// Rows [0, limit) of one dimension.
  ir::ValueId sliced(ir::ValueId value, size_t dim, int64_t limit);
  /// Zeros behind the rows of the dimensions, up to `dims`.
  ir::ValueId pad_to(ir::ValueId value, const tensor::Dims& dims);
  /// A block of `size` rows of one dimension from row `start` (a scalar of 64 bits).
  ir::ValueId block(ir::ValueId value, size_t dim, ir::ValueId start, int64_t size);
  ir::ValueId reshape(ir::ValueId value, const tensor::Dims& dims);
};

}  // namespace meshd::partition
