#include "service/compile/rewrite/cut_batch_norms.h"

#include <algorithm>
#include <unordered_map>

#include "service/ir/walk.h"
#include "service/ops/writer.h"

namespace meshd::compile {
namespace {

using ir::ValueId;
using tensor::DType;

using Shardings = std::vector<std::optional<sharding::TensorSharding>>;

// One op in others.
class Spread {
 public:
  Spread(ir::Function& main, std::vector<ir::Op>& out, const ir::Op& op)
      : op_(op),
        writer_(main, out, op),
        type_(main.type_of(op.operands[0])),
        feature_(ir::int_or(op.attributes, "feature_index", 0)) {
    const ir::Attribute* epsilon = ir::find(op.attributes, "epsilon");
    if (epsilon != nullptr && epsilon->as<ir::FloatAttr>() != nullptr) epsilon_ = epsilon->as<ir::FloatAttr>()->value;
    for (int64_t d = 0; d < type_.rank(); ++d) {
      if (d == feature_) continue;
      others_.push_back(d);
      count_ *= static_cast<double>(type_.dims()[static_cast<size_t>(d)]);
    }
  }

  std::vector<ValueId> training() {
    const ValueId x = wide(op_.operands[0]);
    const ValueId mean = mean_of(x);
    const ValueId distance = pointwise("subtract", x, spread(mean));
    const ValueId variance = mean_of(pointwise("multiply", distance, distance));
    const ValueId factor = pointwise("divide", wide(op_.operands[1]), deviation(variance));
    const ValueId scaled = pointwise("multiply", distance, spread(factor));
    return {narrow(pointwise("add", scaled, spread(wide(op_.operands[2])))), narrow(mean), narrow(variance)};
  }

  std::vector<ValueId> grad() {
    const ValueId grad = wide(op_.operands[4]);
    const ValueId distance = pointwise("subtract", wide(op_.operands[0]), spread(wide(op_.operands[2])));
    const ValueId by = deviation(wide(op_.operands[3]));
    const ValueId unit = pointwise("divide", distance, spread(by));
    const ValueId grad_offset = sum_of(grad);
    const ValueId grad_scale = sum_of(pointwise("multiply", grad, unit));
    // What a change of x changes in mean and variance goes off again.
    const ValueId in_mean = spread(divided(grad_offset));
    const ValueId in_variance = pointwise("multiply", unit, spread(divided(grad_scale)));
    const ValueId left = pointwise("subtract", pointwise("subtract", grad, in_mean), in_variance);
    const ValueId factor = pointwise("divide", wide(op_.operands[1]), by);
    return {narrow(pointwise("multiply", left, spread(factor))), narrow(grad_scale), narrow(grad_offset)};
  }

 private:
  ValueId convert(ValueId value, DType dtype) {
    const ir::Type& type = writer_.type(value);
    if (type.dtype() == dtype) return value;
    return writer_.add("stablehlo.convert", {value}, {}, ir::Type::of({dtype, type.dims()}));
  }
  ValueId wide(ValueId value) { return convert(value, DType::kFloat64); }
  ValueId narrow(ValueId value) { return convert(value, type_.dtype()); }

  ValueId pointwise(const std::string& name, ValueId left, ValueId right) {
    return writer_.add("stablehlo." + name, {left, right});
  }

  ValueId spread(ValueId by_feature) { return writer_.broadcast(by_feature, type_.dims(), {feature_}); }

  ValueId sum_of(ValueId value) {
    const ir::Type scalar = ir::Type::of({DType::kFloat64, {}});
    std::vector<ir::Region> regions;
    regions.push_back(writer_.reducer("stablehlo.add", scalar));
    return writer_
        .add("stablehlo.reduce", {value, writer_.splat(scalar, 0)}, {{"dimensions", ir::int_array_attr(others_)}},
             std::vector<ir::Type>{ir::Type::of({DType::kFloat64, {type_.dims()[static_cast<size_t>(feature_)]}})},
             std::move(regions))
        .front();
  }

  ValueId divided(ValueId sum) { return pointwise("divide", sum, writer_.splat(writer_.type(sum), count_)); }
  ValueId mean_of(ValueId value) { return divided(sum_of(value)); }

  ValueId deviation(ValueId variance) {
    const ValueId epsilon = writer_.splat(writer_.type(variance), epsilon_);
    return writer_.add("stablehlo.sqrt", {pointwise("add", variance, epsilon)});
  }

  const ir::Op& op_;
  ops::Writer writer_;
  ir::Type type_;
  int64_t feature_;
  double epsilon_ = 0;
  double count_ = 1;
  std::vector<int64_t> others_;
};

bool is_cut_beside(const std::optional<sharding::TensorSharding>& sharding, int64_t feature) {
  if (!sharding) return false;
  for (size_t d = 0; d < sharding->dims.size(); ++d) {
    if (static_cast<int64_t>(d) != feature && !sharding->dims[d].axes.empty()) return true;
  }
  return false;
}

void rewrite(ir::Function& main, Shardings& shardings, ir::Op op, std::vector<ir::Op>& out) {
  const bool is_training = op.name == "stablehlo.batch_norm_training";
  const bool is_norm = is_training || op.name == "stablehlo.batch_norm_grad";
  const int64_t feature = ir::int_or(op.attributes, "feature_index", 0);
  const std::optional<sharding::TensorSharding> like =
      is_norm ? shardings[static_cast<size_t>(op.operands[0])] : std::nullopt;
  if (!is_cut_beside(like, feature)) {
    out.push_back(std::move(op));
    return;
  }
  const auto first = static_cast<ValueId>(main.values.size());
  const size_t before = out.size();
  Spread spread(main, out, op);
  const std::vector<ValueId> made = is_training ? spread.training() : spread.grad();
  shardings.resize(main.values.size());
  for (ValueId id = first; id < static_cast<ValueId>(main.values.size()); ++id) {
    const int64_t rank = main.type_of(id).rank();
    if (rank == 0) continue;
    auto& sharding = shardings[static_cast<size_t>(id)];
    sharding = like;
    if (rank == 1 && like->rank() > 1) sharding->dims = {like->dims[static_cast<size_t>(feature)]};
  }
  std::unordered_map<ValueId, ValueId> names;
  for (size_t i = 0; i < made.size(); ++i) names[made[i]] = op.results[i];
  for (size_t i = before; i < out.size(); ++i) ir::rename_values(out[i], names);
}

}  // namespace

void spread_batch_norms(ir::Module& module, Shardings& shardings) {
  for (ir::Function& function : module.functions) {
    if (function.name != "main") continue;
    shardings.resize(function.values.size());
    ir::rewrite_ops(function.body,
                    [&](ir::Op&& op, std::vector<ir::Op>& out) { rewrite(function, shardings, std::move(op), out); });
  }
}

}  // namespace meshd::compile
