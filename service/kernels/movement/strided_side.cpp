#include "service/kernels/movement/strided_side.h"

#include <fmt/core.h>

#include "service/core/checked_math.h"
#include "service/core/error.h"

namespace meshd::kernels {

StridedSide::StridedSide(const tensor::Dims& extent, const tensor::Dims& strides, tensor::DType dtype,
                         tensor::DType wanted)
    : count_(tensor::element_count(extent)) {
  const tensor::Dims dense = tensor::row_major_strides(extent);
  bool is_dense = true;
  bool may_scatter = true;
  for (size_t d = 0; d < extent.size(); ++d) {
    is_dense = is_dense && (extent[d] == 1 || strides[d] == dense[d]);
    may_scatter = may_scatter && (extent[d] == 1 || strides[d] > 0);
  }
  const int64_t bytes = tensor::size_bytes(dtype);
  if (!is_dense) {
    gather_.emplace(extent, dense, strides, bytes);
    if (may_scatter) scatter_.emplace(extent, strides, dense, bytes);
    gathered_bytes_ = core::round_up(core::checked_mul(count_, bytes), 64);
  }
  if (dtype == wanted) return;
  convert_ = find_scalar_kernel(ScalarOp::kConvert, dtype, wanted);
  restore_ = find_scalar_kernel(ScalarOp::kConvert, wanted, dtype);
  if (convert_ == nullptr || restore_ == nullptr) {
    throw core::Error("unsupported_dtype", fmt::format("a convolution of '{}' in '{}' is not supported",
                                                       tensor::name(dtype), tensor::name(wanted)));
  }
  converted_bytes_ = core::round_up(core::checked_mul(count_, tensor::size_bytes(wanted)), 64);
}

const std::byte* StridedSide::read(const std::byte* from, std::byte* scratch) const {
  if (gather_) {
    gather_->run(scratch, from);
    from = scratch;
  }
  if (convert_ == nullptr) return from;
  convert_(&from, scratch + gathered_bytes_, count_);
  return scratch + gathered_bytes_;
}

std::byte* StridedSide::place(std::byte* to, std::byte* scratch) const {
  if (restore_ != nullptr) return scratch + gathered_bytes_;
  return scatter_ ? scratch : to;
}

void StridedSide::write(std::byte* to, std::byte* scratch) const {
  if (restore_ != nullptr) {
    const std::byte* const from = scratch + gathered_bytes_;
    restore_(&from, scatter_ ? scratch : to, count_);
  }
  if (scatter_) scatter_->run(to, scratch);
}

}  // namespace meshd::kernels
