// Local ops that several stages append: scalars, masks, views, all-reduces. They go to the builder's current block.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "service/kernels/elementwise/scalar_op.h"
#include "service/partition/lower/builder/builder.h"

namespace meshd::partition {

/// `element` as a scalar constant, which is computed again in every layout.
LocalId add_scalar(Builder& builder, tensor::DType dtype, const std::vector<std::byte>& element, int view,
                   const ir::Location& location);
/// The constant that the value is, or the scalar constant that it broadcasts; or null.
const ir::DenseAttr* constant_of(const Builder& builder, LocalId id);

/// Replaces the padding of `id` by `element`; `id` itself where it has none.
LocalId mask_padding(Builder& builder, LocalId id, const std::vector<std::byte>& element, const ir::Location& location,
                     const std::string& reason);

/// `to` shares the bytes of `from`: a kView between values of one local type.
void append_view(Builder& builder, LocalId from, LocalId to, const ir::Location& location);
/// A view of the value in its own layout.
LocalId alias(Builder& builder, LocalId id, const ir::Location& location);

/// A reduction over shards.
struct AllReduce {
  sharding::SubAxisSet reduced = 0;
  kernels::ScalarOp op{};  ///< combines two partial results
  tensor::DType dtype{};   ///< of the op: the element's, or an unsigned integer that has its bits
  std::string name;        ///< of the result
  const ir::Location& location;
  std::string reason;
};
/// `id` all-reduced: in the same layout, varying over the sub-axes that are not reduced.
LocalId all_reduce(Builder& builder, LocalId id, AllReduce how);

}  // namespace meshd::partition
