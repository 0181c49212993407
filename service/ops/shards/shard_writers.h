// Combine functions and per-shard lowerings of rows (OpDef::combine, OpDef::on_shard). Private to ops.
#pragma once

#include <vector>

#include "service/ops/shards/shard_rules.h"

namespace meshd::ops {

/// Products that are summed (dot_general, convolution). Sums of booleans are "or".
std::optional<Combine> combine_sums(const OpView& view);
/// Windows of one index in sharded dims come from the shard that has the index: bits are or-ed over shards.
std::optional<Combine> combine_gather(const OpView& view);
/// Sharded updates: each shard combines its own.
std::optional<Combine> combine_scatter(const OpView& view);
/// A gather of what the shard has, zeros elsewhere.
std::optional<std::vector<ir::ValueId>> gather_on_shard(const OpView& global, const OpView& local,
                                                        const std::vector<ir::ValueId>& operands,
                                                        const ShardStarts& starts, Writer& writer);
/// A scatter whose indices are counted from where the shard begins; those outside fall out by themselves.
std::optional<std::vector<ir::ValueId>> scatter_on_shard(const OpView& global, const OpView& local,
                                                         const std::vector<ir::ValueId>& operands,
                                                         const ShardStarts& starts, Writer& writer);
/// The update padded and shifted to its rows on the shard, selected by a mask.
std::optional<std::vector<ir::ValueId>> dynamic_update_slice_on_shard(const OpView& global, const OpView& local,
                                                                      const std::vector<ir::ValueId>& operands,
                                                                      const ShardStarts& starts, Writer& writer);

}  // namespace meshd::ops
