// Movement ops as steps of small whiles (kernels/fused/small_step.h): null where they move too much for one, or not in
// one piece. Private to this folder.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "service/kernels/fused/small_step.h"
#include "service/ops/op_def.h"

namespace meshd::ops {

/// Element `offset` + sum(strides * index) of operand 0 for each of the result `to`.
std::shared_ptr<const kernels::SmallStep> small_copy(const ir::Type& to, const tensor::Dims& strides, int64_t offset);

/// Operands one after the other along a dim; `views`: where their elements are.
std::shared_ptr<const kernels::SmallStep> small_concatenate(const OpView& local, const std::vector<StridedView>& views,
                                                            size_t dim);

/// Operand 0 between elements of operand 1.
std::shared_ptr<const kernels::SmallStep> small_pad(const OpView& local);

/// `row` of an array, which is a window of it; its lanes follow from that.
std::shared_ptr<const kernels::SmallStep> small_row(kernels::DynamicRow row, const tensor::Dims& dims,
                                                    const tensor::Dims& window);

/// The indices of a window with a start index for each dim, which are operands from `first` on.
std::vector<kernels::DynamicRow::Index> starts_of_window(const tensor::Dims& dims, const tensor::Dims& window,
                                                         int first);

}  // namespace meshd::ops
