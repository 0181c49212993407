#include "service/compile/plan/block_copies.h"

#include <algorithm>
#include <utility>

namespace meshd::compile {

struct BlockCopies::Copies {
  struct Piece {
    BlockPiece block;
    size_t shape = 0;  // of shapes
    int64_t first_work_item = 0;
  };
  std::vector<kernels::StridedCopy> shapes;
  std::vector<std::vector<Piece>> pieces;  // by shard
  int64_t element = 1;

  void run(const CollectiveCall& call) const {
    const auto& list = pieces[static_cast<size_t>(call.shard)];
    for (size_t i = 0; i < list.size(); ++i) {
      const auto& [block, number, first_work_item] = list[i];
      const kernels::StridedCopy& shape = shapes[number];
      const int64_t begin = std::max(call.begin - first_work_item, int64_t{0});
      const int64_t end = std::min(call.end - first_work_item, shape.work_count());
      if (begin >= end) continue;
      std::byte* to = call.results[0] + block.to_offset * element;
      if (call.packed != nullptr && call.packed[i] != 0) {
        // A message is copied at once, by whoever has its first work item.
        const kernels::StridedCopy from_message(block.extent, block.to_strides, block.packed_strides, element);
        if (begin == 0) from_message.run(to, call.sources[i] + block.packed_offset * element);
        continue;
      }
      shape.run(to, call.sources[i] + block.from_offset * element, begin, end);
    }
  }
};

BlockCopies::BlockCopies(std::vector<tensor::Dims> source_dims, int64_t element_bytes)
    : copies_(std::make_shared<Copies>()) {
  copies_->element = element_bytes;
  copies_->pieces.emplace_back();
  collective_.element_bytes = element_bytes;
  collective_.source_dims = std::move(source_dims);
}

void BlockCopies::add(BlockPiece piece, CollectiveSource source) {
  std::vector<tensor::Dims> key{piece.extent, piece.to_strides, piece.from_strides};
  const auto [found, is_new] = shapes_.try_emplace(std::move(key), copies_->shapes.size());
  if (is_new)
    copies_->shapes.emplace_back(piece.extent, piece.to_strides, piece.from_strides, collective_.element_bytes);
  copies_->pieces.back().push_back({std::move(piece), found->second, work_items_});
  work_items_ += copies_->shapes[found->second].work_count();
  sources_.push_back(std::move(source));
}

void BlockCopies::end_shard() {
  collective_.sources.push_back(std::exchange(sources_, {}));
  collective_.work_items.push_back(std::exchange(work_items_, 0));
  copies_->pieces.emplace_back();
}

Collective BlockCopies::finish() {
  collective_.run = [copies = copies_](const CollectiveCall& call) { copies->run(call); };
  return std::move(collective_);
}

}  // namespace meshd::compile
