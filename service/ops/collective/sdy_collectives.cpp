#include "service/ops/collective/sdy_collectives.h"

#include <unordered_map>

#include "service/ops/checks.h"
#include "service/ops/families.h"
#include "service/ops/fixed_string.h"
#include "service/ops/pointwise/pointwise.h"

namespace meshd::ops {
namespace {

template <FixedString kName>
std::vector<ir::Type> infer_same(const OpView& view) {
  expect_tensor_operands(view, kName.view(), 1);
  return agree(view, kName.view(), {view.operands[0]});
}

// The module around one op over a mesh x=2, y=4.
template <FixedString kLine>
constexpr std::string_view kModule = Joined<
    "module @jit_f {\n  sdy.mesh @mesh = <[\"x\"=2, \"y\"=4]>\n  func.func public @main(%arg0: tensor<8x8xf32> "
    "{sdy.sharding = #sdy.sharding<@mesh, [{\"x\"}, {}]>}) -> tensor<8x8xf32> {\n    %0 = ",
    kLine, " : tensor<8x8xf32>\n    return %0 : tensor<8x8xf32>\n  }\n}\n">::view;

template <FixedString kName, FixedString kLine>
OpDef row(std::string_view summary, AxesEffect effect, std::string_view axes) {
  OpDef def;
  def.name = kName.view();
  def.summary = summary;
  def.example = kModule<kLine>;
  def.signature = {.operand_min = 1, .operand_max = 1, .attributes = {{"sharding", true, "the result's sharding"}}};
  if (!axes.empty()) def.signature.attributes.push_back({axes, false, "the axes"});
  def.signature.attributes.push_back({"out_sharding", false, "the result's sharding, as Shardy writes it", "sharding"});
  def.text.shape = TextShape::kSdyCollective;
  def.axes = {effect, axes};
  def.infer = infer_same<kName>;
  def.body = Structural::kReshard;
  def.result_is_operand = true;
  return def;
}

using RenamedValues = std::unordered_map<ir::ValueId, ir::ValueId>;

void use_renamed(std::vector<ir::ValueId>& ids, const RenamedValues& renamed) {
  for (ir::ValueId& id : ids) {
    for (auto found = renamed.find(id); found != renamed.end(); found = renamed.find(id)) id = found->second;
  }
}

void drop_edges(ir::Region& region, RenamedValues& renamed) {
  for (ir::Op& op : region.ops) {
    use_renamed(op.operands, renamed);
    if (is_call_edge(op)) renamed.emplace(op.results.front(), op.operands.front());
    for (ir::Region& inner : op.regions) drop_edges(inner, renamed);
  }
  std::erase_if(region.ops, is_call_edge);
}

}  // namespace

std::vector<OpDef> sdy_collective_rows() {
  std::vector<OpDef> rows{
      row<"sdy.all_gather", "sdy.all_gather [{\"x\"}, {}] %arg0 out_sharding=<@mesh, [{}, {}]>">(
          "its operand, gathered along axes", AxesEffect::kRemoved, "gathering_axes"),
      row<"sdy.all_slice", "sdy.all_slice [{}, {\"y\"}] %arg0 out_sharding=<@mesh, [{\"x\"}, {\"y\"}]>">(
          "its operand, sharded along axes", AxesEffect::kAdded, "slicing_axes"),
      row<"sdy.all_to_all", "sdy.all_to_all [{\"x\"}: 0->1] %arg0 out_sharding=<@mesh, [{}, {\"x\"}]>">(
          "its operand, with axes moved to other dimensions", AxesEffect::kMoved, "params"),
      row<"sdy.collective_permute", "sdy.collective_permute %arg0 out_sharding=<@mesh, [{\"y\":(1)2}, {}]>">(
          "its operand, with shards exchanged", AxesEffect::kPermuted, ""),
      row<"sdy.all_reduce", "sdy.all_reduce {\"y\"} %arg0 out_sharding=<@mesh, [{\"x\"}, {}]>">(
          "its operand, of which devices along axes had parts of a sum", AxesEffect::kReduced, "reduction_axes"),
      row<"sdy.reduce_scatter", "sdy.reduce_scatter [{}, {\"y\"}] %arg0 out_sharding=<@mesh, [{\"x\"}, {\"y\"}]>">(
          "its operand, summed along axes and sharded along them", AxesEffect::kAdded, "reduce_scatter_axes"),
      row<"sdy.sharded_to_unreduced",
          "sdy.sharded_to_unreduced [{\"x\"}, {}] %arg0 out_sharding=<@mesh, [{}, {}], unreduced={\"x\"}>">(
          "its operand, whose parts along axes become parts of a sum", AxesEffect::kRemoved, "axes"),
      row<"sdy.replicated_to_unreduced",
          "sdy.replicated_to_unreduced {\"y\"} %arg0 out_sharding=<@mesh, [{\"x\"}, {}], unreduced={\"y\"}>">(
          "its operand, which devices along axes hold as parts of a sum", AxesEffect::kKept, "axes")};
  OpDef edge;
  edge.name = "sdy.data_flow_edge";
  edge.summary = "its operand; shardings pass both ways";
  edge.example = kModule<"sdy.data_flow_edge %arg0 sharding=<@mesh, [{\"x\", ?}, {?}]>">;
  edge.signature = {
      .operand_min = 1, .operand_max = 1, .attributes = {{"sharding", false, "the edge's sharding", "sdy.sharding"}}};
  edge.text.shape = TextShape::kDataFlowEdge;
  edge.infer = infer_same<"sdy.data_flow_edge">;
  edge.rule = pointwise_rule;
  edge.body = Structural::kOptimizationBarrier;
  edge.result_is_operand = true;
  rows.push_back(std::move(edge));
  return rows;
}

bool is_call_edge(const ir::Op& op) {
  return op.operands.size() == 1 && op.results.size() == 1 && ir::find(op.attributes, kCallEdge) != nullptr &&
         ops::op(op.code).result_is_operand;
}

void drop_call_edges(ir::Module& module) {
  RenamedValues renamed;
  drop_edges(module.main().body, renamed);
  for (ir::InlinedCall& call : module.inlined_calls) {
    use_renamed(call.arguments, renamed);
    use_renamed(call.results, renamed);
  }
}

}  // namespace meshd::ops
