// Memory for the registers of a fused loop while it runs. Threads keep some, so that small loops take none from the
// heap. Private to this folder.
#pragma once

#include <memory>
#include <memory_resource>

namespace meshd::kernels {

/// Lives as long as a loop runs. One thread at a time, as the loop: one that waits at a checkpoint may go on elsewhere.
class LoopMemory {
 public:
  LoopMemory();
  ~LoopMemory();
  LoopMemory(const LoopMemory&) = delete;
  LoopMemory& operator=(const LoopMemory&) = delete;

  /// What is allocated of it is freed with it.
  [[nodiscard]] std::pmr::memory_resource* resource() { return &resource_; }

 private:
  struct Block;
  static std::unique_ptr<Block>& spare();

  std::unique_ptr<Block> block_;
  std::pmr::monotonic_buffer_resource resource_;
};

}  // namespace meshd::kernels
