#include "service/partition/export/device_module.h"

#include <algorithm>
#include <map>

#include "service/core/checked_math.h"
#include "service/partition/export/device_halo.h"
#include "service/partition/export/device_writer.h"
#include "service/partition/shard_layout.h"

namespace meshd::partition {
namespace {

using sharding::SubAxisSet;

bool is_symbol_taken(const ir::Module& module, const std::string& name) { return module.find_mesh(name) != nullptr; }

class DeviceModule {
 public:
  explicit DeviceModule(const LocalProgram& local) : local_(local), writer_(main_), values_(local.values.size(), -1) {}

  ir::Module run() {
    module_.name = "device_program";
    main_.name = "main";
    main_.is_public = true;
    choose_mesh();
    const ir::OpBuilder::InsertionGuard outside(writer_, main_.body.ops);
    std::vector<ir::ValueId> operands = arguments();
    ir::Region region;
    {
      std::vector<ir::Op> body;
      {
        const ir::OpBuilder::InsertionGuard inside(writer_, body);
        enter(region);
        write(local_.body);
        std::vector<ir::ValueId> given = leave();
        writer_.create("sdy.return", std::move(given), {});
      }
      region.ops = std::move(prologue_);
      std::move(body.begin(), body.end(), std::back_inserter(region.ops));
    }
    finish(std::move(operands), std::move(region));
    module_.functions.push_back(std::move(main_));
    return std::move(module_);
  }

 private:
  // ---- meshes and layouts

  void choose_mesh() {
    const ViewNames& names = local_.view_names.front();
    mesh_ = names.axes;
    names_ = names;
    if (mesh_ == nullptr) {
      mesh_ = std::make_shared<const mesh::Mesh>(mesh::Mesh{{{"device", local_.device_count()}}, {}, {}});
      names_.sub_axes = {{0, 1, 0}};
    }
    mesh_name_ = add_mesh(mesh_, names.mesh.empty() ? "devices" : names.mesh);
  }

  std::string add_mesh(const mesh::MeshRef& mesh, std::string name) {
    for (const ir::NamedMesh& known : module_.meshes) {
      if (known.name == name && known.mesh->axes == mesh->axes && known.mesh->device_ids == mesh->device_ids)
        return name;
    }
    while (is_symbol_taken(module_, name)) name += "_";
    module_.meshes.push_back(
        {name, std::make_shared<const mesh::Mesh>(mesh::Mesh{mesh->axes, mesh->device_ids, {}}), {}});
    return name;
  }

  [[nodiscard]] const sharding::MeshView& view(int number) const { return local_.view(number); }

  // How a value enters or leaves the manual computation: its own cuts in the first view, whole in others.
  [[nodiscard]] sharding::TensorSharding edge_sharding(const ShardLayout& layout) const {
    auto out = sharding::fully_replicated(mesh_name_, mesh_, static_cast<int64_t>(layout.dims.size()));
    for (size_t d = 0; d < layout.dims.size() && layout.view == 0; ++d) {
      for (const int sub_axis : layout.dims[d])
        out.dims[d].axes.push_back(names_.sub_axes[static_cast<size_t>(sub_axis)]);
      out.dims[d].axes = sharding::canonical_axes(std::move(out.dims[d].axes), *mesh_);
    }
    return out;
  }

  void note_sharding(ir::Parameter& parameter, const sharding::TensorSharding& sharding) {
    if (sharding.mesh == nullptr || sharding.mesh->axes.empty()) return;
    sharding::TensorSharding named = sharding;
    named.mesh_name = add_mesh(sharding.mesh, sharding.mesh_name.empty() ? "mesh" : sharding.mesh_name);
    parameter.sharding = named;
    parameter.attributes.emplace_back("sdy.sharding", ir::Attribute{ir::ShardingAttr{{named}, false}});
  }

  // ---- around the manual computation

  std::vector<ir::ValueId> arguments() {
    std::vector<ir::ValueId> out;
    for (const LocalParameter& argument : local_.arguments) {
      ir::Parameter parameter;
      parameter.type = ir::Type::of(argument.global_type);
      note_sharding(parameter, argument.sharding);
      if (argument.is_donated) {
        parameter.is_donor = true;
        parameter.attributes.emplace_back("jax.buffer_donor", ir::Attribute{ir::IntegerAttr{1, "i1"}});
      }
      const ir::ValueId id = main_.add_value(parameter.type);
      main_.body.arguments.push_back(id);
      main_.arguments.push_back(std::move(parameter));
      const ShardedType& type = local_.type(argument.value);
      out.push_back(type.layout.view == 0 ? writer_.pad_to(id, type.even_dims(view(0))) : id);
    }
    return out;
  }

  void enter(ir::Region& region) {
    for (const LocalParameter& argument : local_.arguments) {
      const ShardedType& type = local_.type(argument.value);
      const bool is_cut = type.layout.view == 0;
      const ir::ValueId id = main_.add_value(ir::Type::of(is_cut ? type.local : argument.global_type));
      region.arguments.push_back(id);
      define(argument.value, is_cut ? id : slice_down(id, type));
    }
  }

  std::vector<ir::ValueId> leave() {
    std::vector<ir::ValueId> out;
    for (const LocalParameter& result : local_.results) {
      const ShardedType& type = local_.type(result.value);
      out.push_back(type.layout.view == 0 ? at(result.value) : gather_up(at(result.value), type));
    }
    return out;
  }

  void finish(std::vector<ir::ValueId> operands, ir::Region region) {
    ir::ShardingAttr in{{}, true};
    ir::ShardingAttr out{{}, true};
    std::vector<ir::Type> types;
    for (const LocalParameter& argument : local_.arguments)
      in.shardings.push_back(edge_sharding(local_.type(argument.value).layout));
    for (const LocalParameter& result : local_.results) {
      const ShardedType& type = local_.type(result.value);
      out.shardings.push_back(edge_sharding(type.layout));
      types.push_back(ir::Type::of(type.layout.view == 0 ? tensor::TensorType{type.local.dtype, type.even_dims(view(0))}
                                                         : result.global_type));
    }
    ir::ArrayAttr axes;
    for (const mesh::Axis& axis : mesh_->axes) axes.values.push_back({ir::StringAttr{axis.name}});
    std::vector<ir::Region> regions;
    regions.push_back(std::move(region));
    std::vector<ir::ValueId> results = writer_.create(
        "sdy.manual_computation", std::move(operands), types,
        {{"in_shardings", {std::move(in)}}, {"manual_axes", {std::move(axes)}}, {"out_shardings", {std::move(out)}}},
        std::move(regions));
    for (size_t i = 0; i < results.size(); ++i) {
      const LocalParameter& result = local_.results[i];
      for (size_t d = 0; d < result.global_type.dims.size(); ++d)
        results[i] = writer_.cut(results[i], d, result.global_type.dims[d]);
      ir::Parameter parameter;
      parameter.type = ir::Type::of(result.global_type);
      parameter.result_info = result.result_info;
      if (!result.result_info.empty())
        parameter.attributes.emplace_back("jax.result_info", ir::Attribute{ir::StringAttr{result.result_info}});
      note_sharding(parameter, result.sharding);
      main_.results.push_back(std::move(parameter));
    }
    writer_.create("func.return", std::move(results), {});
  }

  // ---- where a device stands

  // Before everything else in the manual computation, made once.
  ir::ValueId position() {
    if (position_ < 0) {
      const ir::OpBuilder::InsertionGuard inside(writer_, prologue_);
      const ir::ValueId id =
          writer_.create_one("stablehlo.partition_id", {}, ir::Type::of({tensor::DType::kUint32, {}}));
      position_ = writer_.create_one("stablehlo.convert", {id}, ir::Type::of({tensor::DType::kInt64, {}}));
    }
    return position_;
  }

  // Which part of a dimension cut by `sub_axes` this device has.
  ir::ValueId part(int number, const std::vector<int>& sub_axes) {
    const auto key = std::pair(number, sub_axes);
    if (const auto found = parts_.find(key); found != parts_.end()) return found->second;
    const sharding::MeshView& mesh_view = view(number);
    const ir::ValueId here = position();
    const ir::OpBuilder::InsertionGuard inside(writer_, prologue_);
    ir::ValueId made = -1;
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
        made = made < 0 ? coordinate
                        : writer_.binary("stablehlo.add",
                                         writer_.binary("stablehlo.multiply", made, writer_.integer(size)), coordinate);
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

  // Groups of devices that differ in `sub_axes`, in the order of the sub-axes, as replica_groups.
  ir::AttributeList groups(int number, const std::vector<int>& sub_axes) {
    const sharding::MeshView& mesh_view = view(number);
    SubAxisSet mask = mask_of(sub_axes);
    std::vector<int64_t> order(static_cast<size_t>(mesh_view.position_count()));
    const int64_t size = mesh_view.distinct_count(mask);
    for (int64_t p = 0; p < mesh_view.position_count(); ++p) {
      const tensor::Dims coords = mesh_view.coordinates(mesh_view.all(), p);
      const int64_t group = mesh_view.distinct_index(mesh_view.all() & ~mask, coords);
      order[static_cast<size_t>(group * size + sharding::part_index(mesh_view, sub_axes, coords))] = mesh_view.flat(p);
    }
    auto bytes = std::make_shared<std::vector<std::byte>>(order.size() * sizeof(int64_t));
    std::copy_n(reinterpret_cast<const std::byte*>(order.data()), bytes->size(), bytes->data());
    ir::DenseAttr dense;
    dense.type = {tensor::DType::kInt64, {mesh_view.position_count() / size, size}};
    dense.bytes = std::move(bytes);
    const ir::DictAttr channel{"stablehlo.channel_handle",
                               {{"handle", ir::integer_attr(++channel_)}, {"type", ir::integer_attr(1)}}};
    return {{"channel_handle", {channel}}, {"replica_groups", {std::move(dense)}}};
  }

  // ---- moving

  ir::ValueId gather(ir::ValueId value, int number, size_t dim, const std::vector<int>& sub_axes) {
    if (sub_axes.empty()) return value;
    tensor::Dims dims = writer_.type(value).dims();
    dims[dim] = core::checked_mul(dims[dim], sharding::part_count(view(number), sub_axes));
    ir::AttributeList attributes{{"all_gather_dim", ir::integer_attr(static_cast<int64_t>(dim))}};
    for (auto& entry : groups(number, sub_axes)) attributes.push_back(std::move(entry));
    attributes.emplace_back("use_global_device_ids", ir::Attribute{ir::Unit{}});
    return writer_.create_one("stablehlo.all_gather", {value}, ir::Type::of({writer_.type(value).dtype(), dims}),
                              std::move(attributes));
  }

  ir::ValueId exchange(ir::ValueId value, int number, size_t from, size_t to, const std::vector<int>& sub_axes) {
    tensor::Dims dims = writer_.type(value).dims();
    const int64_t ways = sharding::part_count(view(number), sub_axes);
    dims[from] *= ways;
    dims[to] /= ways;
    ir::AttributeList attributes{{"concat_dimension", ir::integer_attr(static_cast<int64_t>(from))},
                                 {"split_count", ir::integer_attr(ways)},
                                 {"split_dimension", ir::integer_attr(static_cast<int64_t>(to))}};
    for (auto& entry : groups(number, sub_axes)) attributes.push_back(std::move(entry));
    return writer_.create_one("stablehlo.all_to_all", {value}, ir::Type::of({writer_.type(value).dtype(), dims}),
                              std::move(attributes));
  }

  // The part of `dim` that this device has of `rows` rows, which the sub-axes divide.
  ir::ValueId slice(ir::ValueId value, int number, size_t dim, const std::vector<int>& sub_axes) {
    if (sub_axes.empty()) return value;
    const int64_t size = writer_.type(value).dims()[dim] / sharding::part_count(view(number), sub_axes);
    const ir::ValueId start = writer_.binary("stablehlo.multiply", part(number, sub_axes), writer_.integer(size));
    return writer_.block(value, dim, start, size);
  }

  ir::ValueId slice_down(ir::ValueId value, const ShardedType& to) {
    const int number = to.layout.view;
    value = writer_.pad_to(value, to.even_dims(view(number)));
    for (size_t d = 0; d < to.rank(); ++d) value = slice(value, number, d, to.sub_axes(d));
    return value;
  }

  ir::ValueId gather_up(ir::ValueId value, const ShardedType& from) {
    for (size_t d = 0; d < from.rank(); ++d) {
      value = gather(value, from.layout.view, d, from.sub_axes(d));
      value = writer_.cut(value, d, from.logical_dims[d]);
    }
    return value;
  }

  // The value of the devices whose coordinates along `sub_axes` are 0.
  ir::ValueId of_first(ir::ValueId value, int number, SubAxisSet sub_axes) {
    std::vector<int> list;
    for (size_t a = 0; a < view(number).sub_axis_sizes.size(); ++a) {
      if (sub_axes >> a & 1 && view(number).sub_axis_sizes[a] > 1) list.push_back(static_cast<int>(a));
    }
    if (list.empty()) return value;
    const tensor::Dims dims = writer_.type(value).dims();
    tensor::Dims stacked = dims;
    stacked.insert(stacked.begin(), 1);
    const ir::ValueId all = gather(writer_.reshape(value, stacked), number, 0, list);
    return writer_.reshape(writer_.cut(all, 0, 1), dims);
  }

  void reshard(const LocalOp& op) {
    const ShardedType& from = local_.type(op.operands[0]);
    const ShardedType& to = local_.type(op.results[0]);
    ir::ValueId value = at(op.operands[0]);
    if (from.layout.view != to.layout.view) {
      define(op.results[0], slice_down(gather_up(value, from), to));
      return;
    }
    const int number = from.layout.view;
    const SubAxisSet cuts = from.layout.mask() | to.layout.mask();
    value = of_first(value, number, from.varies & ~to.varies & ~cuts);
    const size_t rank = from.rank();
    std::vector<std::vector<int>> out(rank), in(rank);  // sub-axes that dimensions lose and gain behind what they keep
    std::vector<char> uneven(rank, 0);
    for (size_t d = 0; d < rank; ++d) {
      const auto& a = from.sub_axes(d);
      const auto& b = to.sub_axes(d);
      if (a == b) continue;
      const int64_t size = from.logical_dims[d];
      uneven[d] =
          size % sharding::part_count(view(number), a) != 0 || size % sharding::part_count(view(number), b) != 0;
      const size_t same =
          uneven[d] ? 0 : static_cast<size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
      out[d].assign(a.begin() + static_cast<std::ptrdiff_t>(same), a.end());
      in[d].assign(b.begin() + static_cast<std::ptrdiff_t>(same), b.end());
    }
    SubAxisSet leaving = 0;
    for (const auto& sub_axes : out) leaving |= mask_of(sub_axes);
    for (size_t d = 0; d < rank; ++d) {  // what every device has already
      if (uneven[d] || !out[d].empty() || (mask_of(in[d]) & leaving) != 0) continue;
      value = slice(value, number, d, in[d]);
      in[d].clear();
    }
    for (size_t d = 0; d < rank; ++d) {
      for (size_t e = 0; e < rank; ++e) {
        if (d == e || out[d].empty() || out[d] != in[e] || !out[e].empty() || !in[d].empty() || uneven[d] || uneven[e])
          continue;
        value = exchange(value, number, d, e, out[d]);
        out[d].clear();
        in[e].clear();
      }
    }
    for (size_t d = 0; d < rank; ++d) {
      value = gather(value, number, d, out[d]);
      if (!uneven[d]) continue;
      value = writer_.cut(value, d, from.logical_dims[d]);
      tensor::Dims padded = writer_.type(value).dims();
      padded[d] = to.even_size(view(number), d);
      value = writer_.pad_to(value, padded);
    }
    for (size_t d = 0; d < rank; ++d) value = slice(value, number, d, in[d]);
    define(op.results[0], value);
  }

  void halo(const LocalOp& op) {
    const HaloSurroundings around{
        writer_, local_, [this](int number, const std::vector<int>& sub_axes) { return part(number, sub_axes); },
        [this](ir::ValueId value, int number, size_t dim, const std::vector<int>& sub_axes) {
          return gather(value, number, dim, sub_axes);
        },
        channel_};
    define(op.results[0], write_halo(around, op, all(op.operands)));
  }

  // ---- ops

  [[nodiscard]] ir::ValueId at(LocalId id) const { return values_[static_cast<size_t>(id)]; }
  void define(LocalId id, ir::ValueId value) { values_[static_cast<size_t>(id)] = value; }

  std::vector<ir::ValueId> all(const std::vector<LocalId>& ids) const {
    std::vector<ir::ValueId> out;
    for (const LocalId id : ids) out.push_back(at(id));
    return out;
  }

  std::vector<ir::Type> types(const std::vector<LocalId>& ids) const {
    std::vector<ir::Type> out;
    for (const LocalId id : ids) out.push_back(local_.value(id).local_type());
    return out;
  }

  // A region of the local program's function, with values of ours.
  ir::Region copied(const ir::Region& from, std::map<ir::ValueId, ir::ValueId>& known) {
    const auto fresh = [&](ir::ValueId id) {
      const ir::ValueId made = main_.add_value(local_.function->type_of(id));
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
      for (const ir::Region& inner : op.regions) made.regions.push_back(copied(inner, known));
      for (ir::ValueId& id : made.results) id = fresh(id);
      out.ops.push_back(std::move(made));
    }
    return out;
  }

  std::vector<ir::Region> copied(const std::vector<ir::Region>& from) {
    std::vector<ir::Region> out;
    std::map<ir::ValueId, ir::ValueId> known;
    for (const ir::Region& region : from) out.push_back(copied(region, known));
    return out;
  }

  void write(const LocalBlock& block) {
    for (const LocalOp& op : block.ops) write(op);
  }

  void write(const LocalOp& op) {
    switch (op.kind) {
      case LocalKind::kOp:
        return op.def->free_result_layout && op.operands.empty() ? generate(op) : plain(op);
      case LocalKind::kGroup:
        return plain(op);
      case LocalKind::kConstant:
        return constant(op);
      case LocalKind::kPosition:
        define(op.results[0],
               writer_.create_one("stablehlo.partition_id", {}, local_.value(op.results[0]).local_type()));
        return;
      case LocalKind::kMask:
        return mask(op);
      case LocalKind::kReshard:
        return reshard(op);
      case LocalKind::kHalo:
        return halo(op);
      case LocalKind::kView:
        define(op.results[0], at(op.operands[0]));
        return;
      case LocalKind::kReduceShards:
        return reduce(op);
      case LocalKind::kWhile:
      case LocalKind::kCase:
        return regions(op);
      case LocalKind::kEffect:
        return effect(op);
    }
  }

  void plain(const LocalOp& op) {
    const std::vector<ir::ValueId> results = writer_.create(op.name, all(op.operands), types(op.results),
                                                            without_shardings(op.attributes), copied(op.regions));
    for (size_t i = 0; i < results.size(); ++i) define(op.results[i], results[i]);
  }

  // Shardings that stood on the op speak of axes that are manual now; names of ours are for kernels.
  static ir::AttributeList without_shardings(const ir::AttributeList& attributes) {
    ir::AttributeList out;
    for (const auto& entry : attributes) {
      if (entry.name.starts_with("meshd.")) continue;
      if (entry.name != "sdy.sharding" && entry.name != "sdy.sharding_rule" && entry.name != "mhlo.sharding")
        out.push_back(entry);
    }
    return out;
  }

  // Rows of the whole are numbered from where this device's begin.
  void generate(const LocalOp& op) {
    const LocalValue& value = local_.value(op.results[0]);
    const std::vector<ir::Type> none;
    const ShardedType& type = value.type;
    const std::vector<ir::Type> result{value.local_type()};
    if (op.def->fuse.iota_dim == nullptr)
      ir::fail("unsupported_partition", op.location, "'" + op.name + "' is not written for one device");
    const auto dim = static_cast<size_t>(
        op.def->fuse.iota_dim({none, result, &op.attributes, {}, local_.function.get(), &op.location}));
    if (type.sub_axes(dim).empty()) return plain(op);
    const ir::ValueId rows = rows_of(type, dim);
    define(op.results[0], type.local.dtype == tensor::DType::kInt64
                              ? rows
                              : writer_.create_one("stablehlo.convert", {rows}, value.local_type()));
  }

  // The number in the whole of each row of `dim`, over all elements of a shard.
  ir::ValueId rows_of(const ShardedType& type, size_t dim) {
    const tensor::Dims& dims = type.local.dims;
    const ir::ValueId here = writer_.create_one("stablehlo.iota", {}, ir::Type::of({tensor::DType::kInt64, dims}),
                                                {{"iota_dimension", ir::integer_attr(static_cast<int64_t>(dim))}});
    const ir::ValueId start =
        writer_.binary("stablehlo.multiply", part(type.layout.view, type.sub_axes(dim)), writer_.integer(dims[dim]));
    return writer_.binary("stablehlo.add", here, writer_.broadcast(start, dims));
  }

  void constant(const LocalOp& op) {
    const ShardedType& type = local_.type(op.results[0]);
    const ir::Attribute* found = ir::find(op.attributes, "value");
    ir::DenseAttr dense = *found->as<ir::DenseAttr>();
    if (dense.splat || dense.bytes->empty()) {
      dense.type.dims = type.local.dims;
      define(op.results[0], writer_.constant(std::move(dense)));
      return;
    }
    define(op.results[0], slice_down(writer_.constant(std::move(dense)), type));
  }

  void mask(const LocalOp& op) {
    const ShardedType& type = local_.type(op.results[0]);
    const tensor::Dims& dims = type.local.dims;
    ir::ValueId masked = at(op.operands[0]);
    for (size_t d = 0; d < dims.size(); ++d) {
      if (type.logical_dims[d] % type.parts(view(type.layout.view), d) == 0) continue;
      const ir::ValueId rows = rows_of(type, d);
      const ir::ValueId limit = writer_.broadcast(writer_.integer(type.logical_dims[d]), dims);
      const ir::ValueId is_real =
          writer_.create_one("stablehlo.compare", {rows, limit}, ir::Type::of({tensor::DType::kBool, dims}),
                             {{"comparison_direction", ir::Attribute{ir::EnumAttr{"comparison_direction", "LT"}}}});
      masked = writer_.create_one("stablehlo.select", {is_real, masked, writer_.broadcast(at(op.operands[1]), dims)},
                                  ir::Type::of(type.local));
    }
    define(op.results[0], masked);
  }

  void reduce(const LocalOp& op) {
    const int number = local_.type(op.results[0]).layout.view;
    std::vector<int> sub_axes;
    for (size_t a = 0; a < view(number).sub_axis_sizes.size(); ++a) {
      if (op.reduced >> a & 1) sub_axes.push_back(static_cast<int>(a));
    }
    for (size_t i = 0; i < op.results.size(); ++i) {
      define(op.results[i],
             reduced(op, at(op.operands[i]), local_.value(op.results[i]).local_type(), number, sub_axes));
    }
  }

  ir::ValueId reduced(const LocalOp& op, ir::ValueId value, const ir::Type& type, int number,
                      const std::vector<int>& sub_axes) {
    const tensor::DType dtype = local_.function->type_of(op.regions[0].arguments[0]).dtype();
    const auto as = [&](const char* name, ir::ValueId from, tensor::DType to) {
      return writer_.create_one(name, {from}, ir::Type::of({to, type.dims()}));
    };
    // A reducer of bits takes numbers apart and puts them together again.
    if (tensor::is_complex(type.dtype())) {
      const auto part = type.dtype() == tensor::DType::kComplex64 ? tensor::DType::kFloat32 : tensor::DType::kFloat64;
      if (dtype != type.dtype()) {
        const ir::Type half = ir::Type::of({part, type.dims()});
        const ir::ValueId real = reduced(op, as("stablehlo.real", value, part), half, number, sub_axes);
        const ir::ValueId imag = reduced(op, as("stablehlo.imag", value, part), half, number, sub_axes);
        return writer_.create_one("stablehlo.complex", {real, imag}, type);
      }
    } else if (dtype != type.dtype()) {
      const ir::Type bits = ir::Type::of({dtype, type.dims()});
      const ir::ValueId made = reduced(op, as("stablehlo.bitcast_convert", value, dtype), bits, number, sub_axes);
      return as("stablehlo.bitcast_convert", made, type.dtype());
    }
    ir::AttributeList attributes = groups(number, sub_axes);
    attributes.emplace_back("use_global_device_ids", ir::Attribute{ir::Unit{}});
    return writer_.create_one("stablehlo.all_reduce", {value}, type, std::move(attributes), copied(op.regions));
  }

  void regions(const LocalOp& op) {
    std::vector<ir::Region> regions;
    for (const LocalBlock& block : op.blocks) {
      regions.push_back(writer_.region(types(block.arguments), [&](const std::vector<ir::ValueId>& arguments) {
        for (size_t i = 0; i < arguments.size(); ++i) define(block.arguments[i], arguments[i]);
        write(block);
        writer_.create("stablehlo.return", all(block.results), {});
      }));
    }
    const std::vector<ir::ValueId> results =
        writer_.create(op.name, all(op.operands), types(op.results), {}, std::move(regions));
    for (size_t i = 0; i < results.size(); ++i) define(op.results[i], results[i]);
  }

  // The effect itself; ordered ones take a token of their own, the order of ops is theirs. Callbacks have tokens in
  // front, infeed and outfeed behind.
  std::vector<ir::ValueId> call(const LocalOp& op) {
    std::vector<ir::ValueId> operands = all(op.operands);
    std::vector<ir::Type> results = types(op.results);
    const bool in_front = op.effect.form == EffectForm::kCallback;
    if (op.effect.ordered) {
      operands.insert(in_front ? operands.begin() : operands.end(),
                      writer_.create_one("stablehlo.after_all", {}, ir::Type::token()));
      results.insert(in_front ? results.begin() : results.end(), ir::Type::token());
    }
    ir::AttributeList attributes;
    for (const auto& entry : without_shardings(op.attributes)) {
      // Layouts are written by operand, tokens counted; they say nothing here.
      if (entry.name != "operand_layouts" && entry.name != "result_layouts") attributes.push_back(entry);
    }
    std::vector<ir::ValueId> out = writer_.create(op.name, std::move(operands), results, std::move(attributes));
    if (op.effect.ordered) out.erase(in_front ? out.begin() : out.end() - 1);
    return out;
  }

  void effect(const LocalOp& op) {
    std::vector<ir::ValueId> results;
    if (op.effect.every_device || local_.device_count() == 1) {
      results = call(op);
    } else {
      results = call_once(op);
    }
    for (size_t i = 0; i < results.size(); ++i) define(op.results[i], results[i]);
  }

  // Once for the whole program: on partition 0, which tells the others what it was answered.
  std::vector<ir::ValueId> call_once(const LocalOp& op) {
    const ir::ValueId is_first = writer_.create_one(
        "stablehlo.compare", {position(), writer_.integer(0)}, ir::Type::of({tensor::DType::kBool, {}}),
        {{"comparison_direction", ir::Attribute{ir::EnumAttr{"comparison_direction", "EQ"}}}});
    std::vector<ir::Region> regions;
    regions.push_back(writer_.region({}, [&](const auto&) {
      std::vector<ir::ValueId> answers = call(op);
      writer_.create("stablehlo.return", std::move(answers), {});
    }));
    regions.push_back(writer_.region({}, [&](const auto&) {
      std::vector<ir::ValueId> zeros;
      for (const ir::Type& type : types(op.results)) {
        const ir::ValueId zero = writer_.zero({type.dtype(), {}});
        zeros.push_back(type.rank() == 0 ? zero : writer_.broadcast(zero, type.dims()));
      }
      writer_.create("stablehlo.return", std::move(zeros), {});
    }));
    std::vector<ir::ValueId> results =
        writer_.create("stablehlo.if", {is_first}, types(op.results), {}, std::move(regions));
    // Position 0 of the first view is the flat list's first device unless the mesh says otherwise.
    for (ir::ValueId& result : results) {
      if (view(0).flat(0) != 0)
        ir::fail("unsupported_partition", op.location,
                 "an answered callback over a mesh that does not begin with device 0");
      result = of_first(result, 0, view(0).all());
    }
    return results;
  }

  const LocalProgram& local_;
  ir::Module module_;
  ir::Function main_;
  DeviceWriter writer_;
  std::vector<ir::ValueId> values_;
  mesh::MeshRef mesh_;
  std::string mesh_name_;
  ViewNames names_;
  std::vector<ir::Op> prologue_;
  ir::ValueId position_ = -1;
  std::map<std::pair<int, std::vector<int>>, ir::ValueId> parts_;
  int64_t channel_ = 0;
};

}  // namespace

ir::Module device_module(const LocalProgram& local) { return DeviceModule(local).run(); }

}  // namespace meshd::partition
