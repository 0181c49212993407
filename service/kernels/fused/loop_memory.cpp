#include "service/kernels/fused/loop_memory.h"

#include <array>
#include <cstddef>
#include <utility>

namespace meshd::kernels {

/// Enough for the registers of most loops (tile_lanes), and of several over the same rows.
struct alignas(64) LoopMemory::Block {
  std::array<std::byte, size_t{128} * 1024> bytes;
};

// Of this thread. Not while a loop has it: another loop may run on the thread while one waits at a checkpoint.
std::unique_ptr<LoopMemory::Block>& LoopMemory::spare() {
  thread_local std::unique_ptr<Block> block;
  return block;
}

LoopMemory::LoopMemory()
    : block_(spare() != nullptr ? std::move(spare()) : std::make_unique_for_overwrite<Block>()),
      resource_(block_->bytes.data(), block_->bytes.size(), std::pmr::new_delete_resource()) {}

LoopMemory::~LoopMemory() {
  if (spare() == nullptr) spare() = std::move(block_);
}

}  // namespace meshd::kernels
