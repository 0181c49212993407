#include "service/ops/shards/shard_rules.h"

#include <algorithm>
#include <array>

#include "service/kernels/elementwise/scalar_op.h"
#include "service/kernels/tile/tile_program.h"
#include "service/ops/kernel_interface.h"
#include "service/ops/op_def.h"
#include "service/ops/shards/shard_writers.h"

namespace meshd::ops {

Combine combined_by(kernels::ScalarOp op) { return {{op}, {0, 0}, {-1}}; }

std::optional<Combine> combine_sums(const OpView& view) {
  return combined_by(view.results[0].dtype() == tensor::DType::kBool ? kernels::ScalarOp::kOr
                                                                     : kernels::ScalarOp::kAdd);
}

std::vector<kernels::ScalarOp> combining_ops(const OpView& view, size_t count) {
  if (view.regions.size() != 1 || view.function == nullptr) return {};
  const kernels::TileProgram program = compile_scalar_region(*view.function, view.regions[0]);
  if (program.outputs.size() != count || program.input_count != static_cast<int>(2 * count)) return {};
  std::vector<kernels::ScalarOp> ops;
  for (size_t i = 0; i < count; ++i) {
    const std::array<uint16_t, 2> pair{static_cast<uint16_t>(i), static_cast<uint16_t>(count + i)};
    for (const kernels::TileInstruction& made : program.instructions) {
      if (made.result != program.outputs[i] || made.kernel == nullptr || kernels::operand_count(made.op) != 2) continue;
      const bool is_straight = made.operands[0] == pair[0] && made.operands[1] == pair[1];
      const bool is_swapped = made.operands[0] == pair[1] && made.operands[1] == pair[0];
      if (kernels::is_associative(made.op) && (is_straight || is_swapped)) ops.push_back(made.op);
    }
    if (ops.size() != i + 1) return {};
  }
  return ops;
}

bool combines_by(const OpView& view, size_t count, std::initializer_list<kernels::ScalarOp> known) {
  const std::vector<kernels::ScalarOp> body = combining_ops(view, count);
  return !body.empty() && std::all_of(body.begin(), body.end(), [&](kernels::ScalarOp op) {
    return std::find(known.begin(), known.end(), op) != known.end();
  });
}

}  // namespace meshd::ops
