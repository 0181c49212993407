// Rows of batch_norm_training, batch_norm_inference and batch_norm_grad.
#include <fmt/core.h>

#include <memory>
#include <string>

#include "service/kernels/fold/batch_norm.h"
#include "service/ops/checks.h"
#include "service/ops/families.h"
#include "service/ops/kernel_interface.h"
#include "service/ops/quantized.h"
#include "service/ops/reduction/reduction_vjp.h"
#include "service/ops/rewrites/writer.h"
#include "service/ops/rule_views.h"

namespace meshd::ops {
namespace {

using kernels::BatchNormKind;
using sharding::FactorKind;
using sharding::FactorRule;
using sharding::FactorRuleBuilder;
using tensor::Dims;

int64_t feature_of(const OpView& view) { return ir::int_or(attributes_of(view), "feature_index", -1); }

/// Operand 0 is the array; `whole` is another one of its shape, or 0; all others have an element for each feature.
void expect_batch_norm_operands(const OpView& view, const std::string& op, size_t count, size_t whole) {
  // checks: batch_norm_training C1: feature_index is below the rank of the operand
  // checks: batch_norm_training C2: operands have one element type
  // checks: batch_norm_training C3: scale has an element for each feature
  // checks: batch_norm_training C4: offset has an element for each feature
  // checks: batch_norm_inference C1: feature_index is below the rank of the operand
  // checks: batch_norm_inference C2: operands have one element type
  // checks: batch_norm_inference C3: scale has an element for each feature
  // checks: batch_norm_inference C4: offset has an element for each feature
  // checks: batch_norm_inference C5: mean has an element for each feature
  // checks: batch_norm_inference C6: variance has an element for each feature
  // checks: batch_norm_grad C1: feature_index is below the rank of the operand
  // checks: batch_norm_grad C2: operands have one element type
  // checks: batch_norm_grad C3: grad_output has the shape of the operand
  // checks: batch_norm_grad C5: scale, mean and variance have an element for each feature
  const bool is_gradient = whole != 0;
  expect_tensor_operands(view, op, count);
  const ir::Type& array = view.operands[0];
  const int64_t feature = feature_of(view);
  if (feature < 0 || feature >= array.rank()) {
    reject(view, fmt::format("{} C1: feature_index must be below {}, got {}", op, array.rank(), feature));
  }
  const Dims features = {array.dims()[static_cast<size_t>(feature)]};
  for (size_t i = 1; i < count; ++i) {
    if (view.operands[i].dtype() != array.dtype()) {
      reject(view, op + " C2: operands must have one element type, got " + operand_text(view, 0) + " and " +
                       operand_text(view, i));
    }
    const Dims& expected = whole == i ? array.dims() : features;
    if (compatible_shapes(view.operands[i].dims(), expected)) continue;
    const std::string label = !is_gradient ? fmt::format(" C{}", i + 2) : whole == i ? " C3" : " C5";
    reject(view, fmt::format("{}{}: operand {} must be {}, got {}", op, label, i,
                             ir::to_string(ir::Type::of({array.dtype(), expected})), operand_text(view, i)));
  }
}

std::vector<ir::Type> infer_inference(const OpView& view) {
  expect_batch_norm_operands(view, "batch_norm_inference", 5, 0);
  return agree(view, "batch_norm_inference C7", {view.operands[0]});
}
std::vector<ir::Type> infer_training(const OpView& view) {
  expect_batch_norm_operands(view, "batch_norm_training", 3, 0);
  return agree(view, "batch_norm_training C7", {view.operands[0], view.operands[1], view.operands[1]});
}
std::vector<ir::Type> infer_grad(const OpView& view) {
  expect_batch_norm_operands(view, "batch_norm_grad", 5, 4);
  return agree(view, "batch_norm_grad C4", {view.operands[0], view.operands[1], view.operands[1]});
}

FactorRule normalization_rule(const OpView& view, FactorKind others) {
  const Dims& dims = view.operands[0].dims();
  const int64_t feature = feature_of(view);
  const auto places = [&](std::span<const ir::Type> types, size_t dim) {
    const bool is_feature = static_cast<int64_t>(dim) == feature;
    std::vector<int> out;
    for (size_t i = 0; i < types.size(); ++i) {
      const bool is_whole = i == 0 || types[i].rank() == static_cast<int64_t>(dims.size());
      // In one dimension everything has the shape of the array.
      out.push_back(dims.size() > 1 && is_whole ? static_cast<int>(dim) : is_feature ? 0 : -1);
    }
    return out;
  };
  FactorRuleBuilder builder = rule_builder(view);
  for (size_t d = 0; d < dims.size(); ++d) {
    const bool is_feature = static_cast<int64_t>(d) == feature;
    builder.factor(places(view.operands, d), places(view.results, d), dims[d],
                   is_feature ? FactorKind::kPassThrough : others);
  }
  return builder.build();
}

FactorRule inference_rule(const OpView& view) { return normalization_rule(view, FactorKind::kPassThrough); }
/// Mean and variance need all elements of a feature.
FactorRule statistics_rule(const OpView& view) { return normalization_rule(view, FactorKind::kNeedReplication); }

double epsilon_of(const OpView& view) {
  const ir::Attribute* epsilon = ir::find(attributes_of(view), "epsilon");
  const auto* value = epsilon != nullptr ? epsilon->as<ir::FloatAttr>() : nullptr;
  if (value == nullptr) reject(view, "batch_norm: 'epsilon' must be a number");
  return value->value;
}

template <BatchNormKind Kind>
PreparedKernel prepare_batch_norm(const OpView& local) {
  const ir::Type& array = local.operands[0];
  const auto feature = static_cast<size_t>(feature_of(local));
  kernels::BatchNorm::Sizes sizes;
  for (size_t d = 0; d < array.dims().size(); ++d) {
    int64_t& size = d < feature ? sizes.outer : d == feature ? sizes.features : sizes.inner;
    size *= array.dims()[d];
  }
  const auto norm = std::make_shared<const kernels::BatchNorm>(Kind, sizes, epsilon_of(local), array.dtype());
  PreparedKernel kernel;
  kernel.work_count = norm->work_count();
  kernel.passes_checkpoints = true;
  kernel.scratch_bytes = norm->scratch_bytes();
  kernel.flops = 8.0 * static_cast<double>(tensor::element_count(array.dims()));
  for (const ir::Type& type : local.operands) kernel.bytes += static_cast<double>(tensor::byte_count(type.tensor));
  for (const ir::Type& type : local.results) kernel.bytes += static_cast<double>(tensor::byte_count(type.tensor));
  kernel.run = [norm](const KernelCall& call) {
    norm->run(call.operands, call.results, call.begin, call.end, call.scratch, call.checkpoint);
  };
  return kernel;
}

/// Batch normalisation as sums over all dims but the features', in 64 bits, as the kernel computes.
class SumsOfFeatures {
 public:
  SumsOfFeatures(const OpView& view, Writer& writer)
      : op_(*view.op),
        writer_(writer),
        type_(view.operands[0]),
        feature_(feature_of(view)),
        epsilon_(epsilon_of(view)) {
    for (int64_t d = 0; d < type_.rank(); ++d) {
      if (d == feature_) continue;
      others_.push_back(d);
      count_ *= static_cast<double>(type_.dims()[static_cast<size_t>(d)]);
    }
  }

  std::vector<ir::ValueId> training() {
    const ir::ValueId x = wide(op_.operands[0]);
    const ir::ValueId mean = mean_of(x);
    const ir::ValueId distance = pointwise("subtract", x, spread(mean));
    const ir::ValueId variance = mean_of(pointwise("multiply", distance, distance));
    const ir::ValueId factor = pointwise("divide", wide(op_.operands[1]), deviation(variance));
    const ir::ValueId scaled = pointwise("multiply", distance, spread(factor));
    return {narrow(pointwise("add", scaled, spread(wide(op_.operands[2])))), narrow(mean), narrow(variance)};
  }

  std::vector<ir::ValueId> grad() {
    const ir::ValueId grad = wide(op_.operands[4]);
    const ir::ValueId distance = pointwise("subtract", wide(op_.operands[0]), spread(wide(op_.operands[2])));
    const ir::ValueId by = deviation(wide(op_.operands[3]));
    const ir::ValueId unit = pointwise("divide", distance, spread(by));
    const ir::ValueId grad_offset = sum_of(grad);
    const ir::ValueId grad_scale = sum_of(pointwise("multiply", grad, unit));
    // Subtracts the gradients through mean and variance.
    const ir::ValueId in_mean = spread(divided(grad_offset));
    const ir::ValueId in_variance = pointwise("multiply", unit, spread(divided(grad_scale)));
    const ir::ValueId left = pointwise("subtract", pointwise("subtract", grad, in_mean), in_variance);
    const ir::ValueId factor = pointwise("divide", wide(op_.operands[1]), by);
    return {narrow(pointwise("multiply", left, spread(factor))), narrow(grad_scale), narrow(grad_offset)};
  }

 private:
  ir::ValueId convert(ir::ValueId value, tensor::DType dtype) {
    const ir::Type& type = writer_.type(value);
    if (type.dtype() == dtype) return value;
    return writer_.add("stablehlo.convert", {value}, {}, ir::Type::of({dtype, type.dims()}));
  }
  ir::ValueId wide(ir::ValueId value) { return convert(value, tensor::DType::kFloat64); }
  ir::ValueId narrow(ir::ValueId value) { return convert(value, type_.dtype()); }

  ir::ValueId pointwise(const std::string& name, ir::ValueId left, ir::ValueId right) {
    return writer_.add("stablehlo." + name, {left, right});
  }

  ir::ValueId spread(ir::ValueId by_feature) { return writer_.broadcast(by_feature, type_.dims(), {feature_}); }

  ir::ValueId sum_of(ir::ValueId value) {
    const ir::Type scalar = ir::Type::of({tensor::DType::kFloat64, {}});
    std::vector<ir::Region> regions;
    regions.push_back(writer_.reducer("stablehlo.add", scalar));
    return writer_
        .add("stablehlo.reduce", {value, writer_.splat(scalar, 0)}, {{"dimensions", ir::int_array_attr(others_)}},
             std::vector<ir::Type>{
                 ir::Type::of({tensor::DType::kFloat64, {type_.dims()[static_cast<size_t>(feature_)]}})},
             std::move(regions))
        .front();
  }

  ir::ValueId divided(ir::ValueId sum) { return pointwise("divide", sum, writer_.splat(writer_.type(sum), count_)); }
  ir::ValueId mean_of(ir::ValueId value) { return divided(sum_of(value)); }

  ir::ValueId deviation(ir::ValueId variance) {
    const ir::ValueId epsilon = writer_.splat(writer_.type(variance), epsilon_);
    return writer_.add("stablehlo.sqrt", {pointwise("add", variance, epsilon)});
  }

  const ir::Op& op_;
  Writer& writer_;
  ir::Type type_;
  int64_t feature_;
  double epsilon_;
  double count_ = 1;
  std::vector<int64_t> others_;
};

std::optional<std::vector<ir::ValueId>> expand_training(const OpView& view, Writer& writer) {
  return SumsOfFeatures(view, writer).training();
}
std::optional<std::vector<ir::ValueId>> expand_grad(const OpView& view, Writer& writer) {
  return SumsOfFeatures(view, writer).grad();
}

std::vector<AttributeSpec> attributes() {
  return {{"epsilon", true, "is added to variances"}, {"feature_index", true, "which dimension has the features"}};
}

}  // namespace

std::vector<OpDef> batch_norm_rows() {
  return {
      {.name = "stablehlo.batch_norm_inference",
       .summary = "features normalised by given mean and variance, then scaled and moved",
       .example = R"(module @jit_f {
  func.func public @main(%arg0: tensor<4x3xf32>, %arg1: tensor<3xf32>, %arg2: tensor<3xf32>, %arg3: tensor<3xf32>, %arg4: tensor<3xf32>) -> tensor<4x3xf32> {
    %0 = "stablehlo.batch_norm_inference"(%arg0, %arg1, %arg2, %arg3, %arg4) <{epsilon = 1.000000e-03 : f32, feature_index = 1 : i64}> : (tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<4x3xf32>
    return %0 : tensor<4x3xf32>
  }
}
)",
       .signature = {.operand_min = 5, .operand_max = 5, .attributes = attributes()},
       .infer = infer_inference,
       .quantized = kQuantizedMath,
       .rule = inference_rule,
       .body = LocalKernel{prepare_batch_norm<BatchNormKind::kInference>},
       .derivative = {vjp_batch_norm_inference}},
      {.name = "stablehlo.batch_norm_training",
       .summary = "features normalised by their own mean and variance, which are results too",
       .example = R"(module @jit_f {
  func.func public @main(%arg0: tensor<4x3xf32>, %arg1: tensor<3xf32>, %arg2: tensor<3xf32>) -> (tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>) {
    %0:3 = "stablehlo.batch_norm_training"(%arg0, %arg1, %arg2) <{epsilon = 1.000000e-03 : f32, feature_index = 1 : i64}> : (tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>)
    return %0#0, %0#1, %0#2 : tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>
  }
}
)",
       .signature = {.operand_min = 3, .operand_max = 3, .attributes = attributes()},
       .infer = infer_training,
       .quantized = kQuantizedMath,
       .rule = statistics_rule,
       .body = LocalKernel{prepare_batch_norm<BatchNormKind::kTraining>},
       .derivative = {vjp_batch_norm_training},
       .sharded = {feature_of, expand_training}},
      {.name = "stablehlo.batch_norm_grad",
       .summary = "gradients of operand, scale and offset of batch_norm_training",
       .example = R"(module @jit_f {
  func.func public @main(%arg0: tensor<4x3xf32>, %arg1: tensor<3xf32>, %arg2: tensor<3xf32>, %arg3: tensor<3xf32>, %arg4: tensor<4x3xf32>) -> (tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>) {
    %0:3 = "stablehlo.batch_norm_grad"(%arg0, %arg1, %arg2, %arg3, %arg4) <{epsilon = 1.000000e-03 : f32, feature_index = 1 : i64}> : (tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<4x3xf32>) -> (tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>)
    return %0#0, %0#1, %0#2 : tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>
  }
}
)",
       .signature = {.operand_min = 5, .operand_max = 5, .attributes = attributes()},
       .infer = infer_grad,
       .quantized = kQuantizedMath,
       .rule = statistics_rule,
       .body = LocalKernel{prepare_batch_norm<BatchNormKind::kGrad>},
       .sharded = {feature_of, expand_grad}},
  };
}

}  // namespace meshd::ops
