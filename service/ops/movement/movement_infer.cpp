// Result types of the movement family. Labels are those of the StableHLO specification. Dynamic dimensions pass every
// check that needs their size.
#include <fmt/core.h>

#include <algorithm>
#include <string>

#include "service/ops/checks.h"
#include "service/ops/movement/movement.h"

namespace meshd::ops {
namespace {

using tensor::Dims;
using tensor::kDynamicDim;

bool is_dynamic(int64_t dim) { return dim == kDynamicDim; }
bool any_dynamic(const Dims& dims) { return std::any_of(dims.begin(), dims.end(), is_dynamic); }

/// Integers of an attribute, one for each dimension of operand 0.
std::vector<int64_t> one_per_dim(const OpView& view, std::string_view label, std::string_view attribute) {
  std::vector<int64_t> values = ir::ints(attributes_of(view), attribute);
  const size_t rank = view.operands[0].dims().size();
  if (values.size() != rank) {
    reject(view, fmt::format("{}: {} must have a number for each of the operand's {} dimensions, got {}", label,
                             attribute, rank, values.size()));
  }
  return values;
}

void expect_distinct_dims(const OpView& view, std::string_view label, std::string_view attribute,
                          const std::vector<int64_t>& dims, int64_t rank) {
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] < 0 || dims[i] >= rank) {
      reject(view, fmt::format("{}: {} must be dimensions below {}, got {}", label, attribute, rank, dims[i]));
    }
    if (std::find(dims.begin(), dims.begin() + static_cast<std::ptrdiff_t>(i), dims[i]) !=
        dims.begin() + static_cast<std::ptrdiff_t>(i)) {
      reject(view, fmt::format("{}: {} must be distinct, got {} twice", label, attribute, dims[i]));
    }
  }
}

/// Operands first.. are scalar start indices of one integer type, one for each dimension of operand 0.
void expect_starts(const OpView& view, std::string_view op, std::string_view count_label, std::string_view type_label,
                   size_t first) {
  const size_t rank = view.operands[0].dims().size();
  if (view.operands.size() != first + rank) {
    reject(view,
           fmt::format("{} {}: expects {} start indices, got {}", op, count_label, rank, view.operands.size() - first));
  }
  for (size_t i = first; i < view.operands.size(); ++i) {
    expect_tensor(view, op, i);
    const ir::Type& type = view.operands[i];
    if (type.rank() != 0 || !tensor::is_integer(type.dtype()) || type.dtype() != view.operands[first].dtype()) {
      reject(view, std::string(op) + " " + std::string(type_label) +
                       ": start indices must be scalars of one integer type, got " + operand_text(view, i));
    }
  }
}

}  // namespace

std::vector<ir::Type> infer_reshape(const OpView& view) {
  expect_tensor_operands(view, "reshape", 1);
  std::vector<ir::Type> results = declared(view, "reshape", 1);
  const ir::Type& from = view.operands[0];
  const ir::Type& to = results[0];
  if (!to.is_tensor() || to.dtype() != from.dtype()) {
    reject(view, fmt::format("reshape C1: element types differ (operand {}, result {})", operand_text(view, 0),
                             ir::to_string(to)));
  }
  if (!any_dynamic(from.dims()) && !any_dynamic(to.dims()) &&
      tensor::element_count(from.dims()) != tensor::element_count(to.dims())) {
    reject(view,
           fmt::format("reshape C2: element counts differ (operand {} has {}, result {} has {})", operand_text(view, 0),
                       tensor::element_count(from.dims()), ir::to_string(to), tensor::element_count(to.dims())));
  }
  return results;
}

std::vector<ir::Type> infer_transpose(const OpView& view) {
  expect_tensor_operands(view, "transpose", 1);
  const ir::Type& from = view.operands[0];
  const std::vector<int64_t> permutation = one_per_dim(view, "transpose C2", "permutation");
  expect_distinct_dims(view, "transpose C2", "permutation", permutation, from.rank());
  Dims dims;
  for (const int64_t d : permutation) dims.push_back(from.dims()[static_cast<size_t>(d)]);
  return agree(view, "transpose C3", {with_dims(from, std::move(dims))});
}

std::vector<ir::Type> infer_broadcast_in_dim(const OpView& view) {
  expect_tensor_operands(view, "broadcast_in_dim", 1);
  std::vector<ir::Type> results = declared(view, "broadcast_in_dim", 1);
  const ir::Type& from = view.operands[0];
  const ir::Type& to = results[0];
  if (!to.is_tensor() || to.dtype() != from.dtype()) {
    reject(view, fmt::format("broadcast_in_dim C1: element types differ (operand {}, result {})", operand_text(view, 0),
                             ir::to_string(to)));
  }
  const std::vector<int64_t> dims = one_per_dim(view, "broadcast_in_dim C2", "broadcast_dimensions");
  expect_distinct_dims(view, "broadcast_in_dim C3", "broadcast_dimensions", dims, to.rank());
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t size = from.dims()[i];
    const int64_t target = to.dims()[static_cast<size_t>(dims[i])];
    if (size != 1 && size != target && !is_dynamic(size) && !is_dynamic(target)) {
      reject(view,
             fmt::format("broadcast_in_dim C5: operand dim {} must be 1 or the size of result dim {} ({}), got {}", i,
                         dims[i], dim_text(target), dim_text(size)));
    }
  }
  return results;
}

std::vector<ir::Type> infer_slice(const OpView& view) {
  expect_tensor_operands(view, "slice", 1);
  const ir::Type& from = view.operands[0];
  const std::vector<int64_t> starts = one_per_dim(view, "slice C2", "start_indices");
  const std::vector<int64_t> limits = one_per_dim(view, "slice C2", "limit_indices");
  const std::vector<int64_t> strides = one_per_dim(view, "slice C2", "strides");
  Dims dims;
  for (size_t d = 0; d < starts.size(); ++d) {
    const int64_t size = from.dims()[d];
    if (starts[d] < 0 || starts[d] > limits[d] || (!is_dynamic(size) && limits[d] > size)) {
      reject(view, fmt::format("slice C3: dim {} must have 0 <= start <= limit <= {}, got [{}:{}]", d, dim_text(size),
                               starts[d], limits[d]));
    }
    if (strides[d] < 1) reject(view, fmt::format("slice C4: strides must be positive, got {}", strides[d]));
    dims.push_back(core::ceil_div(limits[d] - starts[d], strides[d]));
  }
  return agree(view, "slice C5", {with_dims(from, std::move(dims))});
}

std::vector<ir::Type> infer_dynamic_slice(const OpView& view) {
  expect_tensor(view, "dynamic_slice", 0);
  // checks: dynamic_slice C2: there is a start index for each dimension of the operand
  // checks: dynamic_slice C3: start indices are scalars of one integer type
  expect_starts(view, "dynamic_slice", "C2", "C3", 1);
  const ir::Type& from = view.operands[0];
  const std::vector<int64_t> sizes = one_per_dim(view, "dynamic_slice C2", "slice_sizes");
  for (size_t d = 0; d < sizes.size(); ++d) {
    const int64_t size = from.dims()[d];
    if (sizes[d] < 0 || (!is_dynamic(size) && sizes[d] > size)) {
      reject(view, fmt::format("dynamic_slice C4: slice size of dim {} must be between 0 and {}, got {}", d,
                               dim_text(size), sizes[d]));
    }
  }
  return agree(view, "dynamic_slice C5", {with_dims(from, sizes)});
}

std::vector<ir::Type> infer_dynamic_update_slice(const OpView& view) {
  expect_tensor(view, "dynamic_update_slice", 0);
  expect_tensor(view, "dynamic_update_slice", 1);
  const ir::Type& to = view.operands[0];
  const ir::Type& update = view.operands[1];
  if (update.dtype() != to.dtype()) {
    reject(view, "dynamic_update_slice C2: element types differ (operand " + operand_text(view, 0) + ", update " +
                     operand_text(view, 1) + ")");
  }
  if (update.rank() != to.rank()) {
    reject(view, fmt::format("dynamic_update_slice C3: operand and update must have one rank, got {} and {}", to.rank(),
                             update.rank()));
  }
  // checks: dynamic_update_slice C4: there is a start index for each dimension of the operand
  // checks: dynamic_update_slice C5: start indices are scalars of one integer type
  expect_starts(view, "dynamic_update_slice", "C4", "C5", 2);
  for (size_t d = 0; d < to.dims().size(); ++d) {
    const int64_t size = to.dims()[d];
    const int64_t part = update.dims()[d];
    if (!is_dynamic(size) && !is_dynamic(part) && part > size) {
      reject(view, fmt::format("dynamic_update_slice C6: update dim {} must be at most {}, got {}", d, dim_text(size),
                               dim_text(part)));
    }
  }
  return agree(view, "dynamic_update_slice C1", {to});
}

std::vector<ir::Type> infer_concatenate(const OpView& view) {
  if (view.operands.empty()) reject(view, "concatenate C3: expects at least one operand");
  for (size_t i = 0; i < view.operands.size(); ++i) expect_tensor(view, "concatenate", i);
  const ir::Type& first = view.operands[0];
  const int64_t dim = ir::int_or(attributes_of(view), "dimension", -1);
  if (dim < 0 || dim >= first.rank()) {
    reject(view, fmt::format("concatenate C4: dimension must be between 0 and {}, got {}", first.rank() - 1, dim));
  }
  Dims dims = first.dims();
  for (size_t i = 1; i < view.operands.size(); ++i) {
    const ir::Type& type = view.operands[i];
    if (type.dtype() != first.dtype()) {
      reject(view, fmt::format("concatenate C1: element types differ (operand 0 is {}, operand {} is {})",
                               operand_text(view, 0), i, operand_text(view, i)));
    }
    Dims others = type.dims();
    Dims expected = dims;
    if (others.size() == expected.size()) others[static_cast<size_t>(dim)] = expected[static_cast<size_t>(dim)];
    if (!compatible_shapes(others, expected)) {
      reject(view, fmt::format("concatenate C2: shapes may differ in dim {} only (operand 0 is {}, operand {} is {})",
                               dim, operand_text(view, 0), i, operand_text(view, i)));
    }
    dims = merged(expected, others);
    int64_t& sum = dims[static_cast<size_t>(dim)];
    const int64_t more = type.dims()[static_cast<size_t>(dim)];
    sum = is_dynamic(sum) || is_dynamic(more) ? kDynamicDim : core::checked_add(sum, more);
  }
  return agree(view, "concatenate C6", {with_dims(first, std::move(dims))});
}

std::vector<ir::Type> infer_pad(const OpView& view) {
  expect_tensor_operands(view, "pad", 2);
  const ir::Type& from = view.operands[0];
  if (view.operands[1].dtype() != from.dtype() || view.operands[1].rank() != 0) {
    reject(view, "pad C1: padding_value must be a scalar of the operand's type (operand " + operand_text(view, 0) +
                     ", padding_value " + operand_text(view, 1) + ")");
  }
  const std::vector<int64_t> low = one_per_dim(view, "pad C2", "edge_padding_low");
  const std::vector<int64_t> high = one_per_dim(view, "pad C2", "edge_padding_high");
  const std::vector<int64_t> interior = one_per_dim(view, "pad C2", "interior_padding");
  Dims dims;
  for (size_t d = 0; d < low.size(); ++d) {
    if (interior[d] < 0) {
      reject(view, fmt::format("pad C3: interior_padding of dim {} must not be negative, got {}", d, interior[d]));
    }
    const int64_t size = from.dims()[d];
    if (is_dynamic(size)) {
      dims.push_back(kDynamicDim);
      continue;
    }
    const int64_t between = core::checked_mul(std::max<int64_t>(size - 1, 0), interior[d]);
    const int64_t padded = core::checked_add(core::checked_add(core::checked_add(size, between), low[d]), high[d]);
    if (padded < 0) reject(view, fmt::format("pad C4: dim {} of the result would have {} elements", d, padded));
    dims.push_back(padded);
  }
  return agree(view, "pad C4", {with_dims(from, std::move(dims))});
}

std::vector<ir::Type> infer_reverse(const OpView& view) {
  expect_tensor_operands(view, "reverse", 1);
  const ir::Type& from = view.operands[0];
  expect_distinct_dims(view, "reverse C3", "dimensions", ir::ints(attributes_of(view), "dimensions"), from.rank());
  return agree(view, "reverse C1", {from});
}

std::vector<ir::Type> infer_iota(const OpView& view) {
  expect_operand_count(view, "iota", 0);
  std::vector<ir::Type> results = declared(view, "iota", 1);
  const ir::Type& to = results[0];
  if (!to.is_tensor() || to.dtype() == tensor::DType::kBool) {
    reject(view, fmt::format("iota: output must be a tensor of numbers, got {}", ir::to_string(to)));
  }
  const int64_t dim = ir::int_or(attributes_of(view), "iota_dimension", -1);
  if (dim < 0 || dim >= to.rank()) {
    reject(view, fmt::format("iota C1: iota_dimension must be below the output's rank {}, got {}", to.rank(), dim));
  }
  return results;
}

}  // namespace meshd::ops
