#include "service/partition/export/device_module.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "service/ops/op_def.h"
#include "service/partition/export/device_steps.h"
#include "service/partition/export/module_meshes.h"
#include "service/partition/local_walk.h"

namespace meshd::partition {
namespace {

// The halo exchanges of ops that every device runs on replicated values: those ops read what the exchanges read, and
// the exchanges are part of their composites.
class ReplicatedReaders {
 public:
  explicit ReplicatedReaders(const LocalProgram& local) {
    walk(local.body, [&](const LocalOp& op) {
      if (op.kind == LocalKind::kHalo) exchanges_.emplace(op.results[0], &op);
      if (!runs_replicated(local, op)) return;
      for (const LocalId id : op.operands) {
        if (exchanges_.contains(id)) inside_.insert(id);
      }
    });
  }

  /// Whether the exchange with this result is part of its reader's composite.
  [[nodiscard]] bool has_exchange(LocalId result) const { return inside_.contains(result); }
  /// The op, reading what its exchanges read.
  [[nodiscard]] LocalOp with_exchanges(const LocalOp& op) const {
    LocalOp out = op;
    for (LocalId& id : out.operands) {
      if (inside_.contains(id)) id = exchanges_.at(id)->operands[0];
    }
    return out;
  }

 private:
  std::map<LocalId, const LocalOp*> exchanges_;  // by result
  std::set<LocalId> inside_;
};

class DeviceModule {
 public:
  explicit DeviceModule(const LocalProgram& local)
      : local_(local),
        meshes_(local, module_),
        here_(local, channel_),
        values_(local.values.size(), ir::kNoValue),
        replicated_readers_(local) {}

  ir::Module run() {
    module_.name = "device_program";
    ir::Function& main = here_.function();
    main.name = "main";
    main.is_public = true;
    const ir::OpBuilder::InsertionGuard outside(here_.writer(), main.body.ops);
    std::vector<ir::ValueId> operands = arguments();
    ir::Region region;
    {
      std::vector<ir::Op> body;
      {
        const ir::OpBuilder::InsertionGuard inside(here_.writer(), body);
        enter(region);
        write(local_.body);
        std::vector<ir::ValueId> given = leave();
        here_.writer().create("sdy.return", std::move(given), {});
      }
      region.ops = std::move(here_.prologue());
      std::move(body.begin(), body.end(), std::back_inserter(region.ops));
    }
    finish(std::move(operands), std::move(region));
    module_.functions.push_back(std::move(main));
    for (ir::Function& function : decompositions_) module_.functions.push_back(std::move(function));
    return std::move(module_);
  }

 private:
  // ---- around the manual computation

  std::vector<ir::ValueId> arguments() {
    std::vector<ir::ValueId> out;
    for (const LocalParameter& argument : local_.arguments) {
      ir::Parameter parameter;
      parameter.type = ir::Type::of(argument.global_type);
      meshes_.annotate(parameter, argument.sharding);
      if (argument.is_donated) {
        parameter.is_donor = true;
        parameter.attributes.emplace_back("jax.buffer_donor", ir::Attribute{ir::IntegerAttr{1, "i1"}});
      }
      const ir::ValueId id = here_.function().add_value(parameter.type);
      here_.function().body.arguments.push_back(id);
      here_.function().arguments.push_back(std::move(parameter));
      const ShardedType& type = local_.type(argument.value);
      out.push_back(type.layout.view == 0 ? here_.writer().pad_to(id, type.even_dims(local_.view(0))) : id);
    }
    return out;
  }

  void enter(ir::Region& region) {
    for (const LocalParameter& argument : local_.arguments) {
      const ShardedType& type = local_.type(argument.value);
      const bool is_sharded = type.layout.view == 0;
      const ir::ValueId id = here_.function().add_value(ir::Type::of(is_sharded ? type.local : argument.global_type));
      region.arguments.push_back(id);
      define(argument.value, is_sharded ? id : here_.shard_of(id, type));
    }
  }

  std::vector<ir::ValueId> leave() {
    std::vector<ir::ValueId> out;
    for (const LocalParameter& result : local_.results) {
      const ShardedType& type = local_.type(result.value);
      out.push_back(type.layout.view == 0 ? at(result.value) : here_.everywhere_of(at(result.value), type));
    }
    return out;
  }

  void finish(std::vector<ir::ValueId> operands, ir::Region region) {
    ir::ShardingAttr in{{}, true};
    ir::ShardingAttr out{{}, true};
    std::vector<ir::Type> types;
    for (const LocalParameter& argument : local_.arguments)
      in.shardings.push_back(meshes_.edge_sharding(local_.type(argument.value).layout));
    for (const LocalParameter& result : local_.results) {
      const ShardedType& type = local_.type(result.value);
      out.shardings.push_back(meshes_.edge_sharding(type.layout));
      types.push_back(ir::Type::of(type.layout.view == 0
                                       ? tensor::TensorType{type.local.dtype, type.even_dims(local_.view(0))}
                                       : result.global_type));
    }
    ir::ArrayAttr axes;
    for (const mesh::Axis& axis : meshes_.mesh().axes) axes.values.push_back({ir::StringAttr{axis.name}});
    std::vector<ir::Region> regions;
    regions.push_back(std::move(region));
    std::vector<ir::ValueId> results = here_.writer().create(
        "sdy.manual_computation", std::move(operands), types,
        {{"in_shardings", {std::move(in)}}, {"manual_axes", {std::move(axes)}}, {"out_shardings", {std::move(out)}}},
        std::move(regions));
    for (size_t i = 0; i < results.size(); ++i) {
      const LocalParameter& result = local_.results[i];
      for (size_t d = 0; d < result.global_type.dims.size(); ++d)
        results[i] = here_.writer().sliced(results[i], d, result.global_type.dims[d]);
      ir::Parameter parameter;
      parameter.type = ir::Type::of(result.global_type);
      parameter.result_info = result.result_info;
      if (!result.result_info.empty())
        parameter.attributes.emplace_back("jax.result_info", ir::Attribute{ir::StringAttr{result.result_info}});
      meshes_.annotate(parameter, result.sharding);
      here_.function().results.push_back(std::move(parameter));
    }
    here_.writer().create("func.return", std::move(results), {});
  }

  // ---- ops

  [[nodiscard]] ir::ValueId at(LocalId id) const { return values_[static_cast<size_t>(id)]; }
  void define(LocalId id, ir::ValueId value) { values_[static_cast<size_t>(id)] = value; }

  std::vector<ir::ValueId> all(const std::vector<LocalId>& ids) const {
    std::vector<ir::ValueId> out;
    for (const LocalId id : ids) out.push_back(at(id));
    return out;
  }

  // Of the op whose results separate steps compute; -1 of others.
  static LocalId first_result(const LocalOp& op) {
    const int64_t only = ir::int_or(op.attributes, ops::kOnlyResult, -1);
    return only < 0 ? -1 : op.results[0] - static_cast<LocalId>(only);
  }

  void write(const LocalBlock& block) {
    for (size_t i = 0; i < block.ops.size(); ++i) {
      const LocalOp& op = block.ops[i];
      const LocalId first = first_result(op);
      if (first < 0) {
        write(op);
        continue;
      }
      // Results that separate steps compute (kOnlyResult) are one op of the text, with those whose steps were dead.
      LocalOp all = op;
      std::erase_if(all.attributes, [](const auto& entry) { return entry.name == ops::kOnlyResult; });
      all.results.clear();
      for (LocalId id = first; id < first + ir::int_or(op.attributes, ops::kResultsApart, 0); ++id)
        all.results.push_back(id);
      while (i + 1 < block.ops.size() && first_result(block.ops[i + 1]) == first) ++i;
      write(all);
    }
  }

  void write(const LocalOp& op) {
    switch (op.kind) {
      case LocalKind::kPosition:
        define(op.results[0],
               here_.writer().create_one("stablehlo.partition_id", {}, local_.local_types(op.results)[0]));
        return;
      case LocalKind::kView:
        return define(op.results[0], at(op.operands[0]));
      case LocalKind::kWhile:
      case LocalKind::kCase:
        return regions(op);
      case LocalKind::kEffect:
        return effect(op);
      case LocalKind::kHalo:
        if (!replicated_readers_.has_exchange(op.results[0])) step(op);
        return;
      default:
        return step(replicated_readers_.with_exchanges(op));
    }
  }

  // ---- steps and composites

  // A step that is one op is written in place; any other is a composite, and its ops are the decomposition.
  void step(const LocalOp& op) {
    if (is_in_dialect(local_, op)) return define_all(op.results, write_step(here_, op, all(op.operands)));
    const int64_t channel = channel_;
    DeviceFunction body(local_, channel_);
    ir::Function& function = body.function();
    std::vector<ir::ValueId> results;
    {
      const ir::OpBuilder::InsertionGuard inside(body.writer(), function.body.ops);
      for (const ir::Type& type : local_.local_types(op.operands)) {
        function.body.arguments.push_back(function.add_value(type));
        function.arguments.emplace_back().type = type;
      }
      results = write_step(body, op, function.body.arguments);
    }
    const auto constants = std::count_if(function.body.ops.begin(), function.body.ops.end(), [](const ir::Op& made) {
      return ops::role_of(ops::op(made.code).body) == ops::Structural::kConstant;
    });
    if (body.prologue().empty() && static_cast<std::ptrdiff_t>(function.body.ops.size()) - constants <= 1) {
      channel_ = channel;
      return define_all(op.results, write_step(here_, op, all(op.operands)));
    }
    for (const ir::Type& type : local_.local_types(op.results)) function.results.emplace_back().type = type;
    function.body.ops.insert(function.body.ops.begin(), std::make_move_iterator(body.prologue().begin()),
                             std::make_move_iterator(body.prologue().end()));
    {
      const ir::OpBuilder::InsertionGuard inside(body.writer(), function.body.ops);
      body.writer().create("func.return", std::move(results), {});
    }
    const std::string name = op.name.substr(op.name.rfind('.') + 1);
    function.name = meshes_.fresh_symbol(name);
    define_all(op.results,
               here_.writer().create("stablehlo.composite", all(op.operands), local_.local_types(op.results),
                                     {{"decomposition", ir::Attribute{ir::SymbolAttr{function.name}}},
                                      {"name", ir::Attribute{ir::StringAttr{"meshd." + name}}}}));
    decompositions_.push_back(std::move(function));
  }

  void define_all(const std::vector<LocalId>& ids, const std::vector<ir::ValueId>& values) {
    for (size_t i = 0; i < ids.size(); ++i) define(ids[i], values[i]);
  }

  // ---- control flow and effects

  void regions(const LocalOp& op) {
    std::vector<ir::ValueId> operands = all(op.operands);
    if (op.kind == LocalKind::kCase) operands[0] = on_all(operands[0], op.operands[0]);
    const LocalId decides = op.kind == LocalKind::kWhile ? op.blocks[0].results[0] : op.operands[0];
    const bool was_divergent = std::exchange(is_divergent_, is_divergent_ || local_.type(decides).varies != 0);
    std::vector<ir::Region> regions;
    for (size_t b = 0; b < op.blocks.size(); ++b) {
      const LocalBlock& block = op.blocks[b];
      regions.push_back(
          here_.writer().region(local_.local_types(block.arguments), [&](const std::vector<ir::ValueId>& arguments) {
            define_all(block.arguments, arguments);
            write(block);
            std::vector<ir::ValueId> results = all(block.results);
            if (op.kind == LocalKind::kWhile && b == 0) results[0] = on_all(results[0], block.results[0]);
            here_.writer().create("stablehlo.return", std::move(results), {});
          }));
    }
    is_divergent_ = was_divergent;
    const std::vector<ir::ValueId> results =
        here_.writer().create(op.name, std::move(operands), local_.local_types(op.results), {}, std::move(regions));
    define_all(op.results, results);
  }

  // What decides over a loop or a branch, on devices that its view does not reach, too: they do as the others do, so
  // that all meet in collectives. Where the others differ, they leave a loop at once.
  ir::ValueId on_all(ir::ValueId value, LocalId id) {
    const ShardedType& type = local_.type(id);
    const int number = type.layout.view;
    if (here_.is_over_all(number)) return value;
    if (type.varies == 0) return is_divergent_ ? value : here_.of_device(value, local_.view(number).flat(0));
    if (type.local.dtype != tensor::DType::kBool) return value;
    return here_.writer().binary("stablehlo.and", value, here_.is_in(number));
  }

  // The effect itself; ordered ones take a token of their own, the order of ops is theirs. Callbacks have tokens in
  // front, infeed and outfeed behind.
  std::vector<ir::ValueId> call(const LocalOp& op) {
    std::vector<ir::ValueId> operands = all(op.operands);
    std::vector<ir::Type> results = local_.local_types(op.results);
    const bool in_front = op.effect.form == EffectForm::kCallback;
    if (op.effect.ordered) {
      operands.insert(in_front ? operands.begin() : operands.end(),
                      here_.writer().create_one("stablehlo.after_all", {}, ir::Type::token()));
      results.insert(in_front ? results.begin() : results.end(), ir::Type::token());
    }
    ir::AttributeList attributes;
    for (const auto& entry : dialect_attributes(op.attributes)) {
      // Layouts are listed by operand, tokens counted; they have no effect here.
      if (entry.name != "operand_layouts" && entry.name != "result_layouts") attributes.push_back(entry);
    }
    std::vector<ir::ValueId> out = here_.writer().create(op.name, std::move(operands), results, std::move(attributes));
    if (op.effect.ordered) out.erase(in_front ? out.begin() : out.end() - 1);
    return out;
  }

  void effect(const LocalOp& op) {
    std::vector<ir::ValueId> results;
    if (local_.device_count() == 1 || (op.effect.every_device && here_.is_over_all(op.view))) {
      results = call(op);
    } else if (op.effect.every_device) {
      results = call_where(op, here_.is_in(op.view));
    } else {
      results = call_once(op);
    }
    for (size_t i = 0; i < results.size(); ++i) define(op.results[i], results[i]);
  }

  // On the devices where the scalar is true; zeros are the results on others.
  std::vector<ir::ValueId> call_where(const LocalOp& op, ir::ValueId is_here) {
    std::vector<ir::Region> regions;
    regions.push_back(here_.writer().region({}, [&](const auto&) {
      std::vector<ir::ValueId> answers = call(op);
      here_.writer().create("stablehlo.return", std::move(answers), {});
    }));
    regions.push_back(here_.writer().region({}, [&](const auto&) {
      std::vector<ir::ValueId> zeros;
      for (const ir::Type& type : local_.local_types(op.results)) {
        const ir::ValueId zero = here_.writer().zero({type.dtype(), {}});
        zeros.push_back(type.rank() == 0 ? zero : here_.writer().broadcast(zero, type.dims()));
      }
      here_.writer().create("stablehlo.return", std::move(zeros), {});
    }));
    return here_.writer().create("stablehlo.if", {is_here}, local_.local_types(op.results), {}, std::move(regions));
  }

  // Once for the program: on the first device of its view, which broadcasts the reply to the others.
  std::vector<ir::ValueId> call_once(const LocalOp& op) {
    const int64_t device = local_.view(op.view).flat(0);
    const ir::ValueId is_first = here_.writer().compare(here_.position(), "EQ", here_.writer().integer(device));
    std::vector<ir::ValueId> results = call_where(op, is_first);
    for (ir::ValueId& result : results) result = here_.of_first(result, op.view, local_.view(op.view).all());
    return results;
  }

  const LocalProgram& local_;
  int64_t channel_ = 0;
  ir::Module module_;
  ModuleMeshes meshes_;
  DeviceFunction here_;  // @main, and what every device runs inside of it
  std::vector<ir::Function> decompositions_;
  std::vector<ir::ValueId> values_;
  ReplicatedReaders replicated_readers_;
  bool is_divergent_ = false;  // inside of a loop or branch about which devices differ
};

}  // namespace

ir::Module device_module(const LocalProgram& local) { return DeviceModule(local).run(); }

}  // namespace meshd::partition
