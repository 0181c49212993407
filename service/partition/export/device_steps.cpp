#include "service/partition/export/device_steps.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "service/ops/op_def.h"
#include "service/ops/rewrites/writer.h"
#include "service/ops/shards/shard_rules.h"
#include "service/partition/export/device_halo.h"

namespace meshd::partition {
namespace {

// Attributes that only kernels read: the position of a shard among the others.
bool has_kernel_attributes(const LocalOp& op) {
  return std::any_of(op.attributes.begin(), op.attributes.end(),
                     [](const auto& entry) { return entry.name.starts_with("meshd."); });
}

// Ops without operands, such as iota: each shard computes its own block.
bool is_generated(const LocalOp& op) { return op.def->free_result_layout && op.operands.empty(); }

size_t generated_dim(const LocalProgram& local, const LocalOp& op) {
  if (op.def->fuse.iota_dim == nullptr)
    ir::fail("unsupported_partition", op.location, "'" + op.name + "' is not written for one device");
  const std::vector<ir::Type> result{local.value(op.results[0]).local_type()};
  return static_cast<size_t>(
      op.def->fuse.iota_dim({{}, result, &op.attributes, {}, local.function.get(), &op.location}));
}

// Sub-axes leave dimension `from` for dimension `to` (all_to_all).
ir::ValueId exchange(DeviceFunction& f, ir::ValueId value, int number, size_t from, size_t to,
                     const std::vector<int>& sub_axes) {
  DeviceWriter& writer = f.writer();
  tensor::Dims dims = writer.type(value).dims();
  const int64_t ways = sharding::part_count(f.local().view(number), sub_axes);
  dims[from] *= ways;
  dims[to] /= ways;
  ir::AttributeList attributes{{"concat_dimension", ir::integer_attr(static_cast<int64_t>(from))},
                               {"split_count", ir::integer_attr(ways)},
                               {"split_dimension", ir::integer_attr(static_cast<int64_t>(to))}};
  for (auto& entry : f.groups(number, sub_axes)) attributes.push_back(std::move(entry));
  return writer.create_one("stablehlo.all_to_all", {value}, ir::Type::of({writer.type(value).dtype(), dims}),
                           std::move(attributes));
}

ir::ValueId reshard(DeviceFunction& f, const ShardedType& from, const ShardedType& to, ir::ValueId value) {
  DeviceWriter& writer = f.writer();
  if (from.layout.view != to.layout.view) return f.shard_of(f.everywhere_of(value, from), to);
  const int number = from.layout.view;
  const sharding::MeshView& view = f.local().view(number);
  const sharding::SubAxisSet sharded = from.layout.mask() | to.layout.mask();
  value = f.of_first(value, number, from.varies & ~to.varies & ~sharded);
  const size_t rank = from.rank();
  std::vector<std::vector<int>> out(rank), in(rank);  // sub-axes that dimensions lose and gain behind what they keep
  std::vector<char> uneven(rank, 0);
  for (size_t d = 0; d < rank; ++d) {
    const auto& a = from.sub_axes(d);
    const auto& b = to.sub_axes(d);
    if (a == b) continue;
    const int64_t size = from.logical_dims[d];
    uneven[d] = size % from.parts(view, d) != 0 || size % to.parts(view, d) != 0;
    const size_t same =
        uneven[d] ? 0 : static_cast<size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
    out[d].assign(a.begin() + static_cast<std::ptrdiff_t>(same), a.end());
    in[d].assign(b.begin() + static_cast<std::ptrdiff_t>(same), b.end());
  }
  sharding::SubAxisSet leaving = 0;
  for (const auto& sub_axes : out) leaving |= mask_of(sub_axes);
  for (size_t d = 0; d < rank; ++d) {  // what every device has already
    if (uneven[d] || !out[d].empty() || (mask_of(in[d]) & leaving) != 0) continue;
    value = f.slice(value, number, d, in[d]);
    in[d].clear();
  }
  for (size_t d = 0; d < rank; ++d) {
    for (size_t e = 0; e < rank; ++e) {
      if (d == e || out[d].empty() || out[d] != in[e] || !out[e].empty() || !in[d].empty() || uneven[d] || uneven[e])
        continue;
      if (!f.has_equal_groups(number, sharding::part_count(view, out[d]))) continue;
      value = exchange(f, value, number, d, e, out[d]);
      out[d].clear();
      in[e].clear();
    }
  }
  for (size_t d = 0; d < rank; ++d) {
    value = f.gather(value, number, d, out[d]);
    if (!uneven[d]) continue;
    value = writer.sliced(value, d, from.logical_dims[d]);
    tensor::Dims padded = writer.type(value).dims();
    padded[d] = to.even_size(view, d);
    value = writer.pad_to(value, padded);
  }
  for (size_t d = 0; d < rank; ++d) value = f.slice(value, number, d, in[d]);
  return value;
}

// The global index of each row of `dim`, over all elements of a shard.
ir::ValueId rows_of(DeviceFunction& f, const ShardedType& type, size_t dim) {
  DeviceWriter& writer = f.writer();
  const tensor::Dims& dims = type.local.dims;
  const ir::ValueId here = writer.iota({tensor::DType::kInt64, dims}, static_cast<int64_t>(dim));
  return writer.binary("stablehlo.add", here, writer.broadcast(f.start(type, dim), dims));
}

ir::ValueId mask(DeviceFunction& f, const ShardedType& type, ir::ValueId value, ir::ValueId fill) {
  DeviceWriter& writer = f.writer();
  const sharding::MeshView& view = f.local().view(type.layout.view);
  const tensor::Dims& dims = type.local.dims;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (type.even_size(view, d) == type.logical_dims[d]) continue;
    const ir::ValueId limit = writer.broadcast(writer.integer(type.logical_dims[d]), dims);
    const ir::ValueId is_real = writer.compare(rows_of(f, type, d), "LT", limit);
    value =
        writer.create_one("stablehlo.select", {is_real, value, writer.broadcast(fill, dims)}, ir::Type::of(type.local));
  }
  return value;
}

ir::ValueId reduced(DeviceFunction& f, const LocalOp& op, ir::ValueId value, const ir::Type& type, int number,
                    const std::vector<int>& sub_axes) {
  DeviceWriter& writer = f.writer();
  const ir::Function& of = *f.local().function;
  const tensor::DType dtype = of.type_of(op.regions[0].arguments[0]).dtype();
  const auto as = [&](const char* name, ir::ValueId from, tensor::DType to) {
    return writer.create_one(name, {from}, ir::Type::of({to, type.dims()}));
  };
  // A reducer of other types reduces complex numbers by part, other numbers by their bits.
  if (tensor::is_complex(type.dtype())) {
    const auto part = tensor::part_of(type.dtype());
    if (dtype != type.dtype()) {
      const ir::Type half = ir::Type::of({part, type.dims()});
      const ir::ValueId real = reduced(f, op, as("stablehlo.real", value, part), half, number, sub_axes);
      const ir::ValueId imag = reduced(f, op, as("stablehlo.imag", value, part), half, number, sub_axes);
      return writer.create_one("stablehlo.complex", {real, imag}, type);
    }
  } else if (dtype != type.dtype()) {
    const ir::Type bits = ir::Type::of({dtype, type.dims()});
    const ir::ValueId made = reduced(f, op, as("stablehlo.bitcast_convert", value, dtype), bits, number, sub_axes);
    return as("stablehlo.bitcast_convert", made, type.dtype());
  }
  ir::AttributeList attributes = f.groups(number, sub_axes);
  attributes.emplace_back("use_global_device_ids", ir::Attribute{ir::Unit{}});
  return writer.create_one("stablehlo.all_reduce", {value}, type, std::move(attributes),
                           copied_regions(op.regions, of, f.function()));
}

std::vector<ir::ValueId> reduce(DeviceFunction& f, const LocalOp& op, std::span<const ir::ValueId> operands) {
  const int number = f.local().type(op.results[0]).layout.view;
  const std::vector<int> sub_axes = list_of(op.reduced);
  std::vector<ir::ValueId> out;
  for (size_t i = 0; i < op.results.size(); ++i)
    out.push_back(reduced(f, op, operands[i], f.local().value(op.results[i]).local_type(), number, sub_axes));
  return out;
}

ir::ValueId constant(DeviceFunction& f, const LocalOp& op) {
  const ShardedType& type = f.local().type(op.results[0]);
  ir::DenseAttr dense = *ir::find(op.attributes, "value")->as<ir::DenseAttr>();
  if (dense.splat || dense.bytes->empty()) {
    dense.type.dims = type.local.dims;
    return f.writer().constant(std::move(dense));
  }
  return f.shard_of(f.writer().constant(std::move(dense)), type);
}

// A collective of the text over a view that does not reach all devices: groups for the others, too.
ir::AttributeList group_attributes(DeviceFunction& f, const LocalOp& op) {
  ir::AttributeList out = dialect_attributes(op.attributes);
  const int number = f.local().type(op.results[0]).layout.view;
  if (f.is_over_all(number) || std::get<ops::GroupKernel>(op.def->body).is_permutation || op.groups.empty()) return out;
  constexpr std::string_view kGlobalIds = "use_global_device_ids";
  const auto& known = op.def->signature.attributes;
  const bool takes_global_ids =
      std::any_of(known.begin(), known.end(), [&](const ops::AttributeSpec& spec) { return spec.name == kGlobalIds; });
  // Of these ops, one whose result is like its operand takes groups of any sizes.
  const bool keeps_type =
      takes_global_ids && f.local().type(op.results[0]).local == f.local().type(op.operands[0]).local;
  std::erase_if(out,
                [](const auto& entry) { return entry.name == "replica_groups" || entry.name == "channel_handle"; });
  out.emplace_back("channel_handle", f.new_channel());
  out.emplace_back("replica_groups", f.with_others(op.groups, !keeps_type, op.location));
  if (takes_global_ids && ir::find(out, kGlobalIds) == nullptr)
    out.emplace_back(std::string(kGlobalIds), ir::Attribute{ir::Unit{}});
  return out;
}

std::vector<ir::Type> logical_types(const LocalProgram& local, const std::vector<LocalId>& ids) {
  std::vector<ir::Type> out;
  for (const LocalId id : ids) out.push_back(ir::Type::of(local.type(id).logical()));
  return out;
}

std::vector<ir::ValueId> as_written(DeviceFunction& f, const LocalOp& op, std::vector<ir::ValueId> operands,
                                    const std::vector<ir::Type>& results) {
  return f.writer().create(op.name, std::move(operands), results,
                           op.kind == LocalKind::kGroup ? group_attributes(f, op) : dialect_attributes(op.attributes),
                           copied_regions(op.regions, *f.local().function, f.function()));
}

// The row's per-shard lowering; nothing where it has none for this op.
std::optional<std::vector<ir::ValueId>> on_shard(DeviceFunction& f, const LocalOp& op,
                                                 std::span<const ir::ValueId> operands) {
  const LocalProgram& local = f.local();
  if (op.def->on_shard == nullptr) return std::nullopt;
  const std::vector<ir::Type> logical_operands = logical_types(local, op.operands);
  const std::vector<ir::Type> logical_results = logical_types(local, op.results);
  const std::vector<ir::Type> local_operands = local.local_types(op.operands);
  const std::vector<ir::Type> local_results = local.local_types(op.results);
  const ir::AttributeList attributes = dialect_attributes(op.attributes);
  const std::vector<ir::Region> regions = copied_regions(op.regions, *local.function, f.function());
  const ops::ShardStarts starts{
      [&](size_t operand, size_t dim) { return f.start(local.type(op.operands[operand]), dim); },
      [&](size_t result, size_t dim) { return f.start(local.type(op.results[result]), dim); },
  };
  ir::Op source;
  source.name = op.name;
  source.location = op.location;
  std::vector<ir::Op> written;
  ops::Writer writer(f.function(), written, source);
  auto out = op.def->on_shard({logical_operands, logical_results, &attributes, regions, &f.function(), &op.location},
                              {local_operands, local_results, &attributes, regions, &f.function(), &op.location},
                              {operands.begin(), operands.end()}, starts, writer);
  if (!out) return out;
  for (ir::Op& made : written) f.writer().insert(std::move(made));
  return out;
}

// Every device computes the unsharded value and slices its shard.
std::vector<ir::ValueId> on_replicated(DeviceFunction& f, const LocalOp& op, std::span<const ir::ValueId> operands) {
  std::vector<ir::ValueId> unsharded;
  for (size_t i = 0; i < operands.size(); ++i)
    unsharded.push_back(f.unsharded_of(operands[i], f.local().type(op.operands[i])));
  std::vector<ir::ValueId> out = as_written(f, op, std::move(unsharded), logical_types(f.local(), op.results));
  for (size_t i = 0; i < out.size(); ++i) out[i] = f.shard_of(out[i], f.local().type(op.results[i]));
  return out;
}

std::vector<ir::ValueId> write_op(DeviceFunction& f, const LocalOp& op, std::span<const ir::ValueId> operands) {
  const ir::Type result = f.local().value(op.results[0]).local_type();
  if (is_in_dialect(f.local(), op))
    return as_written(f, op, {operands.begin(), operands.end()}, f.local().local_types(op.results));
  if (is_generated(op)) {
    const ir::ValueId rows = rows_of(f, f.local().type(op.results[0]), generated_dim(f.local(), op));
    return {result.dtype() == tensor::DType::kInt64 ? rows
                                                    : f.writer().create_one("stablehlo.convert", {rows}, result)};
  }
  if (auto written = on_shard(f, op, operands)) return *written;
  return on_replicated(f, op, operands);
}

}  // namespace

bool is_in_dialect(const LocalProgram& local, const LocalOp& op) {
  if (op.kind != LocalKind::kOp) return op.kind == LocalKind::kGroup;
  if (is_generated(op)) return local.type(op.results[0]).sub_axes(generated_dim(local, op)).empty();
  const auto is_sharded = [&](LocalId id) { return local.type(id).layout.mask() != 0; };
  return !has_kernel_attributes(op) || (std::none_of(op.operands.begin(), op.operands.end(), is_sharded) &&
                                        std::none_of(op.results.begin(), op.results.end(), is_sharded));
}

bool runs_replicated(const LocalProgram& local, const LocalOp& op) {
  return op.kind == LocalKind::kOp && !is_in_dialect(local, op) && !is_generated(op) && op.def->on_shard == nullptr;
}

std::vector<ir::ValueId> write_step(DeviceFunction& to, const LocalOp& op, std::span<const ir::ValueId> operands) {
  const LocalProgram& local = to.local();
  switch (op.kind) {
    case LocalKind::kOp:
    case LocalKind::kGroup:
      return write_op(to, op, operands);
    case LocalKind::kConstant:
      return {constant(to, op)};
    case LocalKind::kMask:
      return {mask(to, local.type(op.results[0]), operands[0], operands[1])};
    case LocalKind::kReshard:
      return {reshard(to, local.type(op.operands[0]), local.type(op.results[0]), operands[0])};
    case LocalKind::kHalo:
      return {write_halo(to, op, operands)};
    case LocalKind::kReduceShards:
      return reduce(to, op, operands);
    case LocalKind::kPosition:
    case LocalKind::kView:
    case LocalKind::kWhile:
    case LocalKind::kCase:
    case LocalKind::kEffect:
      break;
  }
  throw core::Error("internal", "no step of a device: " + op.name);
}

}  // namespace meshd::partition
