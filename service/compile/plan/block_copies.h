// Block copies: a collective that assembles each shard of the result from blocks of other shards, for reshards and halo
// exchanges. Blocks of one form share a prepared copy, so that an exchange of N devices has a few numbers for each of
// its N * N blocks.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <vector>

#include "service/compile/plan/collectives.h"
#include "service/kernels/movement/movement.h"

namespace meshd::compile {

/// Target and source of one block copy, in elements.
struct BlockPiece {
  tensor::Dims extent;
  int64_t to_offset = 0;
  tensor::Dims to_strides;
  int64_t from_offset = 0;
  tensor::Dims from_strides;
  /// In a message that holds the block alone.
  int64_t packed_offset = 0;
  tensor::Dims packed_strides;
};

/// Fills a collective, shard by shard. One thread.
class BlockCopies {
 public:
  BlockCopies(std::vector<tensor::Dims> source_dims, int64_t element_bytes);

  /// A block of the shard that is being made, and the part of a shard that it is: `block` of `source`, which is sent as
  /// that block alone; nothing: all of it.
  void add(const BlockPiece& piece, CollectiveSource source, const CollectiveBlock* block = nullptr);
  /// The shard has all its blocks; the next one begins.
  void end_shard();
  Collective finish();

 private:
  struct Copies;

  int32_t shape_of(const BlockPiece& piece);
  int32_t number_of(const CollectiveBlock& block);

  std::shared_ptr<Copies> copies_;
  Collective collective_;
  std::map<std::array<tensor::Dims, 4>, int32_t> shapes_;  ///< by extent and strides
  std::map<CollectiveBlock, int32_t> blocks_;
  // Of the piece before.
  decltype(shapes_)::iterator shape_ = shapes_.end();
  decltype(blocks_)::iterator block_ = blocks_.end();
  std::vector<CollectiveSource> sources_;
  int64_t work_items_ = 0;
};

}  // namespace meshd::compile
