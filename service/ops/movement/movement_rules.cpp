// Factor rules of the movement family: those of Shardy, transforms/propagation/op_sharding_rule_registry.cc.
#include <algorithm>
#include <numeric>

#include "service/ops/checks.h"
#include "service/ops/movement/movement.h"
#include "service/ops/rule_views.h"

namespace meshd::ops {
namespace {

using sharding::FactorKind;
using sharding::FactorRule;
using sharding::FactorRuleBuilder;
using tensor::Dims;

bool defined_by(const OpView& view, size_t operand, std::string_view name) {
  return operand < view.definitions.size() && view.definitions[operand] != nullptr &&
         view.definitions[operand]->name == name;
}

/// Neighbours can exchange their edges where each operand is a slice, or where slices of one value surround that value.
bool is_concatenation_of_slices(const OpView& view) {
  ir::ValueId sliced = ir::kNoValue;
  for (size_t i = 0; i < view.operands.size(); ++i) {
    if (defined_by(view, i, "stablehlo.slice")) continue;
    if (view.op == nullptr) return false;
    const ir::ValueId id = view.op->operands[i];
    if (sliced != ir::kNoValue) return false;
    sliced = id;
  }
  if (sliced == ir::kNoValue) return true;
  if (view.operands.size() < 2) return false;
  for (size_t i = 0; i < view.operands.size(); ++i) {
    if (view.op->operands[i] != sliced && view.definitions[i]->operands[0] != sliced) return false;
  }
  return true;
}

/// A factor that may be in the operand, the result, or both.
void add(FactorRuleBuilder& builder, int in, int out, int64_t size) { builder.factor({in}, {out}, size); }

/// The next factor of a side that is behind the other after they have parted: one that aligns them again if there is
/// one.
int64_t diverged_factor(int64_t next, int64_t gcd, int64_t smaller, int64_t larger) {
  if (larger % smaller == 0 && next % (larger / smaller) == 0) return larger / smaller;
  return next > gcd ? next / gcd : next;
}

}  // namespace

FactorRule reshape_rule(const OpView& view) {
  FactorRuleBuilder builder = rule_builder(view);
  const Dims& in = view.operands[0].dims();
  const Dims& out = view.results[0].dims();
  // An empty tensor has nothing to shard.
  if (std::count(in.begin(), in.end(), 0) != 0) return builder.build();
  size_t i = 0;
  size_t o = 0;
  int64_t in_dims = 1;  // product of the dims begun so far
  int64_t out_dims = 1;
  int64_t in_factors = 1;  // product of the factors given so far
  int64_t out_factors = 1;
  while (i < in.size() || o < out.size()) {
    if (i < in.size() && in[i] == 1) {
      add(builder, static_cast<int>(i++), -1, 1);
      continue;
    }
    if (o < out.size() && out[o] == 1) {
      add(builder, -1, static_cast<int>(o++), 1);
      continue;
    }
    if (i < in.size() && in_dims == in_factors) in_dims *= in[i];
    if (o < out.size() && out_dims == out_factors) out_dims *= out[o];
    int64_t next_in = in_dims / in_factors;
    int64_t next_out = out_dims / out_factors;
    const int64_t gcd = std::gcd(next_in, next_out);
    if (in_factors == out_factors && gcd > 1) {
      add(builder, static_cast<int>(i), static_cast<int>(o), gcd);
      in_factors *= gcd;
      out_factors *= gcd;
    } else if (in_factors == out_factors) {
      add(builder, static_cast<int>(i), -1, next_in);
      in_factors *= next_in;
      add(builder, -1, static_cast<int>(o), next_out);
      out_factors *= next_out;
    } else if (in_factors < out_factors) {
      next_in = diverged_factor(next_in, gcd, in_factors, out_factors);
      add(builder, static_cast<int>(i), -1, next_in);
      in_factors *= next_in;
    } else {
      next_out = diverged_factor(next_out, gcd, out_factors, in_factors);
      add(builder, -1, static_cast<int>(o), next_out);
      out_factors *= next_out;
    }
    if (i < in.size() && in_dims == in_factors) ++i;
    if (o < out.size() && out_dims == out_factors) ++o;
  }
  return builder.build();
}

FactorRule transpose_rule(const OpView& view) {
  FactorRuleBuilder builder = rule_builder(view);
  const std::vector<int64_t> permutation = ir::ints(attributes_of(view), "permutation");
  for (size_t out = 0; out < permutation.size(); ++out) {
    add(builder, static_cast<int>(permutation[out]), static_cast<int>(out), view.results[0].dims()[out]);
  }
  return builder.build();
}

FactorRule broadcast_in_dim_rule(const OpView& view) {
  FactorRuleBuilder builder = rule_builder(view);
  const Dims& in = view.operands[0].dims();
  const Dims& out = view.results[0].dims();
  const std::vector<int64_t> dims = ir::ints(attributes_of(view), "broadcast_dimensions");
  for (size_t o = 0; o < out.size(); ++o) {
    const auto at = std::find(dims.begin(), dims.end(), static_cast<int64_t>(o));
    int from = at == dims.end() ? -1 : static_cast<int>(at - dims.begin());
    if (from >= 0 && in[static_cast<size_t>(from)] == 1 && out[o] != 1) {
      add(builder, from, -1, 1);
      from = -1;
    }
    add(builder, from, static_cast<int>(o), out[o]);
  }
  return builder.build();
}

FactorRule slice_rule(const OpView& view) {
  FactorRuleBuilder builder = rule_builder(view);
  const Dims& in = view.operands[0].dims();
  const Dims& out = view.results[0].dims();
  for (size_t d = 0; d < in.size(); ++d) {
    builder.everywhere(static_cast<int>(d), in[d],
                       in[d] == out[d] ? FactorKind::kPassThrough : FactorKind::kPermutation);
  }
  return builder.build();
}

FactorRule dynamic_slice_rule(const OpView& view) {
  FactorRuleBuilder builder = rule_builder(view);
  const Dims& in = view.operands[0].dims();
  const Dims& out = view.results[0].dims();
  for (size_t d = 0; d < in.size(); ++d) {
    const bool sliced = in[d] != out[d];
    builder.everywhere(static_cast<int>(d), in[d], sliced ? FactorKind::kNeedReplication : FactorKind::kPassThrough,
                       sliced);
  }
  return builder.build();
}

FactorRule dynamic_update_slice_rule(const OpView& view) {
  FactorRuleBuilder builder = rule_builder(view);
  const Dims& operand = view.operands[0].dims();
  const Dims& update = view.operands[1].dims();
  bool constant_places = true;
  for (size_t i = 2; i < view.operands.size(); ++i) constant_places &= defined_by(view, i, "stablehlo.constant");
  const FactorKind kind = constant_places ? FactorKind::kPassThrough : FactorKind::kNeedReplication;
  for (size_t d = 0; d < operand.size(); ++d) {
    const int dim = static_cast<int>(d);
    if (operand[d] == update[d]) {
      builder.everywhere(dim, operand[d]);
      continue;
    }
    std::vector<int> operands(view.operands.size(), -1);
    operands[0] = dim;
    builder.factor(operands, {dim}, operand[d]);
    operands[0] = -1;
    operands[1] = dim;
    builder.factor(operands, {-1}, update[d], kind);
  }
  return builder.build();
}

FactorRule concatenate_rule(const OpView& view) {
  FactorRuleBuilder builder = rule_builder(view);
  const Dims& out = view.results[0].dims();
  const int64_t joined = ir::int_or(attributes_of(view), "dimension", 0);
  const FactorKind kind = is_concatenation_of_slices(view) ? FactorKind::kPermutation : FactorKind::kNeedReplication;
  for (size_t d = 0; d < out.size(); ++d) {
    builder.everywhere(static_cast<int>(d), out[d],
                       static_cast<int64_t>(d) == joined ? kind : FactorKind::kPassThrough);
  }
  return builder.build();
}

FactorRule reverse_rule(const OpView& view) {
  FactorRuleBuilder builder = rule_builder(view);
  const Dims& dims = view.results[0].dims();
  const std::vector<int64_t> reversed = ir::ints(attributes_of(view), "dimensions");
  for (size_t d = 0; d < dims.size(); ++d) {
    const bool turned = std::count(reversed.begin(), reversed.end(), static_cast<int64_t>(d)) != 0;
    builder.everywhere(static_cast<int>(d), dims[d], turned ? FactorKind::kPermutation : FactorKind::kPassThrough);
  }
  return builder.build();
}

}  // namespace meshd::ops
