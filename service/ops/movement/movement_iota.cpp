// The kernel of an unfused iota; loop fusion generates it in place.
#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "service/core/error.h"
#include "service/kernels/elementwise/scalar_op.h"
#include "service/ops/checks.h"
#include "service/ops/kernel_interface.h"
#include "service/ops/movement/movement.h"

namespace meshd::ops {
namespace {

constexpr int64_t kChunk = 1024;
constexpr int64_t kWorkItemElements = 64 * kChunk;

}  // namespace

PreparedKernel prepare_iota(const OpView& local) {
  const ir::Type& to = local.results[0];
  const auto dim = static_cast<size_t>(iota_dim(local));
  const kernels::ScalarKernel convert =
      kernels::find_scalar_kernel(kernels::ScalarOp::kConvert, tensor::DType::kInt64, to.dtype());
  if (convert == nullptr)
    reject(local, "unsupported_dtype", fmt::format("iota of {} is not supported", ir::to_string(to)));
  const int64_t count = tensor::element_count(to.dims());
  const int64_t size = to.dims()[dim];
  const int64_t repeat = tensor::row_major_strides(to.dims())[dim];  // elements that share an index
  const int64_t elem = tensor::size_bytes(to.dtype());
  PreparedKernel kernel;
  kernel.work_count = core::ceil_div(count, kWorkItemElements);
  kernel.bytes = static_cast<double>(count * elem);
  kernel.uses_offsets = true;
  kernel.run = [=](const KernelCall& call) {
    const int64_t start = call.result_offsets != nullptr ? call.result_offsets[dim] : 0;
    std::array<int64_t, kChunk> indices;
    const int64_t stop = std::min(count, call.end * kWorkItemElements);
    for (int64_t at = call.begin * kWorkItemElements; at < stop; at += kChunk) {
      const int64_t chunk = std::min(kChunk, stop - at);
      int64_t index = at / repeat % size;
      if (repeat == 1) {
        for (int64_t i = 0; i < chunk;) {
          const int64_t piece = std::min(chunk - i, size - index);
          for (int64_t j = 0; j < piece; ++j) indices[static_cast<size_t>(i + j)] = start + index + j;
          i += piece;
          index = 0;
        }
      } else {
        int64_t left = repeat - at % repeat;
        for (int64_t i = 0; i < chunk;) {
          const int64_t piece = std::min(chunk - i, left);
          std::fill_n(indices.begin() + i, piece, start + index);
          i += piece;
          left = repeat;
          if (++index == size) index = 0;
        }
      }
      const std::byte* from = reinterpret_cast<const std::byte*>(indices.data());
      convert(&from, call.results[0] + at * elem, chunk);
    }
  };
  return kernel;
}

}  // namespace meshd::ops
