#include "service/kernels/elementwise/lanes/lane_loop.h"

#include <array>
#include <cstring>

#include "service/kernels/elementwise/lanes/repeat_elements.h"

namespace meshd::kernels {
void run_padded_block(ScalarKernel kernel, std::initializer_list<size_t> operand_bytes, size_t result_bytes,
                      const std::byte* const* operands, std::byte* result, int64_t begin, int64_t rest) {
  constexpr size_t kMaxElementBytes = 16;
  constexpr size_t kBlockBytes = static_cast<size_t>(kBlockLanes) * kMaxElementBytes;
  alignas(64) std::array<std::byte, 4 * kBlockBytes> memory;
  std::array<const std::byte*, 3> padded{};
  size_t operand = 0;
  for (const size_t bytes : operand_bytes) {
    std::byte* const lanes = memory.data() + operand * kBlockBytes;
    const size_t used = static_cast<size_t>(rest) * bytes;
    std::memcpy(lanes, operands[operand] + static_cast<size_t>(begin) * bytes, used);
    repeat_element(lanes + used - bytes, static_cast<int64_t>(bytes), lanes + used, kBlockLanes - rest);
    padded[operand++] = lanes;
  }
  std::byte* const results = memory.data() + 3 * kBlockBytes;
  kernel(padded.data(), results, kBlockLanes);
  std::memcpy(result + static_cast<size_t>(begin) * result_bytes, results, static_cast<size_t>(rest) * result_bytes);
}

}  // namespace meshd::kernels
