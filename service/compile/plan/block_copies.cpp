#include "service/compile/plan/block_copies.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace meshd::compile {

struct BlockCopies::Copies {
  struct Shape {
    kernels::StridedCopy from_shard;
    kernels::StridedCopy from_message;
  };
  struct Piece {
    int64_t to_offset = 0;
    int64_t from_offset = 0;
    int64_t packed_offset = 0;
    int64_t first_work_item = 0;
    int32_t shape = 0;  // of shapes
  };
  std::vector<Shape> shapes;
  std::vector<std::vector<Piece>> pieces;  // by shard
  int64_t element = 1;

  void run(const CollectiveCall& call) const {
    const auto& list = pieces[static_cast<size_t>(call.shard)];
    for (size_t i = 0; i < list.size(); ++i) {
      const Piece& piece = list[i];
      const Shape& shape = shapes[static_cast<size_t>(piece.shape)];
      const int64_t begin = std::max(call.begin - piece.first_work_item, int64_t{0});
      const int64_t end = std::min(call.end - piece.first_work_item, shape.from_shard.work_count());
      if (begin >= end) continue;
      std::byte* to = call.results[0] + piece.to_offset * element;
      if (call.packed != nullptr && call.packed[i] != 0) {
        // A message is copied at once, by whoever has its first work item.
        if (begin == 0) shape.from_message.run(to, call.sources[i] + piece.packed_offset * element);
        continue;
      }
      shape.from_shard.run(to, call.sources[i] + piece.from_offset * element, begin, end);
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

void BlockCopies::add(const BlockPiece& piece, CollectiveSource source, const CollectiveBlock* block) {
  const int32_t shape = shape_of(piece);
  copies_->pieces.back().push_back({piece.to_offset, piece.from_offset, piece.packed_offset, work_items_, shape});
  work_items_ += copies_->shapes[static_cast<size_t>(shape)].from_shard.work_count();
  if (block != nullptr) source.block = number_of(*block);
  sources_.push_back(source);
}

// Most pieces have the form of the one before them.
int32_t BlockCopies::shape_of(const BlockPiece& piece) {
  if (shape_ != shapes_.end()) {
    const auto& [extent, to, from, packed] = shape_->first;
    const bool is_same = extent == piece.extent && to == piece.to_strides && from == piece.from_strides &&
                         packed == piece.packed_strides;
    if (is_same) return shape_->second;
  }
  bool is_new = false;
  std::tie(shape_, is_new) =
      shapes_.try_emplace({piece.extent, piece.to_strides, piece.from_strides, piece.packed_strides},
                          static_cast<int32_t>(copies_->shapes.size()));
  if (is_new) {
    const auto copy = [&](const tensor::Dims& strides) {
      return kernels::StridedCopy(piece.extent, piece.to_strides, strides, collective_.element_bytes);
    };
    copies_->shapes.push_back({copy(piece.from_strides), copy(piece.packed_strides)});
  }
  return shape_->second;
}

int32_t BlockCopies::number_of(const CollectiveBlock& block) {
  if (block_ != blocks_.end() && block_->first == block) return block_->second;
  bool is_new = false;
  std::tie(block_, is_new) = blocks_.try_emplace(block, static_cast<int32_t>(collective_.blocks.size()));
  if (is_new) collective_.blocks.push_back(block);
  return block_->second;
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
