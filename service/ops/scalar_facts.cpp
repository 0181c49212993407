#include "service/ops/scalar_facts.h"

#include "service/kernels/elementwise/scalar_op.h"
#include "service/ops/shards/shard_rules.h"

namespace meshd::ops {

Sum sum_of(const OpDef& def, const OpView& view) {
  const Body body = body_of(def, view);
  const auto* math = std::get_if<ScalarMath>(&body);
  if (math == nullptr || math->emit != nullptr) return Sum::kNone;
  const kernels::ScalarOp op = math->op_of == nullptr ? math->op : math->op_of(view);
  if (op == kernels::ScalarOp::kAdd) return Sum::kOfBoth;
  return op == kernels::ScalarOp::kSubtract ? Sum::kDifference : Sum::kNone;
}

std::vector<Neutral> neutral_elements(const OpView& reduction, size_t count) {
  using kernels::Identity;
  std::vector<Neutral> out;
  for (const kernels::ScalarOp op : combining_ops(reduction, count)) {
    const Identity identity = kernels::identity_of(op);
    const bool is_zero = identity == Identity::kSum || identity == Identity::kZero;
    out.push_back(is_zero ? Neutral::kZero : identity == Identity::kOne ? Neutral::kOne : Neutral::kOther);
  }
  return out;
}

}  // namespace meshd::ops
