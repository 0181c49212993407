#include "service/ops/shards/shard_indices.h"

#include <algorithm>
#include <limits>

namespace meshd::ops {
namespace {

using tensor::DType;

ir::Type with(const ir::Type& type, DType dtype) { return ir::Type::of({dtype, type.dims()}); }

int64_t largest(DType dtype) {
  const int bits = tensor::row(dtype).bits - (tensor::is_signed_integer(dtype) ? 1 : 0);
  return bits >= 63 ? std::numeric_limits<int64_t>::max() : (int64_t{1} << bits) - 1;
}

}  // namespace

ir::ValueId widened(Writer& writer, ir::ValueId value) {
  if (writer.type(value).dtype() == DType::kInt64) return value;
  return writer.add("stablehlo.convert", {value}, {}, with(writer.type(value), DType::kInt64));
}

ir::ValueId clamped(Writer& writer, ir::ValueId value, int64_t limit) {
  const ir::Type scalar = ir::Type::of({writer.type(value).dtype(), {}});
  const ir::ValueId low = writer.splat(scalar, 0);
  const ir::ValueId high = writer.splat(scalar, static_cast<double>(std::min(limit, largest(scalar.dtype()))));
  return widened(writer, writer.add("stablehlo.clamp", {low, value, high}));
}

ir::ValueId counted_from(Writer& writer, ir::ValueId value, ir::ValueId start) {
  return writer.add("stablehlo.subtract", {value, writer.broadcast(start, writer.type(value).dims(), {})});
}

ir::ValueId compared(Writer& writer, ir::ValueId value, int64_t with_number, const char* how) {
  const ir::ValueId number = writer.splat(writer.type(value), static_cast<double>(with_number));
  return writer.add("stablehlo.compare", {value, number},
                    {{"comparison_direction", ir::Attribute{ir::EnumAttr{"comparison_direction", how}}}},
                    with(writer.type(value), DType::kBool));
}

}  // namespace meshd::ops
