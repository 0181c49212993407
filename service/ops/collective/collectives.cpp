// The rows of collectives inside manual computations, where types are local.
#include <fmt/core.h>

#include <initializer_list>
#include <set>
#include <string>

#include "service/ops/checks.h"
#include "service/ops/collective/collective_groups.h"
#include "service/ops/collective/collectives.h"
#include "service/ops/collective/collectives_vjp.h"
#include "service/ops/families.h"
#include "service/ops/fixed_string.h"
#include "service/ops/quantized.h"
#include "service/ops/rule_views.h"

namespace meshd::ops {
namespace {

template <FixedString kName>
std::vector<std::vector<int64_t>> by_replica(const OpView& view, int64_t position_count) {
  return replica_group_positions(view, kName.view(), position_count);
}

template <FixedString kName>
std::vector<std::vector<int64_t>> by_partition(const OpView& view, int64_t position_count) {
  return partition_group_positions(view, kName.view(), position_count);
}

std::vector<std::vector<int64_t>> permute_pairs(const OpView& view, int64_t position_count) {
  std::vector<std::vector<int64_t>> pairs = source_target_pairs_of(view);
  for (const auto& pair : pairs) {
    for (const int64_t id : pair) {
      if (id < position_count) continue;
      reject(view,
             fmt::format("collective_permute C4: id {} is outside of the {} devices of the mesh", id, position_count));
    }
  }
  return pairs;
}

/// Operands are independent of each other; dimension d of operand k and of result k share a factor. The dimensions that
/// `moved` names (attributes) are replicated on both sides, with a factor each.
sharding::FactorRule collective_rule(const OpView& view, std::initializer_list<std::string_view> moved) {
  std::set<size_t> moved_dims;
  for (const std::string_view name : moved)
    moved_dims.insert(static_cast<size_t>(ir::int_or(attributes_of(view), name, 0)));
  const size_t count = view.operands.size();
  sharding::FactorRuleBuilder builder = rule_builder(view);
  const auto only = [count](size_t which, size_t dim) {
    std::vector<int> dims(count, -1);
    dims[which] = static_cast<int>(dim);
    return dims;
  };
  const std::vector<int> none(count, -1);
  for (size_t k = 0; k < count; ++k) {
    const tensor::Dims& in = view.operands[k].dims();
    const tensor::Dims& out = view.results[k].dims();
    for (size_t d = 0; d < in.size(); ++d) {
      if (!moved_dims.contains(d)) builder.factor(only(k, d), only(k, d), in[d]);
    }
    for (const size_t d : moved_dims) {
      builder.factor(only(k, d), none, in[d], sharding::FactorKind::kNeedReplication);
      builder.factor(none, only(k, d), out[d], sharding::FactorKind::kNeedReplication);
    }
  }
  return builder.build();
}

sharding::FactorRule elementwise_rule(const OpView& view) { return collective_rule(view, {}); }
sharding::FactorRule all_gather_rule(const OpView& view) { return collective_rule(view, {"all_gather_dim"}); }
sharding::FactorRule reduce_scatter_rule(const OpView& view) { return collective_rule(view, {"scatter_dimension"}); }
sharding::FactorRule all_to_all_rule(const OpView& view) {
  return collective_rule(view, {"split_dimension", "concat_dimension"});
}

const AttributeSpec kGroups{"replica_groups", true,
                            "who meets whom: a row of partition ids for each group, -1 fills up"};
const AttributeSpec kChannel{"channel_handle", false, "the channel; there is one when ids are partition ids"};
const AttributeSpec kChannelId{"channel_id", false, "the channel's number, as newer texts write it"};
const AttributeSpec kGlobalIds{"use_global_device_ids", false, "ids count all devices"};

}  // namespace

std::vector<OpDef> collective_rows() {
  return {
      {.name = "stablehlo.all_gather",
       .summary = "the operands of all members of a group, one behind the other",
       .example = R"(module @jit_f {
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%arg0: tensor<4xi32>) -> tensor<4xi32> {
    %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{}]>] manual_axes={"x"} (%arg1: tensor<2xi32>) {
      %1 = "stablehlo.all_gather"(%arg1) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> : (tensor<2xi32>) -> tensor<4xi32>
      sdy.return %1 : tensor<4xi32>
    } : (tensor<4xi32>) -> tensor<4xi32>
    return %0 : tensor<4xi32>
  }
}
)",
       .signature = {.operand_min = 1,
                     .operand_max = -1,
                     .attributes = {{"all_gather_dim", true, "the dimension that grows"},
                                    kGroups,
                                    kChannel,
                                    kChannelId,
                                    kGlobalIds}},
       .infer = infer_all_gather,
       .quantized = kQuantizedMoved,
       .rule = all_gather_rule,
       .body = GroupKernel{prepare_all_gather, by_replica<"all_gather">},
       .derivative = {vjp_all_gather}},
      {.name = "stablehlo.all_reduce",
       .summary = "the operands of all members of a group, combined element by element",
       .example = R"(module @jit_f {
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%arg0: tensor<4xf32>) -> tensor<2xf32> {
    %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{}]>] manual_axes={"x"} (%arg1: tensor<2xf32>) {
      %1 = "stablehlo.all_reduce"(%arg1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
      ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
        %2 = stablehlo.add %arg2, %arg3 : tensor<f32>
        stablehlo.return %2 : tensor<f32>
      }) : (tensor<2xf32>) -> tensor<2xf32>
      sdy.return %1 : tensor<2xf32>
    } : (tensor<4xf32>) -> tensor<2xf32>
    return %0 : tensor<2xf32>
  }
}
)",
       .signature = {.operand_min = 1,
                     .operand_max = -1,
                     .region_count = 1,
                     .attributes = {kGroups, kChannel, kChannelId, kGlobalIds}},
       .infer = infer_all_reduce,
       .quantized = kQuantizedMoved,
       .rule = elementwise_rule,
       .body = GroupKernel{prepare_all_reduce, by_replica<"all_reduce">},
       .region_arguments = RegionArguments::kFixed,
       .derivative = {vjp_all_reduce}},
      {.name = "stablehlo.all_to_all",
       .summary = "each member gives every other a block of its operand",
       .example = R"(module @jit_f {
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%arg0: tensor<4x2xi32>) -> tensor<4x2xi32> {
    %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"x"}, {}]>] out_shardings=[<@mesh, [{}, {"x"}]>] manual_axes={"x"} (%arg1: tensor<2x2xi32>) {
      %1 = "stablehlo.all_to_all"(%arg1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, concat_dimension = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, split_count = 2 : i64, split_dimension = 1 : i64}> : (tensor<2x2xi32>) -> tensor<4x1xi32>
      sdy.return %1 : tensor<4x1xi32>
    } : (tensor<4x2xi32>) -> tensor<4x2xi32>
    return %0 : tensor<4x2xi32>
  }
}
)",
       .signature = {.operand_min = 1,
                     .operand_max = -1,
                     .attributes = {{"split_dimension", true, "the dimension that is split"},
                                    {"concat_dimension", true, "the dimension that grows"},
                                    {"split_count", true, "blocks, as many as a group has members"},
                                    kGroups,
                                    kChannel,
                                    kChannelId}},
       .infer = infer_all_to_all,
       .quantized = kQuantizedMoved,
       .rule = all_to_all_rule,
       .body = GroupKernel{prepare_all_to_all, by_partition<"all_to_all">},
       .derivative = {vjp_all_to_all}},
      {.name = "stablehlo.reduce_scatter",
       .summary = "one block each of the operands of a group, combined element by element",
       .example = R"(module @jit_f {
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%arg0: tensor<8xf32>) -> tensor<4xf32> {
    %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%arg1: tensor<4xf32>) {
      %1 = "stablehlo.reduce_scatter"(%arg1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, scatter_dimension = 0 : i64, use_global_device_ids}> ({
      ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
        %2 = stablehlo.add %arg2, %arg3 : tensor<f32>
        stablehlo.return %2 : tensor<f32>
      }) : (tensor<4xf32>) -> tensor<2xf32>
      sdy.return %1 : tensor<2xf32>
    } : (tensor<8xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
)",
       .signature = {.operand_min = 1,
                     .operand_max = 1,
                     .region_count = 1,
                     .attributes = {{"scatter_dimension", true, "the dimension that is split"},
                                    kGroups,
                                    kChannel,
                                    kChannelId,
                                    kGlobalIds}},
       .infer = infer_reduce_scatter,
       .quantized = kQuantizedMoved,
       .rule = reduce_scatter_rule,
       .body = GroupKernel{prepare_reduce_scatter, by_replica<"reduce_scatter">},
       .region_arguments = RegionArguments::kFixed,
       .derivative = {vjp_reduce_scatter}},
      {.name = "stablehlo.collective_permute",
       .summary = "each device gets the operand of its source, or zeros when it has none",
       .example = R"(module @jit_f {
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%arg0: tensor<4xi32>) -> tensor<4xi32> {
    %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%arg1: tensor<2xi32>) {
      %1 = "stablehlo.collective_permute"(%arg1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>}> : (tensor<2xi32>) -> tensor<2xi32>
      sdy.return %1 : tensor<2xi32>
    } : (tensor<4xi32>) -> tensor<4xi32>
    return %0 : tensor<4xi32>
  }
}
)",
       .signature = {.operand_min = 1,
                     .operand_max = -1,
                     .attributes = {{"source_target_pairs", true, "rows of (source, target)"}, kChannel, kChannelId}},
       .infer = infer_collective_permute,
       .quantized = kQuantizedMoved,
       .rule = elementwise_rule,
       .body = GroupKernel{prepare_collective_permute, permute_pairs, true},
       .derivative = {vjp_collective_permute}},
      {.name = "stablehlo.collective_broadcast",
       .summary = "each member of a group gets the operand of the first",
       .example = R"(module @jit_f {
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%arg0: tensor<4xi32>) -> tensor<4xi32> {
    %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%arg1: tensor<2xi32>) {
      %1 = "stablehlo.collective_broadcast"(%arg1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[1, 0]]> : tensor<1x2xi64>}> : (tensor<2xi32>) -> tensor<2xi32>
      sdy.return %1 : tensor<2xi32>
    } : (tensor<4xi32>) -> tensor<4xi32>
    return %0 : tensor<4xi32>
  }
}
)",
       .signature = {.operand_min = 1, .operand_max = 1, .attributes = {kGroups, kChannel, kChannelId}},
       .infer = infer_collective_broadcast,
       .quantized = kQuantizedMoved,
       .rule = elementwise_rule,
       .body = GroupKernel{prepare_collective_broadcast, by_partition<"collective_broadcast">}},
  };
}

}  // namespace meshd::ops
