#include "service/ops/collective/collectives_vjp.h"

#include <initializer_list>
#include <string>

#include "service/kernels/elementwise/scalar_op.h"
#include "service/ops/checks.h"
#include "service/ops/collective/collective_groups.h"
#include "service/ops/shards/shard_rules.h"

namespace meshd::ops {
namespace {

using kernels::ScalarOp;

/// The op's own attributes of these names, with their groups and channels.
ir::AttributeList kept(const Vjp& v, std::initializer_list<std::string_view> more = {}) {
  ir::AttributeList out;
  const auto keep = [&](std::string_view name) {
    if (const ir::Attribute* attribute = ir::find(attributes_of(v.view), name))
      out.push_back({std::string(name), *attribute});
  };
  for (const std::string_view name : {"replica_groups", "channel_handle", "channel_id", "use_global_device_ids"})
    keep(name);
  for (const std::string_view name : more) keep(name);
  return out;
}

/// A collective of one value that reduces by add, or of none that does (`reduces`), in the groups of `v`.
Term group_op(const Vjp& v, std::string_view name, Term value, const ir::Type& type, ir::AttributeList attributes,
              bool reduces) {
  std::vector<ir::Region> regions;
  if (reduces) regions.push_back(v.writer.reducer("stablehlo.add", with_dims(type, {})));
  return v.value(v.writer.add(name, {value.id}, std::move(attributes), {type}, std::move(regions)).at(0));
}

Term all_sum(const Vjp& v, Term value) {
  return group_op(v, "stablehlo.all_reduce", value, value.type(), kept(v), true);
}

/// `one` for each operand whose result has a cotangent.
template <typename One>
Contributions each_operand(const Vjp& v, One&& one) {
  Contributions out(v.op.operands.size());
  for (size_t i = 0; i < out.size(); ++i) {
    if (v.cotangents[i] != ir::kNoValue && v.wanted[i]) out[i] = one(i);
  }
  return out;
}

/// What the op's body combines with; refused where that is none of `known`, as `which` says.
ScalarOp combined_with(const Vjp& v, std::initializer_list<ScalarOp> known, const std::string& which) {
  const std::vector<ScalarOp> body = combining_ops(v.view, 1);
  for (const ScalarOp op : known) {
    if (!body.empty() && body[0] == op) return op;
  }
  reject(v.view, "unsupported_op", "'" + v.op.name + "' has a derivative where its body is " + which);
}

}  // namespace

Contributions vjp_all_reduce(const Vjp& v) {
  const ScalarOp body =
      combined_with(v, {ScalarOp::kAdd, ScalarOp::kMaximum, ScalarOp::kMinimum}, "one of add, maximum and minimum");
  return each_operand(v, [&](size_t i) {
    if (body == ScalarOp::kAdd) return all_sum(v, v.ct(i));
    const Term is_extreme = select(compare(v.x(i), "EQ", v.y(i)), v.x(i).number(1), v.x(i).number(0));
    return is_extreme * all_sum(v, v.ct(i)) / all_sum(v, is_extreme);
  });
}

Contributions vjp_all_gather(const Vjp& v) {
  return each_operand(v, [&](size_t i) {
    ir::AttributeList attributes = kept(v);
    attributes.push_back({"scatter_dimension", *ir::find(attributes_of(v.view), "all_gather_dim")});
    return group_op(v, "stablehlo.reduce_scatter", v.ct(i), v.x(i).type(), std::move(attributes), true);
  });
}

Contributions vjp_reduce_scatter(const Vjp& v) {
  combined_with(v, {ScalarOp::kAdd}, "add");
  return each_operand(v, [&](size_t i) {
    ir::AttributeList attributes = kept(v);
    attributes.push_back({"all_gather_dim", *ir::find(attributes_of(v.view), "scatter_dimension")});
    return group_op(v, "stablehlo.all_gather", v.ct(i), v.x(i).type(), std::move(attributes), false);
  });
}

Contributions vjp_all_to_all(const Vjp& v) {
  return each_operand(v, [&](size_t i) {
    ir::AttributeList attributes = kept(v, {"split_count"});
    attributes.push_back({"split_dimension", *ir::find(attributes_of(v.view), "concat_dimension")});
    attributes.push_back({"concat_dimension", *ir::find(attributes_of(v.view), "split_dimension")});
    return group_op(v, "stablehlo.all_to_all", v.ct(i), v.x(i).type(), std::move(attributes), false);
  });
}

Contributions vjp_collective_permute(const Vjp& v) {
  std::vector<int64_t> pairs;
  for (const auto& pair : source_target_pairs_of(v.view)) pairs.insert(pairs.end(), {pair[1], pair[0]});
  return each_operand(v, [&](size_t i) {
    ir::AttributeList attributes = kept(v);
    attributes.push_back({"source_target_pairs",
                          ir::Attribute{ir::dense_integers_attr(pairs, {static_cast<int64_t>(pairs.size() / 2), 2})}});
    return group_op(v, "stablehlo.collective_permute", v.ct(i), v.x(i).type(), std::move(attributes), false);
  });
}

}  // namespace meshd::ops
