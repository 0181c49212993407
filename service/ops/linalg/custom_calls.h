// The table of custom-call targets, looked up when a program is propagated, partitioned or run; the op has one row. A
// program with an unknown target can be registered and explained (propagation stops at it); a run is refused with its
// name.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "service/ops/op_def.h"

namespace meshd::ops {

/// What the stages do with a target.
enum class CustomCallKind : uint8_t {
  kCallback,        ///< a callback to the client, with or without a reply; effect_of() has the details
  kShardingMarker,  ///< @Sharding of older texts: its operand, with a sharding
  kFullToShard,     ///< @SPMDFullToShardShape: a manual region begins; the result has the local shape
  kShardToFull,     ///< @SPMDShardToFullShape: it ends; the result has the global shape
  kIdentity,        ///< its operand: placements, layouts, inspections that change no number
  kShapeAssertion,  ///< a condition on shapes; its kernel has no results and throws where it does not hold
  kBounds,          ///< values with sizes that depend on data: written over static values before partitioning
  kCompute,         ///< a function of its operands; `body` runs it
};

/// One row.
struct CustomCallDef {
  std::string_view target;
  CustomCallKind kind = CustomCallKind::kCompute;
  std::string_view summary;
  RuleFn rule = nullptr;      ///< null: nothing passes through
  Body body = Unsupported{};  ///< how kCompute, kIdentity and kShapeAssertion are run
  /// Throws where operands and results are not those of the target: what computes it relies on them.
  void (*check)(const OpView&) = nullptr;
  Flow flow = Flow::kOther;                    ///< as PropagationFacts::flow
  Derivative derivative = {};                  ///< as OpDef::derivative
  BatchFn batch = nullptr;                     ///< as OpDef::batch
  BoundedForm bounded = BoundedForm::kByBody;  ///< as OpDef::bounded
  ExpandFn expand = nullptr;                   ///< as OpDef::expand
  bool called_is_region = false;               ///< its called computation becomes its region when calls are inlined
  bool per_device = false;  ///< a callback that every device makes with its own shard, whatever its sharding is
};

/// A target of our own for functions whose derivatives are not those of the ops that compute them (jax.custom_jvp):
///   (value, like)                 -> value, with the derivatives of `like`
///   (value, x, slope, x, slope)   -> value, whose cotangent times a slope is that x's
/// All operands have the type of the result. Where nothing is differentiated, it is its first operand.
inline constexpr std::string_view kDifferentiatedAs = "meshd.differentiated_as";

/// The row of the target that a custom call names; null where it names none that is known, and for other ops.
const CustomCallDef* find_custom_call(const ir::Op& op);
/// The row of a target, or null. Any thread.
const CustomCallDef* find_custom_call(std::string_view target);
/// How an op takes tensors whose sizes depend on data: its row's form, or that of its target's.
BoundedForm bounded_form(const ir::Op& op);
/// All rows, sorted by target.
std::span<const CustomCallDef> all_custom_calls();

/// The target of a stablehlo.custom_call; throws invalid_program when it has none.
std::string target_of(const OpView& view);
/// Why nothing runs this custom call, though it is read, propagated and explained; nothing where something does.
std::optional<std::string> reason_not_run(const OpView& view);
/// The factor rule of a custom call by its target; nothing where nothing passes through.
std::optional<sharding::FactorRule> custom_call_rule(const OpView& view);

/// A callback as its op's attributes describe it. Example, from a program that JAX printed:
///   %0:2 = stablehlo.custom_call @xla_ffi_python_cpu_callback(%token, %x) {has_side_effect = true, mhlo.backend_config
///   = {index = 3 : ui64},
///          sdy.sharding = #sdy.sharding_per_value<[<@maximal_mesh_0, []>, <@maximal_mesh_0, []>]>}
///   -> index 3, ordered, has_side_effect, maximal, value_operands {1}, value_results {1}
struct EffectInfo {
  int64_t index = 0;     ///< which callback of the program
  bool ordered = false;  ///< takes a token
  bool has_side_effect =
      false;                ///< neither: a pure callback, which may run any number of times and is dropped when unused
  bool per_device = false;  ///< `partitioned` target: every device calls with its own part
  bool maximal = false;     ///< annotated with a mesh of one device
  std::optional<int64_t> device;    ///< that device
  std::vector<int> value_operands;  ///< operands that are values: neither tokens nor a descriptor
  std::vector<int> value_results;   ///< results that are not tokens
};

/// Throws invalid_program when `view` is no callback, or one without an index.
EffectInfo effect_of(const OpView& view);

}  // namespace meshd::ops
