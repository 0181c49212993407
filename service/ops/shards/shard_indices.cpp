#include "service/ops/shards/shard_indices.h"

#include <algorithm>

namespace meshd::ops {

using tensor::DType;

ir::ValueId widened(Writer& writer, ir::ValueId value) {
  if (writer.type(value).dtype() == DType::kInt64) return value;
  return writer.add("stablehlo.convert", {value}, {}, ir::Type::of({DType::kInt64, writer.type(value).dims()}));
}

ir::ValueId clamped(Writer& writer, ir::ValueId value, int64_t limit) {
  const ir::Type scalar = ir::Type::of({writer.type(value).dtype(), {}});
  const ir::ValueId low = writer.splat(scalar, 0);
  const uint64_t most = std::min(static_cast<uint64_t>(limit), tensor::largest_value(scalar.dtype()));
  const ir::ValueId high = writer.splat(scalar, static_cast<double>(most));
  return widened(writer, writer.add("stablehlo.clamp", {low, value, high}));
}

ir::ValueId counted_from(Writer& writer, ir::ValueId value, ir::ValueId start) {
  return writer.add("stablehlo.subtract", {value, writer.broadcast(start, writer.type(value).dims(), {})});
}

ir::ValueId compared(Writer& writer, ir::ValueId value, int64_t with_number, const char* how) {
  const ir::ValueId number = writer.splat(writer.type(value), static_cast<double>(with_number));
  return writer.compare(value, how, number);
}

}  // namespace meshd::ops
