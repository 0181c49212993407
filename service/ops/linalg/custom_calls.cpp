#include "service/ops/linalg/custom_calls.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

#include "service/core/near_names.h"
#include "service/kernels/elementwise/scalar_op.h"
#include "service/kernels/tile/tile_program.h"
#include "service/ops/checks.h"
#include "service/ops/families.h"
#include "service/ops/linalg/custom_call_rules.h"
#include "service/ops/linalg/dynamic_calls.h"
#include "service/ops/linalg/householder.h"
#include "service/ops/linalg/lapack_calls.h"
#include "service/ops/linalg/linalg_batch.h"
#include "service/ops/linalg/older_lapack.h"
#include "service/ops/pointwise/pointwise.h"
#include "service/ops/pointwise/pointwise_vjp.h"
#include "service/ops/reduction/reduction_vjp.h"
#include "service/ops/reduction/top_k.h"
#include "service/ops/reduction/top_k_rules.h"
#include "service/ops/structure/shape_assertion.h"

namespace meshd::ops {
namespace {

using kernels::ScalarOp;
using tensor::DType;

uint16_t emit_low_half(const OpView& view, kernels::TileProgram& program, std::span<const uint16_t> operands) {
  return program.emit(ScalarOp::kConvert, {operands[0]}, view.results[0].dtype());
}

uint16_t shift_by_32(kernels::TileProgram& program, ScalarOp direction, uint16_t operand, DType dtype) {
  std::array<std::byte, 16> element{};
  element[0] = std::byte{32};
  return program.emit(direction, {operand, program.constant(dtype, element.data())}, dtype);
}

uint16_t emit_high_half(const OpView& view, kernels::TileProgram& program, std::span<const uint16_t> operands) {
  const uint16_t high = shift_by_32(program, ScalarOp::kShiftRightLogical, operands[0], view.operands[0].dtype());
  return program.emit(ScalarOp::kConvert, {high}, view.results[0].dtype());
}

uint16_t emit_combine(const OpView& view, kernels::TileProgram& program, std::span<const uint16_t> operands) {
  const DType wide = view.results[0].dtype();
  const uint16_t low = program.emit(ScalarOp::kConvert, {operands[0]}, wide);
  const uint16_t high =
      shift_by_32(program, ScalarOp::kShiftLeft, program.emit(ScalarOp::kConvert, {operands[1]}, wide), wide);
  return program.emit(ScalarOp::kOr, {low, high}, wide);
}

CustomCallDef callback(std::string_view target, bool per_device = false) {
  return {.target = target,
          .kind = CustomCallKind::kCallback,
          .summary = per_device ? "hands values to the client, each device its own part"
                                : "hands values to the client, and may take some back",
          .body = Structural::kEffect,
          .per_device = per_device};
}

/// One operand, of whose type the result is, where there is one.
void check_same_type(const OpView& view) {
  expect_tensor_operands(view, call_text(view), 1);
  agree(view, call_text(view), {view.operands[0]});
}

bool is_wide(const ir::Type& type) { return type.dtype() == DType::kInt64 || type.dtype() == DType::kUint64; }

void check_split(const OpView& view) {
  expect_tensor_operands(view, call_text(view), 1);
  if (!is_wide(view.operands[0]))
    reject(view, fmt::format("{}: takes 64-bit integers, got {}", call_text(view), operand_text(view, 0)));
  declared(view, call_text(view), 1);
  agree(view, call_text(view), {ir::Type::of({DType::kUint32, view.operands[0].dims()})});
}

void check_combine(const OpView& view) {
  expect_tensor_operands(view, call_text(view), 2);
  const ir::Type result = declared(view, call_text(view), 1)[0];
  for (const ir::Type& operand : view.operands) {
    if (compatible(operand, ir::Type::of({DType::kUint32, result.dims()})) && is_wide(result)) continue;
    reject(view, fmt::format("{}: takes halves of ui32 and gives 64-bit integers, got {} -> {}", call_text(view),
                             types_text({view.operands.begin(), view.operands.end()}), ir::to_string(result)));
  }
}

/// A tensor; the result is as large as it may be, and its sizes follow.
void check_pad_to_static(const OpView& view) {
  expect_tensor_operands(view, call_text(view), 1);
  std::vector<ir::Type> types{view.operands[0]};
  types.resize(view.operands[0].dims().size() + 1, ir::Type::of({DType::kInt32, {}}));
  declared(view, call_text(view), types.size());
  agree(view, call_text(view), std::move(types));
}

/// A tensor and an integer for each of its dimensions.
void check_slice_to_dynamic(const OpView& view) {
  if (view.operands.empty()) reject(view, call_text(view) + ": takes a tensor and its sizes");
  expect_tensor(view, call_text(view), 0);
  expect_tensor_operands(view, call_text(view), view.operands[0].dims().size() + 1);
  for (size_t i = 1; i < view.operands.size(); ++i) {
    if (view.operands[i].rank() == 0 && tensor::is_integer(view.operands[i].dtype())) continue;
    reject(view, fmt::format("{}: operand {} must be an integer, got {}", call_text(view), i, operand_text(view, i)));
  }
  declared(view, call_text(view), 1);
  agree(view, call_text(view), {view.operands[0]});
}

Contributions vjp_operand(const Vjp& v) { return {v.ct()}; }

uint16_t emit_first(const OpView& view, kernels::TileProgram& program, std::span<const uint16_t> operands) {
  return program.emit(ScalarOp::kCopy, {operands[0]}, view.operands[0].dtype());
}

/// (value, like), or (value, x, slope, x, slope, ...), all of one type.
void check_differentiated_as(const OpView& view) {
  if (view.operands.size() != 2 && (view.operands.size() < 3 || view.operands.size() % 2 == 0))
    reject(view, call_text(view) + ": takes a value and another, or a value and pairs of values and slopes");
  expect_tensor_operands(view, call_text(view), view.operands.size());
  agree(view, call_text(view), {view.operands[0]});
  for (size_t i = 1; i < view.operands.size(); ++i) {
    if (!compatible(view.operands[i], view.operands[0]))
      reject(view, fmt::format("{}: operands are of one type, got {}", call_text(view), operand_text(view, i)));
  }
}

Contributions vjp_differentiated_as(const Vjp& v) {
  if (v.op.operands.size() == 2) return {Contribution(), v.ct()};
  Contributions out(v.op.operands.size());
  for (size_t i = 1; i < out.size(); i += 2) out[i] = v.ct() * v.x(i + 1);
  return out;
}

CustomCallDef identity(std::string_view target, std::string_view summary, Flow flow = Flow::kOther) {
  return {.target = target,
          .kind = CustomCallKind::kIdentity,
          .summary = summary,
          .rule = pointwise_rule,
          .body = ScalarMath{.op = ScalarOp::kCopy},
          .check = check_same_type,
          .flow = flow,
          .derivative = {vjp_operand}};
}

CustomCallDef scalar(std::string_view target, std::string_view summary, ScalarMath math, Derivative derivative = {},
                     void (*check)(const OpView&) = check_same_type) {
  return {.target = target,
          .kind = CustomCallKind::kCompute,
          .summary = summary,
          .rule = pointwise_rule,
          .body = math,
          .check = check,
          .derivative = derivative};
}

/// A target whose rule is known, so that programs with it can be explained, but which nothing runs.
CustomCallDef explained(std::string_view target, RuleFn rule) {
  return {.target = target, .kind = CustomCallKind::kCompute, .summary = "explained, not run", .rule = rule};
}

std::vector<CustomCallDef> make_custom_calls() {
  std::vector<CustomCallDef> table = {
      callback("xla_ffi_python_cpu_callback"),
      callback("xla_ffi_python_gpu_callback"),
      callback("xla_ffi_partitioned_python_cpu_callback", true),
      callback("xla_ffi_partitioned_python_gpu_callback", true),
      callback("xla_python_cpu_callback"),
      callback("xla_python_gpu_callback"),
      {.target = "Sharding",
       .kind = CustomCallKind::kShardingMarker,
       .summary = "its operand, with a sharding",
       .check = check_same_type},
      {.target = "SPMDFullToShardShape", .kind = CustomCallKind::kFullToShard, .summary = "begins a manual region"},
      {.target = "SPMDShardToFullShape", .kind = CustomCallKind::kShardToFull, .summary = "ends a manual region"},
      {.target = "shape_assertion",
       .kind = CustomCallKind::kShapeAssertion,
       .summary = "what the shapes of a polymorphic program must satisfy",
       .body = LocalKernel{prepare_shape_assertion},
       .check = check_shape_assertion},
      identity("InspectSharding", "its operand; asks for its sharding"),
      identity("LayoutConstraint", "its operand; layouts are row-major here"),
      identity("MoveToDevice", "its operand; there is one kind of memory here", Flow::kPassThrough),
      identity("MoveToHost", "its operand; there is one kind of memory here", Flow::kPassThrough),
      identity("annotate_device_placement", "its operand; there is one kind of memory here"),
      identity("mark_tensor", "its operand; where a composite of PyTorch begins or ends", Flow::kPassThrough),
      identity("xla_mark_tensor", "its operand; where a composite of PyTorch begins or ends", Flow::kPassThrough),
      scalar("X64Combine", "64-bit integers from their low and high halves", {.emit = emit_combine}, {}, check_combine),
      scalar("X64SplitHigh", "high halves of 64-bit integers", {.emit = emit_high_half}, {}, check_split),
      scalar("X64SplitLow", "low halves of 64-bit integers", {.emit = emit_low_half}, {}, check_split),
      scalar("mhlo.acos", "inverse cosine, in radians", {.op = kernels::scalar_op("acos")}, {vjp_acos}),
      scalar("mhlo.acosh", "inverse hyperbolic cosine", {.op = kernels::scalar_op("acosh")}, {vjp_acosh}),
      scalar("mhlo.asin", "inverse sine, in radians", {.op = kernels::scalar_op("asin")}, {vjp_asin}),
      scalar("mhlo.asinh", "inverse hyperbolic sine", {.op = kernels::scalar_op("asinh")}, {vjp_asinh}),
      scalar("mhlo.atanh", "inverse hyperbolic tangent", {.op = kernels::scalar_op("atanh")}, {vjp_atanh}),
      scalar("mhlo.cosh", "hyperbolic cosine", {.op = kernels::scalar_op("cosh")}, {vjp_cosh}),
      scalar("mhlo.erf", "error function", {.op = kernels::scalar_op("erf")}, {vjp_erf}),
      scalar("mhlo.sinh", "hyperbolic sine", {.op = kernels::scalar_op("sinh")}, {vjp_sinh}),
      scalar("mhlo.tan", "tangent, of radians", {.op = kernels::scalar_op("tan")}, {vjp_tan}),
      {.target = "ApproxTopK",
       .summary = "the first elements in the order of a comparator, always exact here",
       .rule = approx_top_k_rule,
       .body = LocalKernel{prepare_approx_top_k},
       .check = check_approx_top_k,
       .derivative = {vjp_approx_top_k},
       .called_is_region = true},
      explained("Cholesky", pointwise_rule),
      explained("CompactWyHelper", pointwise_rule),
      explained("Eigh", eigh_rule),
      explained("InvertDiagBlocksLowerTriangular", pointwise_rule),
      explained("InvertDiagBlocksUpperTriangular", pointwise_rule),
      {.target = "PartialReduce",
       .summary = "the first elements in the order of a comparator, always exact here",
       .rule = approx_top_k_rule,
       .body = LocalKernel{prepare_approx_top_k},
       .check = check_approx_top_k,
       .derivative = {vjp_approx_top_k},
       .called_is_region = true},
      {.target = "PadToStatic",
       .kind = CustomCallKind::kBounds,
       .summary =
           "a value whose size depends on data as one of its bound's shape, zeros behind the size; and its sizes",
       .check = check_pad_to_static,
       .bounded = BoundedForm::kPadToStatic},
      explained("ProductOfElementaryHouseholderReflectors", householder_rule),
      explained("Qr", qr_rule),
      explained("QrDecompositionBlock", qr_rule),
      {.target = "SliceToDynamic",
       .kind = CustomCallKind::kBounds,
       .summary = "the first elements of a value, as many as operands say: what PadToStatic undoes",
       .check = check_slice_to_dynamic,
       .bounded = BoundedForm::kSliceToDynamic},
      explained("_SPMDInternalOp_RotateRight", pointwise_rule),
      {.target = "stablehlo.dynamic_approx_top_k",
       .summary = "ApproxTopK, of as many elements as an operand says",
       .expand = expand_dynamic_approx_top_k,
       .called_is_region = true},
      {.target = "stablehlo.dynamic_reduce_window",
       .summary = "reduce_window, whose windows, strides, dilations and padding are operands",
       .expand = expand_dynamic_reduce_window,
       .called_is_region = true},
      {.target = "stablehlo.dynamic_rng_bit_generator",
       .summary = "rng_bit_generator of a shape that is an operand",
       .expand = expand_dynamic_random_bits},
      {.target = "stablehlo.dynamic_top_k",
       .summary = "chlo.top_k, of as many elements as an operand says",
       .expand = expand_dynamic_top_k},
      scalar(kDifferentiatedAs,
             "its first operand, with the derivatives of the second, or with slopes that are operands",
             {.emit = emit_first}, {vjp_differentiated_as}, check_differentiated_as),
      {.target = "mhlo.topk",
       .summary = "the largest or smallest elements of the last dimension and their indices",
       .rule = top_k_rule,
       .body = LocalKernel{prepare_mhlo_top_k},
       .check = check_mhlo_top_k},
  };
  for (const LapackTarget& target : lapack_targets()) {
    table.push_back({.target = target.target,
                     .kind = CustomCallKind::kCompute,
                     .summary = target.summary,
                     .rule = lapack_call_rule,
                     .body = LocalKernel{prepare_lapack_call},
                     .check = check_lapack_call,
                     .derivative = {.vjp = vjp_lapack_call, .as_others = householder_as_others},
                     .batch = batch_lapack_call,
                     .bounded = BoundedForm::kLapackCall});
  }
  std::sort(table.begin(), table.end(),
            [](const CustomCallDef& a, const CustomCallDef& b) { return a.target < b.target; });
  return table;
}

const std::vector<CustomCallDef>& custom_call_table() {
  static const std::vector<CustomCallDef> kTable = make_custom_calls();
  return kTable;
}

Body choose_custom_call_body(const OpView& view) {
  const CustomCallDef* def = find_custom_call(target_of(view));
  return def == nullptr ? Body{Unsupported{}} : def->body;
}

std::vector<ir::Type> infer_custom_call(const OpView& view) {
  const CustomCallDef* def = find_custom_call(target_of(view));
  // What it is without operands that are shapes is checked then.
  if (def != nullptr && def->check != nullptr && !has_shape_operands(view)) def->check(view);
  return {view.results.begin(), view.results.end()};
}

std::optional<std::vector<ir::ValueId>> expand_custom_call(const OpView& view, Writer& writer) {
  if (has_shape_operands(view)) return expand_shape_operands(view, writer);
  const CustomCallDef* def = find_custom_call(target_of(view));
  return def != nullptr && def->expand != nullptr ? def->expand(view, writer) : expand_older_lapack(view, writer);
}

/// The number after "device=" in an older text's "{maximal device=3}".
std::optional<int64_t> maximal_device(std::string_view text) {
  constexpr std::string_view kWord = "maximal device=";
  const size_t at = text.find(kWord);
  if (at == std::string_view::npos) return std::nullopt;
  int64_t device = 0;
  const char* begin = text.data() + at + kWord.size();
  if (std::from_chars(begin, text.data() + text.size(), device).ec != std::errc{}) return std::nullopt;
  return device;
}

void read_placement(const ir::AttributeList& attributes, EffectInfo& info) {
  if (const ir::Attribute* attribute = ir::find(attributes, "sdy.sharding")) {
    const auto* list = attribute->as<ir::ShardingAttr>();
    if (list != nullptr && !list->shardings.empty() && list->shardings[0].mesh->is_maximal()) {
      info.device = list->shardings[0].mesh->device_ids[0];
    }
  } else if (ir::find(attributes, "mhlo.sharding") != nullptr) {
    info.device = maximal_device(ir::string_or(attributes, "mhlo.sharding", ""));
  }
  info.maximal = info.device.has_value();
}

/// The `index` entry of a dictionary that JAX writes under either name, or nothing.
std::optional<int64_t> index_entry(const ir::AttributeList& attributes) {
  for (const std::string_view name : {"mhlo.backend_config", "backend_config"}) {
    const ir::Attribute* attribute = ir::find(attributes, name);
    const auto* entries = attribute == nullptr ? nullptr : attribute->as<ir::DictAttr>();
    if (entries == nullptr || ir::find(entries->entries, "index") == nullptr) continue;
    return ir::int_or(entries->entries, "index", 0);
  }
  return std::nullopt;
}

/// Older texts: backend_config = "94325..." repeats a descriptor that is also the first operand, an i64.
std::optional<int64_t> descriptor(const OpView& view) {
  const ir::Attribute* attribute = ir::find(attributes_of(view), "backend_config");
  const auto* text = attribute == nullptr ? nullptr : attribute->as<ir::StringAttr>();
  if (text == nullptr || text->value.empty()) return std::nullopt;
  int64_t number = 0;
  const char* end = text->value.data() + text->value.size();
  const auto [stop, error] = std::from_chars(text->value.data(), end, number);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return number;
}

}  // namespace

const CustomCallDef* find_custom_call(const ir::Op& op) {
  if (role_of(ops::op(op.code).body) != Structural::kCustomCall) return nullptr;
  return find_custom_call(ir::string_or(op.attributes, "call_target_name", {}));
}

const CustomCallDef* find_custom_call(std::string_view target) {
  const auto& table = custom_call_table();
  const auto found =
      std::lower_bound(table.begin(), table.end(), target,
                       [](const CustomCallDef& def, std::string_view name) { return def.target < name; });
  return found != table.end() && found->target == target ? &*found : nullptr;
}

std::span<const CustomCallDef> all_custom_calls() { return custom_call_table(); }

std::string target_of(const OpView& view) {
  std::string target = ir::string_or(attributes_of(view), "call_target_name", "");
  if (target.empty()) reject(view, "custom_call I2: call_target_name is missing");
  return target;
}

BoundedForm bounded_form(const ir::Op& op) {
  const CustomCallDef* call = find_custom_call(op);
  return call == nullptr ? ops::op(op.code).bounded : call->bounded;
}

std::optional<std::string> reason_not_run(const OpView& view) {
  const std::string target = target_of(view);
  const CustomCallDef* row = find_custom_call(target);
  const std::string call = "custom call '@" + target + "' is ";
  if (row == nullptr) {
    std::vector<std::string_view> known;
    for (const CustomCallDef& each : all_custom_calls()) known.push_back(each.target);
    return call + "not known here; the program can be explained, but not run" + core::did_you_mean(target, known);
  }
  switch (row->kind) {
    case CustomCallKind::kCallback:
    case CustomCallKind::kShardingMarker:
    case CustomCallKind::kIdentity:
    case CustomCallKind::kShapeAssertion:
    case CustomCallKind::kBounds:
      return std::nullopt;
    case CustomCallKind::kFullToShard:
    case CustomCallKind::kShardToFull:
      return call + "not run here yet; the program can be explained";
    case CustomCallKind::kCompute:
      break;
  }
  if (!std::holds_alternative<Unsupported>(row->body)) return std::nullopt;
  return call + "known, but not run here yet; the program can be explained";
}

std::optional<sharding::FactorRule> custom_call_rule(const OpView& view) {
  const CustomCallDef* def = find_custom_call(target_of(view));
  if (def == nullptr || def->rule == nullptr) return std::nullopt;
  return def->rule(view);
}

EffectInfo effect_of(const OpView& view) {
  const std::string target = target_of(view);
  const CustomCallDef* def = find_custom_call(target);
  if (def == nullptr || def->kind != CustomCallKind::kCallback) reject(view, call_text(view) + " is not a callback");
  EffectInfo info;
  info.per_device = def->per_device;
  info.has_side_effect = ir::bool_or(attributes_of(view), "has_side_effect", false);
  read_placement(attributes_of(view), info);
  size_t first = 0;
  if (const auto index = index_entry(attributes_of(view))) {
    info.index = *index;
  } else if (const auto number = descriptor(view)) {
    info.index = *number;
    const bool has_descriptor = !view.operands.empty() && view.operands[0] == ir::Type::of({DType::kInt64, {}});
    first = has_descriptor ? 1 : 0;
  } else {
    reject(view, call_text(view) + ": says no index of its callback (mhlo.backend_config = {index = 0 : ui64})");
  }
  for (size_t i = first; i < view.operands.size(); ++i) {
    if (view.operands[i].is_token()) {
      info.ordered = true;
    } else {
      info.value_operands.push_back(static_cast<int>(i));
    }
  }
  for (size_t i = 0; i < view.results.size(); ++i) {
    if (!view.results[i].is_token()) info.value_results.push_back(static_cast<int>(i));
  }
  return info;
}

std::vector<OpDef> custom_call_rows() {
  return {
      {.name = "stablehlo.custom_call",
       .summary = "runs what its target names; see the list of targets",
       .example = R"(module @jit_f {
  func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.custom_call @annotate_device_placement(%arg0) {has_side_effect = true, mhlo.frontend_attributes = {_xla_buffer_placement = "pinned_host"}} : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
)",
       .signature = {.operand_max = -1,
                     .region_count = -1,
                     .attributes = {{"call_target_name", true, "what is called"},
                                    {"has_side_effect", false, "whether it must happen though nobody uses its results"},
                                    {"backend_config", false, "what the target wants to know"},
                                    {"api_version", false, "how backend_config is written"},
                                    {"called_computations", false, "functions that the target calls"},
                                    {"operand_layouts", false, "of the operands"},
                                    {"result_layouts", false, "of the results"},
                                    {"output_operand_aliases", false, "results that are operands overwritten"}}},
       .text = {.shape = TextShape::kCustomCall},
       .infer = infer_custom_call,
       .body = Structural::kCustomCall,
       .choose_body = choose_custom_call_body,
       .expand = expand_custom_call},
  };
}

}  // namespace meshd::ops
