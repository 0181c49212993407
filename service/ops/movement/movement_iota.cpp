// The kernel of an unfused iota; loop fusion generates it in place.
#include <fmt/core.h>

#include <algorithm>

#include "service/core/error.h"
#include "service/kernels/elementwise/lanes/count_lanes.h"
#include "service/kernels/elementwise/scalar_op.h"
#include "service/ops/checks.h"
#include "service/ops/kernel_interface.h"
#include "service/ops/movement/movement.h"

namespace meshd::ops {
namespace {

constexpr int64_t kWorkItemElements = 64 * 1024;

}  // namespace

PreparedKernel prepare_iota(const OpView& local) {
  const ir::Type& to = local.results[0];
  const auto dim = static_cast<size_t>(iota_dim(local));
  if (kernels::find_scalar_kernel(kernels::ScalarOp::kConvert, tensor::DType::kInt64, to.dtype()) == nullptr)
    reject(local, "unsupported_dtype", fmt::format("iota of {} is not supported", ir::to_string(to)));
  const int64_t count = tensor::element_count(to.dims());
  const int64_t size = to.dims()[dim];
  const int64_t repeat = tensor::row_major_strides(to.dims())[dim];  // elements that share an index
  const tensor::DType dtype = to.dtype();
  const int64_t elem = tensor::size_bytes(to.dtype());
  PreparedKernel kernel;
  kernel.work_count = core::ceil_div(count, kWorkItemElements);
  kernel.bytes = static_cast<double>(count * elem);
  kernel.uses_offsets = true;
  kernel.run = [=](const KernelCall& call) {
    const int64_t start = call.result_offsets != nullptr ? call.result_offsets[dim] : 0;
    const int64_t begin = call.begin * kWorkItemElements;
    const int64_t stop = std::min(count, call.end * kWorkItemElements);
    if (begin >= stop) return;
    kernels::count_lanes({.first = start, .size = size, .repeat = repeat}, dtype, begin, stop - begin,
                         call.results[0] + begin * elem);
  };
  return kernel;
}

}  // namespace meshd::ops
