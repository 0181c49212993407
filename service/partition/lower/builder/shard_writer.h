// Per-shard lowering with ops::Writer: values have local types and differ between positions, as inside a manual
// computation over all axes. Turns the result of a row's per-shard lowering (shard_rules.h) into local ops.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "service/ops/rewrites/writer.h"
#include "service/partition/lower/builder/builder.h"

namespace meshd::partition {

/// For one op of the text. Ops go to the builder's current block when a value leaves. One thread.
class ShardWriter {
 public:
  ShardWriter(Builder& builder, const ir::Op& source);

  [[nodiscard]] ops::Writer& writer() { return writer_; }
  /// The shard of a local value.
  ir::ValueId enter(LocalId id);
  /// Which part of a dimension sharded by `sub_axes` of a view the shard has, a scalar of i64.
  ir::ValueId part(int view, const std::vector<int>& sub_axes);
  /// The first row that the shard of a value of this type has along a dimension, a scalar of i64; ir::kNoValue where it
  /// is not sharded.
  ir::ValueId start(const ShardedType& type, size_t dim);
  /// True on the shards whose coordinates along `sub_axes` are 0, a scalar.
  ir::ValueId is_first(int view, sharding::SubAxisSet sub_axes);
  /// `value` as a shard of a value of type `logical` in `layout` that varies over `outer` too.
  LocalId leave(ir::ValueId value, const tensor::TensorType& logical, const ShardLayout& layout,
                sharding::SubAxisSet outer, const std::string& name);

 private:
  void flush();
  LocalId local(ir::ValueId id) const { return known_.at(id); }
  LocalId seen_as(LocalId id, const tensor::TensorType& logical, const ShardLayout& layout, sharding::SubAxisSet outer,
                  const std::string& name);

  Builder& builder_;
  const ir::Op& source_;
  std::vector<ir::Op> written_;
  ops::Writer writer_;
  std::map<ir::ValueId, LocalId> known_;
  std::map<std::pair<int, std::vector<int>>, ir::ValueId> parts_;
  int view_ = 0;
};

}  // namespace meshd::partition
