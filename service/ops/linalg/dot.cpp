// Rows, result types and factor rules of dot_general and dot.
#include <fmt/core.h>

#include "service/ops/linalg/dot.h"

#include <algorithm>
#include <string>

#include "service/ops/checks.h"
#include "service/ops/families.h"
#include "service/ops/linalg/linalg_batch.h"
#include "service/ops/linalg/linalg_vjp.h"
#include "service/ops/quantized.h"
#include "service/ops/rule_views.h"
#include "service/ops/shards/shard_writers.h"

namespace meshd::ops {
namespace {

using sharding::FactorKind;
using sharding::FactorRule;
using sharding::FactorRuleBuilder;
using tensor::Dims;

void expect_dims(const OpView& view, const std::string& range_label, const std::string& distinct_label,
                 const char* side, size_t operand, const std::vector<int64_t>& batch,
                 const std::vector<int64_t>& contract) {
  std::vector<int64_t> all = batch;
  all.insert(all.end(), contract.begin(), contract.end());
  const int64_t rank = view.operands[operand].rank();
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i] < 0 || all[i] >= rank) {
      reject(view, fmt::format("dot_general {}: {} has {} dims, got dim {}", range_label, side, rank, all[i]));
    }
    if (std::count(all.begin(), all.end(), all[i]) > 1) {
      reject(view, fmt::format("dot_general {}: batching and contracting dims of {} must be distinct, got {} twice",
                               distinct_label, side, all[i]));
    }
  }
}

void expect_same_sizes(const OpView& view, const char* label, const char* what, const std::vector<int64_t>& lhs,
                       const std::vector<int64_t>& rhs) {
  for (size_t i = 0; i < lhs.size(); ++i) {
    const int64_t left = view.operands[0].dims()[static_cast<size_t>(lhs[i])];
    const int64_t right = view.operands[1].dims()[static_cast<size_t>(rhs[i])];
    if (left == right || left == tensor::kDynamicDim || right == tensor::kDynamicDim) continue;
    reject(view, fmt::format("dot_general {}: {} dims differ in size (lhs dim {} is {}, rhs dim {} is {})", label, what,
                             lhs[i], dim_text(left), rhs[i], dim_text(right)));
  }
}

Dims result_dims(const OpView& view, const DotDims& dims) {
  const Dims& lhs = view.operands[0].dims();
  const Dims& rhs = view.operands[1].dims();
  Dims out;
  for (const int64_t d : dims.lhs_batch) out.push_back(lhs[static_cast<size_t>(d)]);
  for (const int64_t d : free_dims(view.operands[0].rank(), dims.lhs_batch, dims.lhs_contract))
    out.push_back(lhs[static_cast<size_t>(d)]);
  for (const int64_t d : free_dims(view.operands[1].rank(), dims.rhs_batch, dims.rhs_contract))
    out.push_back(rhs[static_cast<size_t>(d)]);
  return out;
}

/// The text's element type where it declares one (preferred_element_type), else that of lhs.
std::vector<ir::Type> infer_with(const OpView& view, const char* label, const DotDims& dims) {
  const bool declares = view.results.size() == 1 && view.results[0].is_tensor();
  const tensor::DType dtype = declares ? view.results[0].dtype() : view.operands[0].dtype();
  return agree(view, label, {ir::Type::of({dtype, result_dims(view, dims)})});
}

FactorRule rule_with(const OpView& view, const DotDims& dims) {
  FactorRuleBuilder builder = rule_builder(view);
  const Dims& lhs = view.operands[0].dims();
  const Dims& rhs = view.operands[1].dims();
  int out = 0;
  for (size_t i = 0; i < dims.lhs_batch.size(); ++i) {
    builder.factor({static_cast<int>(dims.lhs_batch[i]), static_cast<int>(dims.rhs_batch[i])}, {out++},
                   lhs[static_cast<size_t>(dims.lhs_batch[i])]);
  }
  for (const int64_t d : free_dims(view.operands[0].rank(), dims.lhs_batch, dims.lhs_contract)) {
    builder.factor({static_cast<int>(d), -1}, {out++}, lhs[static_cast<size_t>(d)]);
  }
  for (const int64_t d : free_dims(view.operands[1].rank(), dims.rhs_batch, dims.rhs_contract)) {
    builder.factor({-1, static_cast<int>(d)}, {out++}, rhs[static_cast<size_t>(d)]);
  }
  for (size_t i = 0; i < dims.lhs_contract.size(); ++i) {
    builder.factor({static_cast<int>(dims.lhs_contract[i]), static_cast<int>(dims.rhs_contract[i])}, {-1},
                   lhs[static_cast<size_t>(dims.lhs_contract[i])], FactorKind::kReduction);
  }
  return builder.build();
}

// The op's attributes with other dimension numbers.
ir::AttributeList with_dot_dims(const OpView& view, const DotDims& dims) {
  ir::AttributeList out = attributes_of(view);
  ir::DictAttr numbers = ir::dict(out, "dot_dimension_numbers");
  numbers.entries = {{"lhs_batching_dimensions", ir::int_array_attr(dims.lhs_batch)},
                     {"rhs_batching_dimensions", ir::int_array_attr(dims.rhs_batch)},
                     {"lhs_contracting_dimensions", ir::int_array_attr(dims.lhs_contract)},
                     {"rhs_contracting_dimensions", ir::int_array_attr(dims.rhs_contract)}};
  for (ir::NamedAttribute& attribute : out) {
    if (attribute.name == "dot_dimension_numbers") attribute.value = ir::Attribute{std::move(numbers)};
  }
  return out;
}

}  // namespace

std::optional<ir::AttributeList> dot_of_transposed(const OpView& op, size_t operand,
                                                   const std::vector<int64_t>& permutation) {
  DotDims dims = dot_general_dims(op);
  std::vector<int64_t>& batch = operand == 0 ? dims.lhs_batch : dims.rhs_batch;
  std::vector<int64_t>& contract = operand == 0 ? dims.lhs_contract : dims.rhs_contract;
  // Dim d of the transposed operand is dim permutation[d] of this one. Free dims keep their order by themselves alone.
  const auto before = [&](int64_t dim) { return permutation[static_cast<size_t>(dim)]; };
  const std::vector<int64_t> free = free_dims(static_cast<int64_t>(permutation.size()), batch, contract);
  for (size_t i = 1; i < free.size(); ++i) {
    if (before(free[i - 1]) > before(free[i])) return std::nullopt;
  }
  std::transform(batch.begin(), batch.end(), batch.begin(), before);
  std::transform(contract.begin(), contract.end(), contract.begin(), before);
  if (!dot_reads_in_place(op, dims, operand)) return std::nullopt;
  return with_dot_dims(op, dims);
}

std::optional<ir::AttributeList> dot_as_transposed(const OpView& op, const std::vector<int64_t>& permutation) {
  // A small result is transposed in no time, and the kernel may be better at the order that it has.
  constexpr int64_t kSmallPart = 8;
  const int64_t made = tensor::element_count(op.results[0].dims());
  if (made * kSmallPart < tensor::element_count(op.operands[0].dims()) + tensor::element_count(op.operands[1].dims()))
    return std::nullopt;
  const DotDims dims = dot_general_dims(op);
  const auto batch = static_cast<int64_t>(dims.lhs_batch.size());
  const int64_t rows = op.operands[0].rank() - batch - static_cast<int64_t>(dims.lhs_contract.size());
  const auto rank = static_cast<int64_t>(permutation.size());
  // Result dims: batch, rows, columns. With the operands in the other order: batch, columns, rows.
  for (int64_t d = 0; d < rank; ++d) {
    const int64_t columns = rank - batch - rows;
    const int64_t from = d < batch ? d : d < batch + columns ? d + rows : d - columns;
    if (permutation[static_cast<size_t>(d)] != from) return std::nullopt;
  }
  return with_dot_dims(op, {dims.rhs_batch, dims.lhs_batch, dims.rhs_contract, dims.lhs_contract});
}

DotDims dot_general_dims(const OpView& view) {
  const ir::DictAttr& numbers = ir::dict(attributes_of(view), "dot_dimension_numbers");
  return {ir::ints_or(numbers.entries, "lhs_batching_dimensions", {}),
          ir::ints_or(numbers.entries, "rhs_batching_dimensions", {}),
          ir::ints_or(numbers.entries, "lhs_contracting_dimensions", {}),
          ir::ints_or(numbers.entries, "rhs_contracting_dimensions", {})};
}

DotDims dot_dims(const OpView& view) { return {{}, {}, {view.operands[0].rank() - 1}, {0}}; }

std::vector<int64_t> free_dims(int64_t rank, const std::vector<int64_t>& batch, const std::vector<int64_t>& contract) {
  std::vector<int64_t> out;
  for (int64_t d = 0; d < rank; ++d) {
    if (!contains(batch, d) && !contains(contract, d)) out.push_back(d);
  }
  return out;
}

std::vector<ir::Type> infer_dot_general(const OpView& view) {
  expect_tensor_operands(view, "dot_general", 2);
  const DotDims dims = dot_general_dims(view);
  if (dims.lhs_batch.size() != dims.rhs_batch.size()) {
    reject(view, fmt::format("dot_general C1: both sides must have as many batching dims, got {} and {}",
                             dims.lhs_batch.size(), dims.rhs_batch.size()));
  }
  if (dims.lhs_contract.size() != dims.rhs_contract.size()) {
    reject(view, fmt::format("dot_general C2: both sides must have as many contracting dims, got {} and {}",
                             dims.lhs_contract.size(), dims.rhs_contract.size()));
  }
  // checks: dot_general C3: batching and contracting dims of lhs are distinct
  // checks: dot_general C4: batching and contracting dims of rhs are distinct
  // checks: dot_general C5: batching and contracting dims of lhs are below its rank
  // checks: dot_general C7: batching and contracting dims of rhs are below its rank
  // checks: dot_general C9: batching dims have the same sizes on both sides
  // checks: dot_general C10: contracting dims have the same sizes on both sides
  // checks: dot_general C12: the result is batching dims, free dims of lhs, free dims of rhs
  expect_dims(view, "C5", "C3", "lhs", 0, dims.lhs_batch, dims.lhs_contract);
  expect_dims(view, "C7", "C4", "rhs", 1, dims.rhs_batch, dims.rhs_contract);
  expect_same_sizes(view, "C9", "batching", dims.lhs_batch, dims.rhs_batch);
  expect_same_sizes(view, "C10", "contracting", dims.lhs_contract, dims.rhs_contract);
  return infer_with(view, "dot_general C12", dims);
}

std::vector<ir::Type> infer_dot(const OpView& view) {
  expect_operand_count(view, "dot", 2);
  for (size_t i = 0; i < 2; ++i) {
    expect_tensor(view, "dot", i);
    const int64_t rank = view.operands[i].rank();
    if (rank != 1 && rank != 2) reject(view, "dot: operands must be vectors or matrices, got " + operand_text(view, i));
  }
  const DotDims dims = dot_dims(view);
  expect_same_sizes(view, "C10", "contracting", dims.lhs_contract, dims.rhs_contract);
  return infer_with(view, "dot", dims);
}

FactorRule dot_general_rule(const OpView& view) { return rule_with(view, dot_general_dims(view)); }
FactorRule dot_rule(const OpView& view) { return rule_with(view, dot_dims(view)); }

std::vector<OpDef> dot_rows() {
  return {
      {.name = "stablehlo.dot_general",
       .summary = "products of slices, summed over contracting dimensions, for each index of the batching dimensions",
       .example = R"(module @jit_f {
  func.func public @main(%arg0: tensor<2x4x3xf32>, %arg1: tensor<2x3x5xf32>) -> tensor<2x4x5xf32> {
    %0 = stablehlo.dot_general %arg0, %arg1, batching_dims = [0] x [0], contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<2x4x3xf32>, tensor<2x3x5xf32>) -> tensor<2x4x5xf32>
    return %0 : tensor<2x4x5xf32>
  }
}
)",
       .signature =
           {.operand_min = 2,
            .operand_max = 2,
            .attributes = {{"dot_dimension_numbers", true, "batching and contracting dims of both sides"},
                           {"precision_config", false, "a hint; products are never less precise than their types"},
                           {"algorithm", false, "a hint like precision_config; accumulation_type f64 is obeyed"}}},
       .text = {.fields = {{"batching_dims", FieldKind::kBatching},
                           {"contracting_dims", FieldKind::kContracting},
                           {"precision", FieldKind::kPrecision, "precision_config"},
                           {"algorithm", FieldKind::kAlgorithm, "algorithm"}}},
       .infer = infer_dot_general,
       .bounded = BoundedForm::kDotGeneral,
       .quantized = {.form = QuantizedForm::kExpressed, .per_axis = true, .check = check_quantized_dot_general},
       .rule = dot_general_rule,
       .body = LocalKernel{prepare_dot_general},
       .combine = combine_sums,
       .derivative = {vjp_dot_general},
       .batch = batch_dot_general,
       .fuse = {.product_dims = dot_general_dims,
                .of_transposed = dot_of_transposed,
                .as_transposed = dot_as_transposed,
                .summed = prepare_dot_sum}},
      {.name = "stablehlo.dot",
       .summary = "product of matrices and vectors",
       .example = R"(module @jit_f {
  func.func public @main(%arg0: tensor<4x3xf32>, %arg1: tensor<3x5xf32>) -> tensor<4x5xf32> {
    %0 = stablehlo.dot %arg0, %arg1, precision = [DEFAULT, DEFAULT] : (tensor<4x3xf32>, tensor<3x5xf32>) -> tensor<4x5xf32>
    return %0 : tensor<4x5xf32>
  }
}
)",
       .signature = {.operand_min = 2,
                     .operand_max = 2,
                     .attributes = {{"precision_config", false,
                                     "a hint; products are never less precise than their types"}}},
       .text = {.fields = {{"precision", FieldKind::kPrecision, "precision_config"}}},
       .infer = infer_dot,
       .bounded = BoundedForm::kDot,
       .rule = dot_rule,
       .body = LocalKernel{prepare_dot},
       .combine = combine_sums,
       .derivative = {vjp_dot}},
  };
}

}  // namespace meshd::ops
