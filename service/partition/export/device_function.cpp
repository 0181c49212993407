#include "service/partition/export/device_function.h"

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
    std::vector<int64_t> table(mesh_view.flat_of_position.size());
    for (int64_t p = 0; p < mesh_view.position_count(); ++p) {
      table[static_cast<size_t>(mesh_view.flat(p))] =
          sharding::part_index(mesh_view, sub_axes, mesh_view.coordinates(mesh_view.all(), p));
    }
    made = writer_.reshape(writer_.block(writer_.integers(table), 0, here, 1), {});
  }
  parts_.emplace(key, made);
  return made;
}

ir::ValueId DeviceFunction::start(const ShardedType& type, size_t dim) {
  if (type.sub_axes(dim).empty()) return ir::kNoValue;
  const ir::ValueId number = part(type.layout.view, type.sub_axes(dim));
  return writer_.binary("stablehlo.multiply", number, writer_.integer(type.local.dims[dim]));
}

ir::AttributeList DeviceFunction::groups(int number, const std::vector<int>& sub_axes) {
  const sharding::MeshView& mesh_view = local_.view(number);
  const sharding::SubAxisSet mask = mask_of(sub_axes);
  std::vector<int64_t> order(static_cast<size_t>(mesh_view.position_count()));
  const int64_t size = mesh_view.distinct_count(mask);
  for (int64_t p = 0; p < mesh_view.position_count(); ++p) {
    const tensor::Dims coords = mesh_view.coordinates(mesh_view.all(), p);
    const int64_t group = mesh_view.distinct_index(mesh_view.all() & ~mask, coords);
    order[static_cast<size_t>(group * size + sharding::part_index(mesh_view, sub_axes, coords))] = mesh_view.flat(p);
  }
  return {{"channel_handle", new_channel()},
          {"replica_groups", {ir::dense_integers_attr(order, {mesh_view.position_count() / size, size})}}};
}

ir::Attribute DeviceFunction::new_channel() {
  return {ir::DictAttr{"stablehlo.channel_handle",
                       {{"handle", ir::integer_attr(++channel_)}, {"type", ir::integer_attr(1)}}}};
}

ir::ValueId DeviceFunction::gather(ir::ValueId value, int number, size_t dim, const std::vector<int>& sub_axes) {
  if (sub_axes.empty()) return value;
  tensor::Dims dims = writer_.type(value).dims();
  dims[dim] = core::checked_mul(dims[dim], sharding::part_count(local_.view(number), sub_axes));
  ir::AttributeList attributes{{"all_gather_dim", ir::integer_attr(static_cast<int64_t>(dim))}};
  for (auto& entry : groups(number, sub_axes)) attributes.push_back(std::move(entry));
  attributes.emplace_back("use_global_device_ids", ir::Attribute{ir::Unit{}});
  return writer_.create_one("stablehlo.all_gather", {value}, ir::Type::of({writer_.type(value).dtype(), dims}),
                            std::move(attributes));
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
