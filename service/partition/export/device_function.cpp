#include "service/partition/export/device_function.h"

#include <fmt/core.h>

#include "service/core/checked_math.h"

namespace meshd::partition {
namespace {

// A region of the local program's function, with values of another.
ir::Region copied(const ir::Region& from, const ir::Function& of, ir::Function& into,
                  std::map<ir::ValueId, ir::ValueId>& known) {
  const auto fresh = [&](ir::ValueId id) {
    const ir::ValueId made = into.add_value(of.type_of(id));
    known[id] = made;
    return made;
  };
  ir::Region out;
  for (const ir::ValueId id : from.arguments) out.arguments.push_back(fresh(id));
  for (const ir::Op& op : from.ops) {
    ir::Op made = op;
    for (ir::ValueId& id : made.operands) {
      const auto found = known.find(id);
      if (found == known.end())
        ir::fail("unsupported_partition", op.location, "a region of '" + op.name + "' reads a value from outside");
      id = found->second;
    }
    made.regions.clear();
    for (const ir::Region& inner : op.regions) made.regions.push_back(copied(inner, of, into, known));
    for (ir::ValueId& id : made.results) id = fresh(id);
    out.ops.push_back(std::move(made));
  }
  return out;
}

}  // namespace

ir::ValueId DeviceFunction::position() {
  if (position_ == ir::kNoValue) {
    const ir::OpBuilder::InsertionGuard inside(writer_, prologue_);
    const ir::ValueId id = writer_.create_one("stablehlo.partition_id", {}, ir::Type::of({tensor::DType::kUint32, {}}));
    position_ = writer_.create_one("stablehlo.convert", {id}, ir::Type::of({tensor::DType::kInt64, {}}));
  }
  return position_;
}

ir::ValueId DeviceFunction::part(int number, const std::vector<int>& sub_axes) {
  const auto key = std::pair(number, sub_axes);
  if (const auto found = parts_.find(key); found != parts_.end()) return found->second;
  const sharding::MeshView& mesh_view = local_.view(number);
  const ir::ValueId here = position();
  const ir::OpBuilder::InsertionGuard inside(writer_, prologue_);
  ir::ValueId made = ir::kNoValue;
  if (mesh_view.flat_of_position.empty()) {
    for (const int sub_axis : sub_axes) {
      int64_t stride = 1;
      for (size_t a = static_cast<size_t>(sub_axis) + 1; a < mesh_view.sub_axis_sizes.size(); ++a)
        stride *= mesh_view.sub_axis_sizes[a];
      const int64_t size = mesh_view.sub_axis_sizes[static_cast<size_t>(sub_axis)];
      ir::ValueId coordinate = here;
      if (stride > 1) coordinate = writer_.binary("stablehlo.divide", coordinate, writer_.integer(stride));
      if (stride * size < mesh_view.position_count())
        coordinate = writer_.binary("stablehlo.remainder", coordinate, writer_.integer(size));
      made = made == ir::kNoValue
                 ? coordinate
                 : writer_.binary("stablehlo.add", writer_.binary("stablehlo.multiply", made, writer_.integer(size)),
                                  coordinate);
    }
  } else {
    std::vector<int64_t> table(static_cast<size_t>(local_.device_count()));
    for (int64_t p = 0; p < mesh_view.position_count(); ++p) {
      table[static_cast<size_t>(mesh_view.flat(p))] =
          sharding::part_index(mesh_view, sub_axes, mesh_view.coordinates(mesh_view.all(), p));
    }
    made = entry_of(table);
  }
  parts_.emplace(key, made);
  return made;
}

ir::ValueId DeviceFunction::start(const ShardedType& type, size_t dim) {
  if (type.sub_axes(dim).empty()) return ir::kNoValue;
  const ir::ValueId number = part(type.layout.view, type.sub_axes(dim));
  return writer_.binary("stablehlo.multiply", number, writer_.integer(type.local.dims[dim]));
}

ir::ValueId DeviceFunction::entry_of(const std::vector<int64_t>& table) {
  return writer_.reshape(writer_.block(writer_.integers(table), 0, position(), 1), {});
}

bool DeviceFunction::is_over_all(int number) const {
  return local_.view(number).position_count() == local_.device_count();
}

ir::ValueId DeviceFunction::is_in(int number) {
  std::vector<int64_t> table(static_cast<size_t>(local_.device_count()));
  for (int64_t p = 0; p < local_.view(number).position_count(); ++p)
    table[static_cast<size_t>(local_.view(number).flat(p))] = 1;
  return writer_.compare(entry_of(table), "EQ", writer_.integer(1));
}

std::vector<std::vector<int64_t>> DeviceFunction::groups_of(int number, const std::vector<int>& sub_axes) const {
  const sharding::MeshView& mesh_view = local_.view(number);
  const sharding::SubAxisSet mask = mask_of(sub_axes);
  const auto size = static_cast<size_t>(mesh_view.distinct_count(mask));
  std::vector<std::vector<int64_t>> out(static_cast<size_t>(mesh_view.position_count()) / size,
                                        std::vector<int64_t>(size));
  for (int64_t p = 0; p < mesh_view.position_count(); ++p) {
    const tensor::Dims coords = mesh_view.coordinates(mesh_view.all(), p);
    const int64_t group = mesh_view.distinct_index(mesh_view.all() & ~mask, coords);
    const int64_t member = sharding::part_index(mesh_view, sub_axes, coords);
    out[static_cast<size_t>(group)][static_cast<size_t>(member)] = mesh_view.flat(p);
  }
  return out;
}

ir::AttributeList DeviceFunction::groups(int number, const std::vector<int>& sub_axes) {
  return {{"channel_handle", new_channel()}, {"replica_groups", with_others(groups_of(number, sub_axes), false, {})}};
}

bool DeviceFunction::has_equal_groups(int number, int64_t size) const {
  return (local_.device_count() - local_.view(number).position_count()) % size == 0;
}

ir::Attribute DeviceFunction::with_others(std::vector<std::vector<int64_t>> groups, bool needs_equal,
                                          const ir::Location& location) {
  const size_t size = groups.front().size();
  std::vector<char> is_member(static_cast<size_t>(local_.device_count()), 0);
  for (const std::vector<int64_t>& group : groups) {
    for (const int64_t device : group) is_member[static_cast<size_t>(device)] = 1;
  }
  std::vector<int64_t> others;
  for (size_t device = 0; device < is_member.size(); ++device) {
    if (is_member[device] == 0) others.push_back(static_cast<int64_t>(device));
  }
  const bool are_equal = others.size() % size == 0;
  if (!are_equal && needs_equal) {
    ir::fail(
        "unsupported_partition", location,
        fmt::format("groups of {} devices, beside which {} others make no groups of that size", size, others.size()));
  }
  for (size_t i = 0; i < others.size(); ++i) {
    if (!are_equal || i % size == 0) groups.emplace_back();
    groups.back().push_back(others[i]);
  }
  std::vector<int64_t> ids;
  for (std::vector<int64_t>& group : groups) {
    group.resize(size, -1);
    ids.insert(ids.end(), group.begin(), group.end());
  }
  return {ir::dense_integers_attr(ids, {static_cast<int64_t>(groups.size()), static_cast<int64_t>(size)})};
}

ir::Attribute DeviceFunction::new_channel() {
  return {ir::DictAttr{"stablehlo.channel_handle",
                       {{"handle", ir::integer_attr(++channel_)}, {"type", ir::integer_attr(1)}}}};
}

ir::ValueId DeviceFunction::gather(ir::ValueId value, int number, size_t dim, const std::vector<int>& sub_axes) {
  if (sub_axes.empty()) return value;
  const int64_t ways = sharding::part_count(local_.view(number), sub_axes);
  if (!has_equal_groups(number, ways)) return gather_from_all(value, number, dim, sub_axes);
  tensor::Dims dims = writer_.type(value).dims();
  dims[dim] = core::checked_mul(dims[dim], ways);
  ir::AttributeList attributes{{"all_gather_dim", ir::integer_attr(static_cast<int64_t>(dim))}};
  for (auto& entry : groups(number, sub_axes)) attributes.push_back(std::move(entry));
  attributes.emplace_back("use_global_device_ids", ir::Attribute{ir::Unit{}});
  return writer_.create_one("stablehlo.all_gather", {value}, ir::Type::of({writer_.type(value).dtype(), dims}),
                            std::move(attributes));
}

ir::ValueId DeviceFunction::stacked(ir::ValueId value) {
  std::vector<int64_t> all(static_cast<size_t>(local_.device_count()));
  for (size_t device = 0; device < all.size(); ++device) all[device] = static_cast<int64_t>(device);
  tensor::Dims dims = writer_.type(value).dims();
  dims.insert(dims.begin(), 1);
  const ir::ValueId one = writer_.reshape(value, dims);
  dims[0] = local_.device_count();
  return writer_.create_one("stablehlo.all_gather", {one}, ir::Type::of({writer_.type(value).dtype(), dims}),
                            {{"all_gather_dim", ir::integer_attr(0)},
                             {"channel_handle", new_channel()},
                             {"replica_groups", with_others({all}, true, {})},
                             {"use_global_device_ids", ir::Attribute{ir::Unit{}}}});
}

ir::ValueId DeviceFunction::of_device(ir::ValueId value, int64_t device) {
  const tensor::Dims dims = writer_.type(value).dims();
  return writer_.reshape(writer_.block(stacked(value), 0, writer_.integer(device), 1), dims);
}

ir::ValueId DeviceFunction::gather_from_all(ir::ValueId value, int number, size_t dim,
                                            const std::vector<int>& sub_axes) {
  const std::vector<std::vector<int64_t>> groups = groups_of(number, sub_axes);
  const ir::ValueId all = stacked(value);
  const tensor::Dims dims = writer_.type(value).dims();
  std::vector<ir::ValueId> parts;
  for (size_t member = 0; member < groups.front().size(); ++member) {
    std::vector<int64_t> table(static_cast<size_t>(local_.device_count()));
    for (const std::vector<int64_t>& group : groups) {
      for (const int64_t device : group) table[static_cast<size_t>(device)] = group[member];
    }
    parts.push_back(writer_.reshape(writer_.block(all, 0, entry_of(table), 1), dims));
  }
  return writer_.concatenate(std::move(parts), static_cast<int64_t>(dim));
}

ir::ValueId DeviceFunction::everywhere_of(ir::ValueId shard, const ShardedType& type) {
  const ir::ValueId unsharded = unsharded_of(shard, type);
  const int number = type.layout.view;
  return is_over_all(number) ? unsharded : of_device(unsharded, local_.view(number).flat(0));
}

ir::ValueId DeviceFunction::slice(ir::ValueId value, int number, size_t dim, const std::vector<int>& sub_axes) {
  if (sub_axes.empty()) return value;
  const int64_t size = writer_.type(value).dims()[dim] / sharding::part_count(local_.view(number), sub_axes);
  const ir::ValueId start = writer_.binary("stablehlo.multiply", part(number, sub_axes), writer_.integer(size));
  return writer_.block(value, dim, start, size);
}

ir::ValueId DeviceFunction::shard_of(ir::ValueId unsharded, const ShardedType& type) {
  const int number = type.layout.view;
  ir::ValueId value = writer_.pad_to(unsharded, type.even_dims(local_.view(number)));
  for (size_t d = 0; d < type.rank(); ++d) value = slice(value, number, d, type.sub_axes(d));
  return value;
}

ir::ValueId DeviceFunction::unsharded_of(ir::ValueId shard, const ShardedType& type) {
  ir::ValueId value = shard;
  for (size_t d = 0; d < type.rank(); ++d) {
    value = gather(value, type.layout.view, d, type.sub_axes(d));
    value = writer_.sliced(value, d, type.logical_dims[d]);
  }
  return value;
}

ir::ValueId DeviceFunction::of_first(ir::ValueId value, int number, sharding::SubAxisSet sub_axes) {
  std::vector<int> list = list_of(sub_axes);
  std::erase_if(list, [&](int a) { return local_.view(number).sub_axis_sizes[static_cast<size_t>(a)] <= 1; });
  if (list.empty()) return value;
  const tensor::Dims dims = writer_.type(value).dims();
  tensor::Dims stacked = dims;
  stacked.insert(stacked.begin(), 1);
  const ir::ValueId all = gather(writer_.reshape(value, stacked), number, 0, list);
  return writer_.reshape(writer_.sliced(all, 0, 1), dims);
}

std::vector<ir::Region> copied_regions(const std::vector<ir::Region>& from, const ir::Function& of,
                                       ir::Function& into) {
  std::vector<ir::Region> out;
  std::map<ir::ValueId, ir::ValueId> known;
  for (const ir::Region& region : from) out.push_back(copied(region, of, into, known));
  return out;
}

ir::AttributeList dialect_attributes(const ir::AttributeList& attributes) {
  ir::AttributeList out;
  for (const auto& entry : attributes) {
    if (entry.name.starts_with("meshd.")) continue;
    if (entry.name != "sdy.sharding" && entry.name != "sdy.sharding_rule" && entry.name != "mhlo.sharding")
      out.push_back(entry);
  }
  return out;
}

}  // namespace meshd::partition
