// Two forms. Where each operand is one element all over, so is the result, of whatever shape and sharding: one lane is
// computed. Else all elements are, of arrays that every device has whole.
//
// Example, the degrees of freedom of jnp.var of 256 elements: n = 256 - convert(0); p = compare GT n, 0. Out: n = 256,
// p = true, and no step.
#include "service/compile/plan/constant_folding.h"

#include <algorithm>
#include <utility>

#include "service/compile/plan/plan_builder.h"
#include "service/ops/evaluate.h"
#include "service/ops/op_def.h"
#include "service/ops/pointwise/evaluate.h"

namespace meshd::compile {
namespace {

using ir::DenseAttr;
using partition::ShardedType;

constexpr size_t kMostKeptBytes = size_t{16} << 20;

bool is_element(const DenseAttr& value) { return value.splat || tensor::element_count(value.type.dims) == 1; }

}  // namespace

void ConstantFolder::note(LocalId id, DenseAttr value) {
  if (bytes_ + value.bytes->size() > kMostKeptBytes) return;
  bytes_ += value.bytes->size();
  values_.insert_or_assign(id, std::move(value));
}

const DenseAttr* ConstantFolder::find(LocalId id) const {
  const auto found = values_.find(id);
  return found == values_.end() ? nullptr : &found->second;
}

std::optional<DenseAttr> ConstantFolder::fold(const LocalOp& op, std::span<const LocalId> operands) const {
  const bool is_iota = op.def->fuse.iota_dim != nullptr;
  if (op.results.size() != 1 || (operands.empty() && !is_iota)) return std::nullopt;
  std::vector<const DenseAttr*> values;
  for (const LocalId id : operands) {
    const DenseAttr* const value = find(id);
    if (value == nullptr) return std::nullopt;
    values.push_back(value);
  }
  if (!is_pure(program_, op)) return std::nullopt;
  const ShardedType& type = program_.type(op.results[0]);
  const int64_t size = tensor::element_count(type.local.dims);
  if (size == 0) return std::nullopt;
  const LocalView local(program_, op);
  const auto whole = [&](std::vector<std::byte> bytes, bool is_splat) {
    return DenseAttr{.type = type.logical(),
                     .splat = is_splat,
                     .bytes = std::make_shared<const std::vector<std::byte>>(std::move(bytes))};
  };
  const bool is_small = size <= kMostFolded && is_whole(type);
  // By the op's own kernel, of few elements.
  const auto evaluated = [&](const std::vector<ops::SmallValue>& known) {
    const auto results = ops::evaluate_small(*op.def, local.view, known);
    return results ? std::optional(whole(*results->front(), false)) : std::nullopt;
  };
  if (op.def->fuse.read != nullptr && values.size() == 1) {
    if (is_element(*values[0])) return whole(*values[0]->bytes, true);
    if (!is_small || !is_whole(program_.type(operands[0]))) return std::nullopt;
    if (op.def->fuse.read(local.view).same_bytes) return whole(*values[0]->bytes, false);
    return evaluated({values[0]->bytes});
  }
  if (is_iota) return is_small ? evaluated({}) : std::nullopt;
  const ops::Body body = ops::body_of(*op.def, local.view);
  const auto* const math = std::get_if<ops::ScalarMath>(&body);
  if (math == nullptr) return std::nullopt;
  std::vector<ops::KnownOperand> known;
  for (const DenseAttr* value : values) known.push_back({value->type.dtype, is_element(*value), *value->bytes});
  if (std::all_of(values.begin(), values.end(), [](const DenseAttr* value) { return is_element(*value); }))
    return whole(ops::evaluate(*math, local.view, known, 1), true);
  for (const DenseAttr* value : values) {
    if (!is_small || (!is_element(*value) && value->type.dims != type.local.dims)) return std::nullopt;
  }
  return whole(ops::evaluate(*math, local.view, known, size), false);
}

}  // namespace meshd::compile
