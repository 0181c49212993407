#include "service/compile/rewrite/sharded_forms.h"

#include <unordered_map>

#include "service/ir/walk.h"
#include "service/ops/op_def.h"
#include "service/ops/rewrites/writer.h"

namespace meshd::compile {
namespace {

using ir::ValueId;
using Shardings = std::vector<std::optional<sharding::TensorSharding>>;

bool is_sharded_beside(const std::optional<sharding::TensorSharding>& sharding, size_t free_dim) {
  if (!sharding) return false;
  for (size_t d = 0; d < sharding->dims.size(); ++d) {
    if (d != free_dim && !sharding->dims[d].axes.empty()) return true;
  }
  return false;
}

void rewrite(ir::Function& main, Shardings& shardings, ir::Op op, std::vector<ir::Op>& out) {
  const ops::ShardedForm& form = ops::op(op.code).sharded;
  if (form.expand == nullptr) {
    out.push_back(std::move(op));
    return;
  }
  const std::vector<ir::Type> operands = main.types_of(op.operands);
  const ops::OpView view{operands, {}, &op.attributes, op.regions, &main, &op.location, &op};
  const auto free_dim = static_cast<size_t>(form.free_dim(view));
  const std::optional<sharding::TensorSharding> like = shardings[static_cast<size_t>(op.operands[0])];
  if (!is_sharded_beside(like, free_dim)) {
    out.push_back(std::move(op));
    return;
  }
  const auto first = static_cast<ValueId>(main.values.size());
  const size_t before = out.size();
  ops::Writer writer(main, out, op);
  const std::vector<ValueId> made = *form.expand(view, writer);
  shardings.resize(main.values.size());
  for (ValueId id = first; id < static_cast<ValueId>(main.values.size()); ++id) {
    const int64_t rank = main.type_of(id).rank();
    if (rank == 0) continue;
    auto& sharding = shardings[static_cast<size_t>(id)];
    sharding = like;
    if (rank == 1 && like->rank() > 1) sharding->dims = {like->dims[free_dim]};
  }
  std::unordered_map<ValueId, ValueId> names;
  for (size_t i = 0; i < made.size(); ++i) names[made[i]] = op.results[i];
  for (size_t i = before; i < out.size(); ++i) ir::rename_values(out[i], names);
}

}  // namespace

void write_sharded_forms(ir::Module& module, Shardings& shardings) {
  for (ir::Function& function : module.functions) {
    if (function.name != "main") continue;
    shardings.resize(function.values.size());
    ir::rewrite_ops(function.body,
                    [&](ir::Op&& op, std::vector<ir::Op>& out) { rewrite(function, shardings, std::move(op), out); });
  }
}

}  // namespace meshd::compile
