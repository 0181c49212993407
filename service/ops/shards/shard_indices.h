// Global indices as local ones of a shard, for per-shard lowerings (shard_rules.h).
#pragma once

#include <cstdint>

#include "service/ops/rewrites/writer.h"

namespace meshd::ops {

/// Of 64 bits.
ir::ValueId widened(Writer& writer, ir::ValueId value);
/// In [0, limit] and of 64 bits; clamped in its own type first, so that no large number becomes a negative one.
ir::ValueId clamped(Writer& writer, ir::ValueId value, int64_t limit);
/// Each element less `start`, a scalar.
ir::ValueId counted_from(Writer& writer, ir::ValueId value, ir::ValueId start);
/// Each element compared with a number: "GE", "LT", ...
ir::ValueId compared(Writer& writer, ir::ValueId value, int64_t with_number, const char* how);

}  // namespace meshd::ops
