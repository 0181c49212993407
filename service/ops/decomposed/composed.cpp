// Decompositions of broadcast, einsum, unary_einsum, torch_index_select, cross-replica-sum and trace.
#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <string>

#include "service/ops/checks.h"
#include "service/ops/families.h"
#include "service/ops/rewrites/derivative.h"
#include "service/ops/rewrites/writer.h"

namespace meshd::ops {
namespace {

using tensor::Dims;
using Values = std::optional<std::vector<ir::ValueId>>;

// broadcast

std::vector<ir::Type> infer_broadcast(const OpView& view) {
  expect_tensor_operands(view, "broadcast", 1);
  Dims dims = ir::ints(attributes_of(view), "broadcast_sizes");
  for (const int64_t size : dims) {
    if (size < 0) reject(view, fmt::format("broadcast C1: broadcast_sizes must not be negative, got {}", size));
  }
  const Dims& in = view.operands[0].dims();
  dims.insert(dims.end(), in.begin(), in.end());
  return agree(view, "broadcast C2", {ir::Type::of({view.operands[0].dtype(), std::move(dims)})});
}

Values expand_broadcast(const OpView& view, Writer& writer) {
  const Dims& dims = view.results[0].dims();
  const int64_t first = static_cast<int64_t>(dims.size()) - view.operands[0].rank();
  std::vector<int64_t> into;
  for (int64_t d = first; d < static_cast<int64_t>(dims.size()); ++d) into.push_back(d);
  return std::vector{writer.broadcast(view.op->operands[0], dims, into)};
}

// einsum

/// "ab,bc->ac" as the subscripts of each operand and of the result.
struct Einsum {
  std::vector<std::string> operands;
  std::string result;
};

Einsum parse_einsum(const OpView& view, const std::string& op, size_t operand_count) {
  const std::string config = ir::string_or(attributes_of(view), "einsum_config", "");
  const size_t arrow = config.find("->");
  const auto bad = [&](const std::string& why) { reject(view, op + " I3: einsum_config \"" + config + "\" " + why); };
  if (arrow == std::string::npos) bad("must have an arrow, as in \"ab,bc->ac\"");
  Einsum out;
  std::string part;
  for (const char c : config.substr(0, arrow) + ",") {
    if (c == ' ') continue;
    if (c != ',') {
      part += c;
      continue;
    }
    out.operands.push_back(std::exchange(part, ""));
  }
  for (const char c : config.substr(arrow + 2)) {
    if (c != ' ') out.result += c;
  }
  if (out.operands.size() != operand_count) bad(fmt::format("must speak of {} operands", operand_count));
  std::set<char> seen;
  for (size_t i = 0; i < operand_count; ++i) {
    const std::string& letters = out.operands[i];
    for (const char c : letters) {
      if ((c < 'a' || c > 'z') && (c < 'A' || c > 'Z')) bad("may have letters only");
    }
    if (static_cast<int64_t>(letters.size()) != view.operands[i].rank())
      bad("must have a letter for each dimension of " + operand_text(view, i));
    const Dims& dims = view.operands[i].dims();
    for (size_t d = 0; d < letters.size(); ++d) {
      const size_t first = letters.find(letters[d]);
      if (dims[first] == dims[d] || dims[first] == tensor::kDynamicDim || dims[d] == tensor::kDynamicDim) continue;
      bad(fmt::format("has '{}' for {} and for {} elements of {}", letters.substr(d, 1), dims[first], dims[d],
                      operand_text(view, i)));
    }
    seen.insert(letters.begin(), letters.end());
  }
  if (std::set<char>(out.result.begin(), out.result.end()).size() != out.result.size())
    bad("repeats a result's letter");
  for (const char c : out.result) {
    if (seen.count(c) == 0) bad("has a result's letter that no operand has");
  }
  return out;
}

std::vector<ir::Type> infer_einsum_of(const OpView& view, const std::string& op, size_t count) {
  expect_tensor_operands(view, op, count);
  const Einsum einsum = parse_einsum(view, op, count);
  Dims dims;
  for (const char c : einsum.result) {
    int64_t size = -1;
    for (size_t i = 0; i < count; ++i) {
      const size_t at = einsum.operands[i].find(c);
      if (at != std::string::npos) size = view.operands[i].dims()[at];
    }
    dims.push_back(size);
  }
  if (count == 2) {
    for (size_t at = 0; at < einsum.operands[0].size(); ++at) {
      const size_t other = einsum.operands[1].find(einsum.operands[0][at]);
      if (other == std::string::npos) continue;
      const int64_t a = view.operands[0].dims()[at];
      const int64_t b = view.operands[1].dims()[other];
      if (a != b && a != tensor::kDynamicDim && b != tensor::kDynamicDim) {
        reject(view, fmt::format("{}: dimension '{}' has {} elements in {} and {} in {}", op,
                                 einsum.operands[0].substr(at, 1), a, operand_text(view, 0), b, operand_text(view, 1)));
      }
    }
  }
  return agree(view, op, {ir::Type::of({view.operands[0].dtype(), std::move(dims)})});
}

std::vector<ir::Type> infer_einsum(const OpView& view) { return infer_einsum_of(view, "einsum", 2); }
std::vector<ir::Type> infer_unary_einsum(const OpView& view) { return infer_einsum_of(view, "unary_einsum", 1); }

/// Sums over the dimensions whose subscripts `kept` does not have, and removes them from `letters`.
ir::ValueId sum_rest(Writer& writer, ir::ValueId value, std::string& letters, const std::string& kept) {
  std::vector<int64_t> dims;
  std::string left;
  for (size_t d = 0; d < letters.size(); ++d) {
    if (kept.find(letters[d]) == std::string::npos) {
      dims.push_back(static_cast<int64_t>(d));
    } else {
      left += letters[d];
    }
  }
  letters = left;
  return summed_over({&writer, value}, dims).id;
}

/// A repeated subscript means the diagonal of its two dimensions: what is beside it becomes zero, and one of the two is
/// summed.
ir::ValueId take_diagonals(Writer& writer, ir::ValueId value, std::string& letters) {
  for (size_t d = 0; d < letters.size();) {
    const size_t first = letters.find(letters[d]);
    if (first == d) {
      ++d;
      continue;
    }
    const ir::Type type = writer.type(value);
    const auto place = [&](size_t dim) {
      return writer.iota({tensor::DType::kInt64, type.dims()}, static_cast<int64_t>(dim));
    };
    const ir::ValueId on_diagonal = writer.compare(place(first), "EQ", place(d));
    const ir::ValueId kept = writer.add("stablehlo.select", {on_diagonal, value, writer.splat(type, 0)});
    value = summed_over({&writer, kept}, {static_cast<int64_t>(d)}).id;
    letters.erase(d, 1);
  }
  return value;
}

ir::ValueId order_as(Writer& writer, ir::ValueId value, const std::string& from, const std::string& to) {
  std::vector<int64_t> permutation;
  for (const char c : to) permutation.push_back(static_cast<int64_t>(from.find(c)));
  return writer.transpose(value, permutation);
}

Values expand_einsum(const OpView& view, Writer& writer) {
  Einsum einsum = parse_einsum(view, "einsum", 2);
  std::string& left = einsum.operands[0];
  std::string& right = einsum.operands[1];
  const ir::ValueId first = take_diagonals(writer, view.op->operands[0], left);
  const ir::ValueId second = take_diagonals(writer, view.op->operands[1], right);
  const ir::ValueId lhs = sum_rest(writer, first, left, right + einsum.result);
  const ir::ValueId rhs = sum_rest(writer, second, right, left + einsum.result);
  std::vector<int64_t> lhs_batch, rhs_batch, lhs_contracting, rhs_contracting;
  std::string batch, lhs_free, rhs_free;
  for (size_t d = 0; d < left.size(); ++d) {
    const size_t other = right.find(left[d]);
    if (other == std::string::npos) {
      lhs_free += left[d];
      continue;
    }
    const bool is_batch = einsum.result.find(left[d]) != std::string::npos;
    (is_batch ? lhs_batch : lhs_contracting).push_back(static_cast<int64_t>(d));
    (is_batch ? rhs_batch : rhs_contracting).push_back(static_cast<int64_t>(other));
    if (is_batch) batch += left[d];
  }
  for (const char c : right) {
    if (left.find(c) == std::string::npos) rhs_free += c;
  }
  const ir::DictAttr numbers{"stablehlo.dot",
                             {{"lhs_batching_dimensions", ir::int_array_attr(lhs_batch)},
                              {"rhs_batching_dimensions", ir::int_array_attr(rhs_batch)},
                              {"lhs_contracting_dimensions", ir::int_array_attr(lhs_contracting)},
                              {"rhs_contracting_dimensions", ir::int_array_attr(rhs_contracting)}}};
  const std::string order = batch + lhs_free + rhs_free;
  Dims dims;
  for (const char c : order) dims.push_back(view.results[0].dims()[einsum.result.find(c)]);
  const ir::ValueId product =
      writer.add("stablehlo.dot_general", {lhs, rhs}, {{"dot_dimension_numbers", ir::Attribute{numbers}}},
                 ir::Type::of({view.results[0].dtype(), dims}));
  return std::vector{order_as(writer, product, order, einsum.result)};
}

Values expand_unary_einsum(const OpView& view, Writer& writer) {
  Einsum einsum = parse_einsum(view, "unary_einsum", 1);
  std::string& letters = einsum.operands[0];
  const ir::ValueId whole = take_diagonals(writer, view.op->operands[0], letters);
  const ir::ValueId value = sum_rest(writer, whole, letters, einsum.result);
  return std::vector{order_as(writer, value, letters, einsum.result)};
}

// torch_index_select

struct IndexSelect {
  int64_t dim = 0;
  int64_t batch_dims = 0;
};

IndexSelect index_select(const OpView& view) {
  return {ir::int_or(attributes_of(view), "dim", 0), ir::int_or(attributes_of(view), "batch_dims", 0)};
}

std::vector<ir::Type> infer_index_select(const OpView& view) {
  expect_tensor_operands(view, "torch_index_select", 2);
  const auto [dim, batch_dims] = index_select(view);
  const Dims& in = view.operands[0].dims();
  const Dims& index = view.operands[1].dims();
  if (dim < 0 || dim >= view.operands[0].rank()) {
    reject(view,
           fmt::format("torch_index_select C1: dim must be below the rank of {}, got {}", operand_text(view, 0), dim));
  }
  if (batch_dims < 0 || batch_dims > dim || batch_dims > view.operands[1].rank()) {
    reject(
        view,
        fmt::format("torch_index_select C2: batch_dims must be between 0 and dim {} and at most the rank of {}, got {}",
                    dim, operand_text(view, 1), batch_dims));
  }
  if (!tensor::is_integer(view.operands[1].dtype()))
    reject(view, "torch_index_select I2: index must be integers, got " + operand_text(view, 1));
  Dims dims(in.begin(), in.begin() + dim);
  dims.insert(dims.end(), index.begin() + batch_dims, index.end());
  dims.insert(dims.end(), in.begin() + dim + 1, in.end());
  return agree(view, "torch_index_select C3", {ir::Type::of({view.operands[0].dtype(), std::move(dims)})});
}

Values expand_index_select(const OpView& view, Writer& writer) {
  const auto [dim, batch_dims] = index_select(view);
  const int64_t rank = view.operands[0].rank();
  const int64_t index_rank = view.operands[1].rank();
  const int64_t placed = index_rank - batch_dims;  // dims of the result that are dims of the index
  std::vector<int64_t> offset, batching, sizes;
  for (int64_t d = 0; d < batch_dims; ++d) batching.push_back(d);
  for (int64_t d = 0; d < rank; ++d) {
    const bool one = d < batch_dims || d == dim;
    sizes.push_back(one ? 1 : view.operands[0].dims()[static_cast<size_t>(d)]);
    if (!one) offset.push_back(d < dim ? d : d - 1 + placed);
  }
  const ir::DictAttr numbers{"stablehlo.gather",
                             {{"offset_dims", ir::int_array_attr(offset)},
                              {"collapsed_slice_dims", ir::int_array_attr({dim})},
                              {"operand_batching_dims", ir::int_array_attr(batching)},
                              {"start_indices_batching_dims", ir::int_array_attr(batching)},
                              {"start_index_map", ir::int_array_attr({dim})},
                              {"index_vector_dim", ir::integer_attr(index_rank)}}};
  return std::vector{
      writer.add("stablehlo.gather", {view.op->operands[0], view.op->operands[1]},
                 {{"dimension_numbers", ir::Attribute{numbers}}, {"slice_sizes", ir::int_array_attr(sizes)}})};
}

// cross-replica-sum, trace

std::vector<ir::Type> infer_cross_replica(const OpView& view) {
  expect_tensor_operands(view, "cross-replica-sum", 1);
  return agree(view, "cross-replica-sum C1", {view.operands[0]});
}

Values expand_cross_replica_sum(const OpView& view, Writer& writer) {
  std::vector<ir::Region> regions;
  regions.push_back(writer.reducer("stablehlo.add", ir::Type::of({view.operands[0].dtype(), {}})));
  return writer.add("stablehlo.all_reduce", view.op->operands, attributes_of(view),
                    std::vector<ir::Type>(view.results.begin(), view.results.end()), std::move(regions));
}

std::vector<ir::Type> infer_trace(const OpView& view) { return agree(view, "trace", {}); }

/// A profiling annotation, which has no effect here.
Values expand_trace(const OpView& /*view*/, Writer& /*writer*/) { return std::vector<ir::ValueId>{}; }

}  // namespace

std::vector<OpDef> composed_rows() {
  return {
      {.name = "stablehlo.broadcast",
       .summary = "the operand repeated along new dimensions in front",
       .example = R"(module @jit_f {
  func.func public @main(%arg0: tensor<3xf32>) -> tensor<2x3xf32> {
    %0 = stablehlo.broadcast %arg0, sizes = [2] : (tensor<3xf32>) -> tensor<2x3xf32>
    return %0 : tensor<2x3xf32>
  }
}
)",
       .signature = {.operand_min = 1,
                     .operand_max = 1,
                     .attributes = {{"broadcast_sizes", true, "sizes of the new dims"}}},
       .text = {.fields = {{"sizes", FieldKind::kIntArray, "broadcast_sizes"}}},
       .infer = infer_broadcast,
       .expand = expand_broadcast},
      {.name = "stablehlo.einsum",
       .summary = "products summed over the letters that the result does not have",
       .example = R"(module @jit_f {
  func.func public @main(%arg0: tensor<4x8xf32>, %arg1: tensor<8x2xf32>) -> tensor<4x2xf32> {
    %0 = stablehlo.einsum %arg0, %arg1, config = "ab,bc->ac" : (tensor<4x8xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>
    return %0 : tensor<4x2xf32>
  }
}
)",
       .signature = {.operand_min = 2,
                     .operand_max = 2,
                     .attributes = {{"einsum_config", true, "letters of the dims, \"ab,bc->ac\""}}},
       .text = {.fields = {{"config", FieldKind::kText, "einsum_config"}}},
       .infer = infer_einsum,
       .expand = expand_einsum},
      {.name = "stablehlo.unary_einsum",
       .summary = "sums over the letters that the result does not have, in the result's order",
       .example = R"(module @jit_f {
  func.func public @main(%arg0: tensor<4x8xf32>) -> tensor<8xf32> {
    %0 = stablehlo.unary_einsum %arg0, config = "ab->b" : (tensor<4x8xf32>) -> tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}
)",
       .signature = {.operand_min = 1,
                     .operand_max = 1,
                     .attributes = {{"einsum_config", true, "letters of the dims, \"ab->b\""}}},
       .text = {.fields = {{"config", FieldKind::kText, "einsum_config"}}},
       .infer = infer_unary_einsum,
       .expand = expand_unary_einsum},
      {.name = "stablehlo.torch_index_select",
       .summary = "the parts of a dimension that indices choose",
       .example = R"(module @jit_f {
  func.func public @main(%arg0: tensor<4x3xf32>, %arg1: tensor<2xi32>) -> tensor<2x3xf32> {
    %0 = "stablehlo.torch_index_select"(%arg0, %arg1) <{batch_dims = 0 : i64, dim = 0 : i64}> : (tensor<4x3xf32>, tensor<2xi32>) -> tensor<2x3xf32>
    return %0 : tensor<2x3xf32>
  }
}
)",
       .signature = {.operand_min = 2,
                     .operand_max = 2,
                     .attributes = {{"dim", true, "which dimension is chosen from"},
                                    {"batch_dims", true, "how many leading dims operand and index share"}}},
       .infer = infer_index_select,
       .expand = expand_index_select},
      {.name = "stablehlo.cross-replica-sum",
       .summary = "sums of the operands of groups of devices",
       .example = R"(module @jit_f {
  func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0 = "stablehlo.cross-replica-sum"(%arg0) <{replica_groups = dense<0> : tensor<1x1xi64>}> : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
)",
       .signature = {.operand_min = 1,
                     .operand_max = 1,
                     .attributes = {{"replica_groups", true, "who is summed with whom"}}},
       .infer = infer_cross_replica,
       .expand = expand_cross_replica_sum},
      {.name = "stablehlo.trace",
       .summary = "a mark for profiles; nothing happens",
       .example = R"(module @jit_f {
  func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    "stablehlo.trace"(%arg0) <{tag = "here"}> : (tensor<4xf32>) -> ()
    return %arg0 : tensor<4xf32>
  }
}
)",
       .signature = {.operand_min = 1, .operand_max = 1, .attributes = {{"tag", false, "its name"}}},
       .text = {.shape = TextShape::kTrace},
       .infer = infer_trace,
       .expand = expand_trace},
  };
}

}  // namespace meshd::ops
