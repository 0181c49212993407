#include "service/ops/scalar_facts.h"

#include "service/kernels/elementwise/scalar_op.h"

namespace meshd::ops {

Sum sum_of(const OpDef& def, const OpView& view) {
  const Body body = body_of(def, view);
  const auto* math = std::get_if<ScalarMath>(&body);
  if (math == nullptr || math->emit != nullptr) return Sum::kNone;
  const kernels::ScalarOp op = math->op_of == nullptr ? math->op : math->op_of(view);
  if (op == kernels::ScalarOp::kAdd) return Sum::kOfBoth;
  return op == kernels::ScalarOp::kSubtract ? Sum::kDifference : Sum::kNone;
}

}  // namespace meshd::ops
