#include "service/partition/lower/builder/shard_writer.h"

namespace meshd::partition {

ShardWriter::ShardWriter(Builder& builder, const ir::Op& source)
    : builder_(builder), source_(source), writer_(builder.function(), written_, source) {}

LocalId ShardWriter::seen_as(LocalId id, const tensor::TensorType& logical, const ShardLayout& layout,
                             sharding::SubAxisSet outer, const std::string& name) {
  const LocalId made = builder_.add_value(logical, layout, outer, name);
  if (builder_.type(made).varies != builder_.type(id).varies)
    id = builder_.vary(id, builder_.type(made).varies, source_.location, "shards of " + source_.name);
  LocalOp op;
  op.kind = LocalKind::kView;
  op.name = "view";
  op.operands = {id};
  op.results = {made};
  op.location = source_.location;
  builder_.append(std::move(op));
  return made;
}

ir::ValueId ShardWriter::enter(LocalId id) {
  const LocalValue value = builder_.value(id);
  const ShardedType& type = value.type;
  view_ = type.layout.view;
  const ir::ValueId made = builder_.function().add_value(value.local_type());
  if (type.layout.mask() != 0)
    id = seen_as(id, type.local, replicated(type.local.rank(), view_), type.varies, value.name);
  known_.emplace(made, id);
  return made;
}

ir::ValueId ShardWriter::part(int view, const std::vector<int>& sub_axes) {
  const auto key = std::pair(view, sub_axes);
  if (const auto found = parts_.find(key); found != parts_.end()) return found->second;
  // The only row that each shard has of the numbers of all parts.
  LocalOp numbers;
  numbers.def = ops::find_op("stablehlo.iota");
  numbers.name = numbers.def->name;
  numbers.attributes = {{"iota_dimension", ir::integer_attr(0)}};
  numbers.location = source_.location;
  ShardLayout layout = replicated(1, view);
  layout.dims[0] = sub_axes;
  const int64_t count = sharding::part_count(builder_.view(view), sub_axes);
  const LocalId own = builder_.add_value({tensor::DType::kInt64, {count}}, layout, 0, "part");
  numbers.results = {own};
  builder_.append(std::move(numbers));
  const ir::ValueId made = writer_.reshape(enter(own), {});
  parts_.emplace(key, made);
  return made;
}

ir::ValueId ShardWriter::start(const ShardedType& type, size_t dim) {
  const std::vector<int> sub_axes = type.sub_axes(dim);
  if (sub_axes.empty()) return ir::kNoValue;
  const int64_t rows = type.local.dims[dim];
  const ir::ValueId number = part(type.layout.view, sub_axes);
  return writer_.add("stablehlo.multiply", {number, writer_.splat(writer_.type(number), static_cast<double>(rows))});
}

ir::ValueId ShardWriter::is_first(int view, sharding::SubAxisSet sub_axes) {
  const ir::ValueId number = part(view, list_of(sub_axes));
  return writer_.add("stablehlo.compare", {number, writer_.splat(writer_.type(number), 0)},
                     {{"comparison_direction", ir::Attribute{ir::EnumAttr{"comparison_direction", "EQ"}}}},
                     ir::Type::of({tensor::DType::kBool, {}}));
}

void ShardWriter::flush() {
  for (ir::Op& op : written_) {
    LocalOp made;
    made.def = &ops::op(op.code);
    made.name = op.name;
    made.attributes = std::move(op.attributes);
    made.regions = std::move(op.regions);
    made.location = op.location;
    sharding::SubAxisSet varies = 0;
    for (const ir::ValueId id : op.operands) {
      made.operands.push_back(local(id));
      varies |= builder_.type(local(id)).varies;
    }
    const auto* structural = std::get_if<ops::Structural>(&made.def->body);
    if (structural != nullptr && *structural == ops::Structural::kConstant) {
      made.kind = LocalKind::kConstant;
      made.def = nullptr;
    }
    for (const ir::ValueId id : op.results) {
      const ir::Type& type = writer_.type(id);
      known_[id] = builder_.add_value(type.tensor, replicated(type.rank(), view_), varies);
      made.results.push_back(known_[id]);
    }
    builder_.append(std::move(made));
  }
  written_.clear();
}

LocalId ShardWriter::leave(ir::ValueId value, const tensor::TensorType& logical, const ShardLayout& layout,
                           sharding::SubAxisSet outer, const std::string& name) {
  flush();
  return seen_as(local(value), logical, layout, outer | builder_.type(local(value)).varies, name);
}

}  // namespace meshd::partition
