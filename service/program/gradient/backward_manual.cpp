// Manual computations of the backward pass.
#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string>

#include "service/ir/region_utils.h"
#include "service/program/gradient/backward.h"

namespace meshd::program {
namespace {

using sharding::TensorSharding;

[[noreturn]] void refuse_manual(const ir::Op& op, const std::string& why) {
  ir::fail("unsupported_op", op.location,
           fmt::format("the derivative of '{}' is not supported where {}", op.name, why));
}

const std::vector<TensorSharding>& manual_shardings(const ir::Op& op, std::string_view name) {
  return ir::find(op.attributes, name)->as<ir::ShardingAttr>()->shardings;
}

/// The manual axes over which a value of this type and sharding is replicated, as numbers of its mesh. Refuses values
/// whose shards are not a plain grid of blocks: what pads them would get cotangents.
std::vector<int> replicated_axes(const ir::Op& op, const ir::Type& type, const TensorSharding& sharding) {
  if (!sharding.unreduced.empty()) refuse_manual(op, "values are unreduced at its edges");
  std::set<int> manual;
  for (const ir::Attribute& entry : ir::find(op.attributes, "manual_axes")->as<ir::ArrayAttr>()->values) {
    if (const auto axis = sharding.mesh->axis_index(entry.as<ir::StringAttr>()->value)) manual.insert(*axis);
  }
  std::set<int> sharded;
  for (size_t d = 0; d < sharding.dims.size(); ++d) {
    int64_t parts = 1;
    for (const sharding::AxisRef& axis : sharding.dims[d].axes) {
      if (!manual.contains(axis.axis)) continue;
      if (!axis.is_whole()) refuse_manual(op, "values are sharded by parts of axes at its edges");
      parts *= sharding.mesh->axes[static_cast<size_t>(axis.axis)].size;
      sharded.insert(axis.axis);
    }
    if (parts > 1 && type.dims()[d] % parts != 0) refuse_manual(op, "values are sharded unevenly at its edges");
  }
  std::vector<int> out;
  std::set_difference(manual.begin(), manual.end(), sharded.begin(), sharded.end(), std::back_inserter(out));
  return out;
}

int64_t replica_count(const TensorSharding& sharding, const std::vector<int>& axes) {
  int64_t count = 1;
  for (const int axis : axes) count *= sharding.mesh->axes[static_cast<size_t>(axis)].size;
  return count;
}

/// Groups of the positions of a mesh that differ in these axes alone. Mesh x=2, y=2, axis y -> [[0, 1], [2, 3]]
ir::AttributeList groups_over(const mesh::Mesh& mesh, const std::vector<int>& axes, int64_t group_size) {
  std::map<std::vector<int64_t>, std::vector<int64_t>> groups;
  const int64_t count = mesh.position_count();
  for (int64_t position = 0; position < count; ++position) {
    std::vector<int64_t> others;
    int64_t rest = position;
    for (size_t i = mesh.axes.size(); i-- > 0;) {
      const int64_t place = rest % mesh.axes[i].size;
      rest /= mesh.axes[i].size;
      if (std::find(axes.begin(), axes.end(), static_cast<int>(i)) == axes.end()) others.push_back(place);
    }
    groups[others].push_back(position);
  }
  std::vector<int64_t> order;
  for (const auto& [others, group] : groups) order.insert(order.end(), group.begin(), group.end());
  return {
      {"channel_handle", ir::Attribute{ir::DictAttr{"stablehlo.channel_handle",
                                                    {{"handle", ir::integer_attr(1)}, {"type", ir::integer_attr(1)}}}}},
      {"replica_groups", ir::Attribute{ir::dense_integers_attr(order, {count / group_size, group_size})}},
      {"use_global_device_ids", ir::Attribute{ir::Unit{}}}};
}

ir::ValueId summed_over_replicas(ops::Writer& writer, ir::ValueId value, const TensorSharding& sharding,
                                 const std::vector<int>& axes) {
  const int64_t count = replica_count(sharding, axes);
  if (count <= 1) return value;
  const ir::Type type = writer.type(value);
  const ir::Type scalar = ir::scalar_of(type);
  std::vector<ir::Region> regions;
  regions.push_back(writer.reducer("stablehlo.add", scalar));
  return writer
      .add("stablehlo.all_reduce", {value}, groups_over(*sharding.mesh, axes, count), {type}, std::move(regions))
      .at(0);
}

}  // namespace

void Backward::manual(const ir::Op& op, Cotangents& sums, std::vector<ir::Op>& out) {
  if (!captured({&op.regions[0]}).empty()) refuse_manual(op, "its body reads values from outside of it");
  const std::vector<TensorSharding>& in = manual_shardings(op, "in_shardings");
  const std::vector<TensorSharding>& given = manual_shardings(op, "out_shardings");
  ir::Region made;
  std::unordered_map<ir::ValueId, ir::ValueId> names;
  for (const ir::ValueId id : op.regions[0].arguments) {
    made.arguments.push_back(function_.add_value(ir::Type(function_.type_of(id))));
    facts_.copy(id, made.arguments.back());
    names[id] = made.arguments.back();
  }
  made.ops = copy(op.regions[0].ops, names);
  ir::Op terminator = std::move(made.ops.back());
  made.ops.pop_back();
  std::vector<ir::Op> tail;
  ops::Writer inside(function_, tail, op);
  Cotangents inner;
  std::vector<ir::ValueId> operands = op.operands;
  std::vector<TensorSharding> shardings = in;
  for (size_t i = 0; i < op.results.size(); ++i) {
    const auto found = sums.find(op.results[i]);
    if (found == sums.end() || !facts_.is_varied(terminator.operands[i])) continue;
    operands.push_back(found->second);
    shardings.push_back(given[i]);
    made.arguments.push_back(function_.add_value(ir::Type(function_.type_of(terminator.operands[i]))));
    const int64_t replicas = replica_count(given[i], replicated_axes(op, function_.type_of(op.results[i]), given[i]));
    ops::Term part{&inside, made.arguments.back()};
    if (replicas > 1) part = part / static_cast<double>(replicas);
    give(inner, terminator.operands[i], part, inside);
  }
  run(made.ops, inner, tail);
  std::vector<size_t> wanted;
  std::vector<TensorSharding> out_shardings;
  terminator.operands.clear();
  for (size_t i = 0; i < op.operands.size(); ++i) {
    const auto found = inner.find(made.arguments[i]);
    if (found == inner.end() || !facts_.is_varied(op.operands[i])) continue;
    wanted.push_back(i);
    out_shardings.push_back(in[i]);
    terminator.operands.push_back(summed_over_replicas(inside, found->second, in[i],
                                                       replicated_axes(op, function_.type_of(op.operands[i]), in[i])));
  }
  std::move(tail.begin(), tail.end(), std::back_inserter(made.ops));
  made.ops.push_back(std::move(terminator));
  clean(made, op);
  std::vector<ir::Type> types;
  for (const size_t i : wanted) types.push_back(function_.type_of(op.operands[i]));
  ir::AttributeList attributes{{"in_shardings", ir::Attribute{ir::ShardingAttr{std::move(shardings), true}}},
                               {"out_shardings", ir::Attribute{ir::ShardingAttr{std::move(out_shardings), true}}},
                               {"manual_axes", *ir::find(op.attributes, "manual_axes")}};
  ops::Writer writer(function_, out, op);
  std::vector<ir::Region> regions;
  regions.push_back(std::move(made));
  const std::vector<ir::ValueId> results =
      writer.create(op.name, std::move(operands), types, std::move(attributes), std::move(regions));
  for (size_t k = 0; k < wanted.size(); ++k) give(sums, op.operands[wanted[k]], ops::Term{&writer, results[k]}, writer);
}

}  // namespace meshd::program
