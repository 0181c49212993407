#include "service/ops/heavy_rules.h"

#include <algorithm>
#include <functional>

#include "service/ops/rule_views.h"

namespace meshd::ops {
namespace {

using sharding::FactorKind;
using sharding::FactorRule;
using sharding::FactorRuleBuilder;
using tensor::Dims;

bool has(const std::vector<int64_t>& list, int64_t value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

int64_t size_of(const Dims& dims, int64_t dim) { return dims.at(static_cast<size_t>(dim)); }

/// What gather and scatter have in common: dimensions of the input, the indices and the slices that go together (-1:
/// not there).
using AddFactor = std::function<void(int input, int indices, int slices, int64_t size, FactorKind kind, bool blocked)>;

struct IndexedDims {
  std::vector<int64_t> offset;     ///< of the slices
  std::vector<int64_t> collapsed;  ///< of the input
  std::vector<int64_t> input_batching;
  std::vector<int64_t> indices_batching;
  int64_t index_vector = 0;  ///< of the indices; their rank when there is none
};

void offset_factor(bool is_scatter, int input, int slices, int64_t input_size, int64_t slice_size,
                   const AddFactor& add) {
  if (input_size == slice_size) return add(input, -1, slices, input_size, FactorKind::kPassThrough, false);
  if (!is_scatter && slice_size != 1) return add(input, -1, slices, input_size, FactorKind::kNeedReplication, true);
  // A scatter's input may stay cut; a gather of single rows leaves partial results.
  add(input, -1, -1, input_size, is_scatter ? FactorKind::kNeedReplication : FactorKind::kReduction, false);
  add(-1, -1, slices, slice_size, FactorKind::kNeedReplication, false);
}

void indexed_factors(bool is_scatter, const Dims& input, const Dims& indices, const Dims& slices,
                     const IndexedDims& dims, const AddFactor& add) {
  int64_t input_dim = 0;
  int64_t batch = 0;
  for (size_t i = 0; i < slices.size(); ++i) {
    const int dim = static_cast<int>(i);
    if (has(dims.offset, dim)) {
      while (has(dims.collapsed, input_dim) || has(dims.input_batching, input_dim)) ++input_dim;
      offset_factor(is_scatter, static_cast<int>(input_dim), dim, size_of(input, input_dim), slices[i], add);
      ++input_dim;
      continue;
    }
    const int64_t of_indices = batch < dims.index_vector ? batch : batch + 1;
    const auto found = std::find(dims.indices_batching.begin(), dims.indices_batching.end(), of_indices);
    const bool is_explicit = found != dims.indices_batching.end();
    const int of_input =
        is_explicit
            ? static_cast<int>(dims.input_batching.at(static_cast<size_t>(found - dims.indices_batching.begin())))
            : -1;
    // Updates from several devices go to one place.
    const FactorKind kind = is_scatter && !is_explicit ? FactorKind::kReduction : FactorKind::kPassThrough;
    add(of_input, static_cast<int>(of_indices), dim, slices[i], kind, false);
    ++batch;
  }
  for (const int64_t dim : dims.collapsed) {
    add(static_cast<int>(dim), -1, -1, size_of(input, dim),
        is_scatter ? FactorKind::kPassThrough : FactorKind::kReduction, false);
  }
  if (dims.index_vector < static_cast<int64_t>(indices.size())) {
    add(-1, static_cast<int>(dims.index_vector), -1, size_of(indices, dims.index_vector), FactorKind::kNeedReplication,
        false);
  }
}

}  // namespace

FactorRule reduce_window_rule(const OpView& view) {
  const Dims& out = view.results[0].dims();
  const std::vector<int64_t> window = ir::ints(*view.attributes, "window_dimensions");
  FactorRuleBuilder builder = rule_builder(view);
  for (size_t dim = 0; dim < out.size(); ++dim) {
    const bool alone = window.at(dim) == 1 && out[dim] == view.operands[0].dims()[dim];
    builder.everywhere(static_cast<int>(dim), out[dim], alone ? FactorKind::kPassThrough : FactorKind::kPermutation);
  }
  return builder.build();
}

FactorRule select_and_scatter_rule(const OpView& view) {
  const Dims& input = view.operands[0].dims();
  const Dims& source = view.operands[1].dims();
  FactorRuleBuilder builder = rule_builder(view);
  for (size_t i = 0; i < input.size(); ++i) {
    const int dim = static_cast<int>(i);
    if (input[i] == source[i]) {
      builder.everywhere(dim, input[i]);
      continue;
    }
    // Neighbours of the input exchange edges; the source is wanted whole.
    builder.factor({-1, dim, -1}, {-1}, source[i], FactorKind::kNeedReplication);
    builder.factor({dim, -1, -1}, {dim}, input[i], FactorKind::kPermutation);
  }
  return builder.build();
}

FactorRule sort_rule(const OpView& view) {
  const Dims& dims = view.operands[0].dims();
  const int64_t rank = static_cast<int64_t>(dims.size());
  int64_t along = ir::int_or(*view.attributes, "dimension", -1);
  if (along < 0) along += rank;
  bool others_are_one = true;
  for (int64_t dim = 0; dim < rank; ++dim) others_are_one = others_are_one && (dim == along || size_of(dims, dim) == 1);
  FactorRuleBuilder builder = rule_builder(view);
  for (int64_t dim = 0; dim < rank; ++dim) {
    const bool sorted = dim == along;
    builder.everywhere(static_cast<int>(dim), size_of(dims, dim),
                       sorted ? FactorKind::kNeedReplication : FactorKind::kPassThrough, sorted && others_are_one);
  }
  return builder.build();
}

FactorRule fft_rule(const OpView& view) {
  const Dims& in = view.operands[0].dims();
  const size_t batch = in.size() - ir::ints(*view.attributes, "fft_length").size();
  FactorRuleBuilder builder = rule_builder(view);
  for (size_t dim = 0; dim < in.size(); ++dim) {
    const bool truncated = dim + 1 == in.size() && in.back() != view.results[0].dims().back();
    builder.everywhere(static_cast<int>(dim), in[dim],
                       dim < batch ? FactorKind::kPassThrough : FactorKind::kNeedReplication,
                       dim >= batch && truncated);
  }
  return builder.build();
}

FactorRule cholesky_rule(const OpView& view) {
  const Dims& dims = view.operands[0].dims();
  FactorRuleBuilder builder = rule_builder(view);
  for (size_t dim = 0; dim < dims.size(); ++dim) {
    builder.everywhere(static_cast<int>(dim), dims[dim],
                       dim + 2 < dims.size() ? FactorKind::kPassThrough : FactorKind::kNeedReplication);
  }
  return builder.build();
}

FactorRule triangular_solve_rule(const OpView& view) {
  const Dims& a = view.operands[0].dims();
  const Dims& b = view.operands[1].dims();
  const int rows = static_cast<int>(a.size()) - 2;
  const int columns = rows + 1;
  const std::string transpose = ir::string_or(*view.attributes, "transpose_a", "NO_TRANSPOSE");
  const bool transposed = transpose == "TRANSPOSE" || transpose == "ADJOINT";
  const bool left = ir::bool_or(*view.attributes, "left_side", true);
  FactorRuleBuilder builder = rule_builder(view);
  for (int dim = 0; dim < rows; ++dim) builder.everywhere(dim, size_of(a, dim));
  // op(a) x = b, or x op(a) = b.
  const int a_free = (left != transposed) ? rows : columns;
  const int a_contracting = a_free == rows ? columns : rows;
  const int b_with_a = left ? rows : columns;
  const int b_free = left ? columns : rows;
  const auto with_a = [&] {
    builder.factor({a_free, b_with_a}, {-1}, size_of(a, a_free), FactorKind::kNeedReplication);
  };
  const auto free = [&] { builder.factor({-1, b_free}, {b_free}, size_of(b, b_free), FactorKind::kNeedReplication); };
  if (left) with_a();
  free();
  if (!left) with_a();
  builder.factor({a_contracting, -1}, {b_with_a}, size_of(a, a_contracting), FactorKind::kNeedReplication);
  return builder.build();
}

FactorRule gather_rule(const OpView& view) {
  const ir::AttributeList& numbers = ir::dict(*view.attributes, "dimension_numbers").entries;
  const IndexedDims dims = {ir::ints_or(numbers, "offset_dims", {}), ir::ints_or(numbers, "collapsed_slice_dims", {}),
                            ir::ints_or(numbers, "operand_batching_dims", {}),
                            ir::ints_or(numbers, "start_indices_batching_dims", {}),
                            ir::int_or(numbers, "index_vector_dim", 0)};
  FactorRuleBuilder builder = rule_builder(view);
  indexed_factors(false, view.operands[0].dims(), view.operands[1].dims(), view.results[0].dims(), dims,
                  [&](int input, int indices, int slices, int64_t size, FactorKind kind, bool blocked) {
                    builder.factor({input, indices}, {slices}, size, kind, blocked);
                  });
  return builder.build();
}

FactorRule scatter_rule(const OpView& view) {
  const ir::AttributeList& numbers = ir::dict(*view.attributes, "scatter_dimension_numbers").entries;
  const IndexedDims dims = {
      ir::ints_or(numbers, "update_window_dims", {}), ir::ints_or(numbers, "inserted_window_dims", {}),
      ir::ints_or(numbers, "input_batching_dims", {}), ir::ints_or(numbers, "scatter_indices_batching_dims", {}),
      ir::int_or(numbers, "index_vector_dim", 0)};
  const size_t inputs = view.operands.size() / 2;
  // Where the body only replaces, partial results cannot be put together.
  const bool replaces = view.regions.size() == 1 && view.regions[0].ops.size() == 1;
  FactorRuleBuilder builder = rule_builder(view);
  indexed_factors(true, view.operands[0].dims(), view.operands[inputs].dims(), view.operands[inputs + 1].dims(), dims,
                  [&](int input, int indices, int slices, int64_t size, FactorKind kind, bool blocked) {
                    std::vector<int> operands(inputs, input);
                    operands.push_back(indices);
                    operands.insert(operands.end(), inputs, slices);
                    if (kind == FactorKind::kReduction && replaces) kind = FactorKind::kNeedReplication;
                    builder.factor(std::move(operands), std::vector<int>(inputs, input), size, kind, blocked);
                  });
  return builder.build();
}

FactorRule convolution_rule(const OpView& view) {
  const ir::AttributeList& numbers = ir::dict(*view.attributes, "dimension_numbers").entries;
  const auto number = [&](const char* name) { return static_cast<int>(ir::int_or(numbers, name, 0)); };
  const auto many = [&](const char* name) { return ir::ints_or(numbers, name, {}); };
  const Dims& lhs = view.operands[0].dims();
  const Dims& rhs = view.operands[1].dims();
  const Dims& out = view.results[0].dims();
  const int64_t batch_groups = ir::int_or(*view.attributes, "batch_group_count", 1);
  const int64_t feature_groups = ir::int_or(*view.attributes, "feature_group_count", 1);
  const int in_batch = number("input_batch_dimension");
  const int in_feature = number("input_feature_dimension");
  const int kernel_in = number("kernel_input_feature_dimension");
  const int kernel_out = number("kernel_output_feature_dimension");
  const int out_batch = number("output_batch_dimension");
  const int out_feature = number("output_feature_dimension");
  FactorRuleBuilder builder = rule_builder(view);
  if (batch_groups > 1) builder.factor({in_batch, kernel_out}, {out_feature}, batch_groups);
  builder.factor({in_batch, -1}, {out_batch}, size_of(out, out_batch));
  const std::vector<int64_t> in_spatial = many("input_spatial_dimensions");
  const std::vector<int64_t> kernel_spatial = many("kernel_spatial_dimensions");
  const std::vector<int64_t> out_spatial = many("output_spatial_dimensions");
  for (size_t i = 0; i < in_spatial.size(); ++i) {
    const int in_dim = static_cast<int>(in_spatial[i]);
    const int kernel_dim = static_cast<int>(kernel_spatial[i]);
    const int out_dim = static_cast<int>(out_spatial[i]);
    const int64_t windows = size_of(out, out_dim);
    const int64_t window = size_of(rhs, kernel_dim);
    int64_t left = size_of(lhs, in_dim);
    const auto add = [&](int64_t size, bool contracting) {
      size = std::min(left, size);
      if (size <= 1) return;
      builder.factor({in_dim, contracting ? kernel_dim : -1}, {contracting ? -1 : out_dim}, size,
                     contracting ? FactorKind::kReduction : FactorKind::kPermutation);
      left /= size;
    };
    add(std::max(windows, window), windows < window);
    add(std::min(windows, window), windows >= window);
  }
  if (feature_groups > 1) builder.factor({in_feature, kernel_out}, {out_feature}, feature_groups);
  // A feature of its own group has nothing beside the group.
  const int64_t group_size = size_of(rhs, kernel_in);
  const int64_t group_outputs = size_of(out, out_feature) / (batch_groups * feature_groups);
  builder.factor({feature_groups > 1 && group_size == 1 ? -1 : in_feature, kernel_in}, {-1}, group_size,
                 FactorKind::kReduction);
  if (group_outputs > 1 || batch_groups * feature_groups == 1)
    builder.factor({-1, kernel_out}, {out_feature}, group_outputs);
  return builder.build();
}

FactorRule rng_bit_generator_rule(const OpView& view) {
  FactorRuleBuilder builder = rule_builder(view);
  const Dims& state = view.operands[0].dims();
  const Dims& out = view.results[1].dims();
  for (size_t dim = 0; dim < state.size(); ++dim) {
    builder.factor({static_cast<int>(dim)}, {static_cast<int>(dim), -1}, state[dim], FactorKind::kNeedReplication,
                   true);
  }
  for (size_t dim = 0; dim < out.size(); ++dim) builder.factor({-1}, {-1, static_cast<int>(dim)}, out[dim]);
  return builder.build();
}

FactorRule batch_norm_rule(const OpView& view) {
  const Dims& dims = view.operands[0].dims();
  const int64_t feature = ir::int_or(*view.attributes, "feature_index", 0);
  const auto places = [&](std::span<const ir::Type> types, int64_t dim) {
    std::vector<int> out;
    for (const ir::Type& type : types) {
      const bool is_whole = type.rank() == static_cast<int64_t>(dims.size());
      out.push_back(is_whole ? static_cast<int>(dim) : dim == feature ? 0 : -1);
    }
    return out;
  };
  FactorRuleBuilder builder = rule_builder(view);
  for (int64_t dim = 0; dim < static_cast<int64_t>(dims.size()); ++dim) {
    builder.factor(places(view.operands, dim), places(view.results, dim), size_of(dims, dim));
  }
  return builder.build();
}

}  // namespace meshd::ops
