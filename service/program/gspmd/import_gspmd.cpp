#include "service/program/gspmd/import_gspmd.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <unordered_map>

#include "service/core/error.h"
#include "service/ir/op_builder.h"
#include "service/ir/walk.h"
#include "service/ops/op_def.h"
#include "service/program/gspmd/gspmd_sharding.h"
#include "service/program/gspmd/manual_regions.h"
#include "service/program/limits.h"
#include "service/program/verify/verify.h"

namespace meshd::program {
namespace {

constexpr std::string_view kString = "mhlo.sharding";

using ops::CustomCallKind;

/// The shardings of the string in `attributes`; none when there is no string.
std::vector<GspmdSharding> strings_of(const ir::AttributeList& attributes, const ir::Location& where) {
  const ir::Attribute* attribute = ir::find(attributes, kString);
  if (attribute == nullptr) return {};
  const auto* text = attribute->as<ir::StringAttr>();
  if (text == nullptr) ir::fail("invalid_program", where, "attribute 'mhlo.sharding' must be a string");
  try {
    return parse_gspmd(text->value);
  } catch (const core::Error& error) {
    ir::fail(error.code() == core::ErrorCode("invalid_spec") ? core::ErrorCode("invalid_program") : error.code(), where,
             error.detail());
  }
}

/// Dimensions that "unspecified_dims=[0,1]" in backend_config names.
std::vector<int64_t> unspecified_dims(const ir::Op& op) {
  const std::string text = ir::string_or(op.attributes, "backend_config", {});
  constexpr std::string_view kPrefix = "unspecified_dims=[";
  std::vector<int64_t> out;
  if (text.rfind(kPrefix, 0) != 0) return out;
  int64_t value = -1;
  for (const char c : text.substr(kPrefix.size())) {
    if (c >= '0' && c <= '9') {
      value = std::min<int64_t>((value < 0 ? 0 : value) * 10 + (c - '0'), INT32_MAX);
    } else {
      if (value >= 0) out.push_back(value);
      value = -1;
    }
  }
  return out;
}

/// Rewrites one function in place.
class FunctionImporter {
 public:
  FunctionImporter(ir::Function& function, const std::vector<ir::NamedMesh>& meshes, ir::Module& module)
      : function_(function),
        builder_(function, ops::code_of),
        meshes_(meshes),
        module_(module),
        use_(function.values.size()) {
    std::iota(use_.begin(), use_.end(), 0);
  }

  void run() {
    std::vector<ir::Op> groups;
    for (size_t i = 0; i < function_.arguments.size(); ++i) {
      const auto group = parameter(function_.arguments[i]);
      const ir::OpBuilder::InsertionGuard in_groups(builder_, groups);
      if (group && i < function_.body.arguments.size())
        add_to_group(*group, function_.body.arguments[i], function_.arguments[i].location);
    }
    std::vector<std::pair<size_t, int64_t>> of_results;
    for (size_t i = 0; i < function_.results.size(); ++i) {
      if (const auto group = parameter(function_.results[i])) of_results.emplace_back(i, *group);
    }
    region(function_.body);
    std::vector<ir::Op>& ops = function_.body.ops;
    ops.insert(ops.begin(), std::make_move_iterator(groups.begin()), std::make_move_iterator(groups.end()));
    if (ops.empty()) return;
    std::vector<ir::Op> members;
    for (const auto& [result, group] : of_results) {
      const ir::OpBuilder::InsertionGuard in_members(builder_, members);
      if (result < ops.back().operands.size())
        add_to_group(group, ops.back().operands[result], function_.results[result].location);
    }
    ops.insert(ops.end() - 1, std::make_move_iterator(members.begin()), std::make_move_iterator(members.end()));
  }

 private:
  /// Reads the parameter's string; returns the sharding group that it is a member of.
  std::optional<int64_t> parameter(ir::Parameter& parameter) {
    const std::vector<GspmdSharding> strings = strings_of(parameter.attributes, parameter.location);
    if (parameter.type.kind == ir::TypeKind::kTuple) {  // of a function that is not @main: its call is inlined
      erase_string(parameter.attributes);
      return std::nullopt;
    }
    if (strings.size() > 1) {
      ir::fail("invalid_program", parameter.location,
               fmt::format("'mhlo.sharding' of one value has {} shardings, expected 1", strings.size()));
    }
    if (parameter.sharding) return std::nullopt;
    erase_string(parameter.attributes);
    if (strings.empty()) return std::nullopt;
    if (strings[0].kind == GspmdKind::kUnknown || strings[0].kind == GspmdKind::kManual) return strings[0].group;
    parameter.sharding = sharding_of(strings[0], parameter.type, {}, parameter.location);
    parameter.attributes.emplace_back("sdy.sharding", ir::Attribute{ir::ShardingAttr{{*parameter.sharding}, false}});
    return strings[0].group;
  }

  void add_to_group(int64_t id, ir::ValueId value, const ir::Location& where) {
    builder_.set_location(where);
    builder_.define({}, "sdy.sharding_group", {value}, {{"group_id", ir::integer_attr(id)}});
  }

  static void erase_string(ir::AttributeList& attributes) {
    std::erase_if(attributes, [](const ir::NamedAttribute& entry) { return entry.name == kString; });
  }

  sharding::TensorSharding sharding_of(const GspmdSharding& string, const ir::Type& type,
                                       std::span<const int64_t> open_dims, const ir::Location& where,
                                       const ir::NamedMesh* mesh = nullptr) {
    if (string.kind == GspmdKind::kMaximal) return maximal(string.device, where);
    if (mesh == nullptr) mesh = &mesh_of({&string, 1});
    try {
      return to_sdy_sharding(string, mesh->name, mesh->mesh, type.is_tensor() ? type.rank() : 0, open_dims);
    } catch (const core::Error& error) {
      ir::fail(error.code() == core::ErrorCode("invalid_spec") ? core::ErrorCode("invalid_program") : error.code(),
               where, error.detail());
    }
  }

  /// The first mesh that fits all these shardings; the first of all where there is none.
  const ir::NamedMesh& mesh_of(std::span<const GspmdSharding> strings) const {
    for (const ir::NamedMesh& mesh : meshes_) {
      if (std::all_of(strings.begin(), strings.end(), [&](const auto& string) { return fits(string, *mesh.mesh); }))
        return mesh;
    }
    return meshes_[0];
  }

  sharding::TensorSharding maximal(int64_t device, const ir::Location& where) {
    const std::string name = fmt::format("maximal_mesh_{}", device);
    if (module_.find_mesh(name) == nullptr) {
      if (module_.meshes.size() >= kMaxMeshes) ir::fail("invalid_program", where, "there are too many meshes");
      mesh::Mesh mesh;
      mesh.device_ids = {device};
      module_.meshes.push_back({name, std::make_shared<const mesh::Mesh>(std::move(mesh)), where});
    }
    sharding::TensorSharding out;
    out.mesh_name = name;
    out.mesh = module_.find_mesh(name)->mesh;
    return out;
  }

  /// A value that enters a manual computation.
  struct Entry {
    ir::ValueId global = ir::kNoValue;
    GspmdSharding sharding;
  };

  /// Maps operands of all ops of the region, and rewrites them. A manual computation is where its last entry was.
  void region(ir::Region& region) {
    const std::vector<ManualRegion> manual = find_manual_regions(region);
    std::vector<ir::Op> old = std::exchange(region.ops, {});
    std::vector<bool> taken(old.size());
    std::unordered_map<size_t, const ManualRegion*> ends;  // by last entry
    for (const ManualRegion& each : manual) {
      for (const size_t i : each.body) taken[i] = true;
      for (const size_t i : each.exits) taken[i] = true;
      if (!each.body.empty() || !each.exits.empty()) ends.emplace(each.entries.back(), &each);
    }
    region.ops.reserve(old.size());
    const ir::OpBuilder::InsertionGuard here(builder_, region.ops);
    for (size_t i = 0; i < old.size(); ++i) {
      if (taken[i]) continue;
      if (target_kind(old[i]) == CustomCallKind::kFullToShard) {
        enter(old[i]);
      } else {
        mapped(std::move(old[i]));
      }
      if (const auto end = ends.find(i); end != ends.end()) manual_computation(*end->second, old);
    }
  }

  void mapped(ir::Op op) {
    for (ir::ValueId& id : op.operands) id = use_[static_cast<size_t>(id)];
    for (ir::Region& nested : op.regions) region(nested);
    rewrite(op);
  }

  void rewrite(ir::Op& op) {
    if (target_kind(op) == CustomCallKind::kShardingMarker && op.operands.size() == 1 && op.results.size() == 1) {
      annotation(op);
      return;
    }
    const std::vector<GspmdSharding> strings = strings_of(op.attributes, op.location);
    std::vector<ir::Op> groups;
    if (!strings.empty()) {
      const ir::OpBuilder::InsertionGuard in_groups(builder_, groups);
      result_shardings(op, strings);
    }
    builder_.insert(std::move(op));
    for (ir::Op& group : groups) builder_.insert(std::move(group));
  }

  /// An operand of a manual computation has the sharding that it was annotated with before.
  void enter(const ir::Op& op) {
    const auto annotated = annotated_.find(op.operands[0]);
    if (annotated == annotated_.end()) unsupported_manual(op, "what enters it has a sharding, by @Sharding");
    entered_.emplace(op.results[0], Entry{use_[static_cast<size_t>(op.operands[0])], annotated->second});
  }

  void annotation(const ir::Op& op) {
    const std::vector<GspmdSharding> strings = strings_of(op.attributes, op.location);
    if (strings.size() != 1) ir::fail("invalid_program", op.location, "'@Sharding' needs one sharding");
    const GspmdSharding& string = strings[0];
    const ir::ValueId operand = op.operands[0];
    const ir::ValueId result = op.results[0];
    annotated_[result] = string;
    if (string.group) add_to_group(*string.group, operand, op.location);
    if (string.kind == GspmdKind::kUnknown || string.kind == GspmdKind::kManual) {
      use_[static_cast<size_t>(result)] = operand;
      return;
    }
    sharding::TensorSharding sharding =
        sharding_of(string, function_.type_of(operand), unspecified_dims(op), op.location);
    const bool says_nothing =
        !sharding.mesh->is_maximal() && std::all_of(sharding.dims.begin(), sharding.dims.end(),
                                                    [](const auto& dim) { return dim.axes.empty() && dim.open; });
    if (says_nothing) {
      use_[static_cast<size_t>(result)] = operand;
      return;
    }
    builder_.set_location(op.location);
    builder_.define({result}, "sdy.sharding_constraint", {operand},
                    {{"sharding", {ir::ShardingAttr{{std::move(sharding)}, false}}}});
  }

  /// Gives the op's results their shardings, and adds them to their groups.
  void result_shardings(ir::Op& op, const std::vector<GspmdSharding>& strings) {
    ir::ShardingAttr shardings;
    shardings.per_value = true;
    const size_t count = std::max<size_t>(op.results.size(), 1);
    size_t silent = 0;  // empty shardings
    if (std::any_of(op.results.begin(), op.results.end(),
                    [&](ir::ValueId id) { return function_.type_of(id).kind == ir::TypeKind::kTuple; })) {
      erase_string(op.attributes);  // tuples are flattened later
      return;
    }
    if (strings.size() != 1 && strings.size() != count) {
      ir::fail("invalid_program", op.location,
               fmt::format("'mhlo.sharding' of '{}' has {} shardings for {} results", op.name, strings.size(),
                           op.results.size()));
    }
    erase_string(op.attributes);
    for (size_t i = 0; i < count; ++i) {
      const GspmdSharding& string = strings.size() == 1 ? strings[0] : strings[i];
      if (string.group && !op.results.empty()) add_to_group(*string.group, op.results[i], op.location);
      const ir::Type type = op.results.empty() ? ir::Type::token() : function_.type_of(op.results[i]);
      const bool says_nothing = string.kind == GspmdKind::kManual || string.kind == GspmdKind::kUnknown;
      silent += says_nothing ? 1 : 0;
      shardings.shardings.push_back(says_nothing ? open(type) : sharding_of(string, type, {}, op.location));
    }
    if (silent < count) op.attributes.emplace_back("sdy.sharding", ir::Attribute{std::move(shardings)});
  }

  sharding::TensorSharding open(const ir::Type& type) const {
    return sharding::fully_open(meshes_[0].name, meshes_[0].mesh, type.is_tensor() ? type.rank() : 0);
  }

  /// The sharding with which a value enters or leaves: free axes closed, as annotated.
  sharding::TensorSharding border(const GspmdSharding& string, const ir::Type& type, const ir::Op& op,
                                  const ir::NamedMesh& mesh) {
    if (string.kind == GspmdKind::kManual || string.kind == GspmdKind::kMaximal || !fits(string, *mesh.mesh))
      unsupported_manual(op, "what enters and leaves it is sharded over one mesh");
    return sharding_of(string, type, unspecified_dims(op), op.location, &mesh);
  }

  /// The mesh of all shardings at the edges, and its axes that are manual, in mesh order.
  std::pair<const ir::NamedMesh*, ir::ArrayAttr> mesh_and_axes(const ManualRegion& region,
                                                               const std::vector<ir::Op>& ops) const {
    std::vector<GspmdSharding> strings;
    for (const size_t i : region.entries) strings.push_back(entered_.at(ops[i].results[0]).sharding);
    for (const auto* edges : {&region.entries, &region.exits}) {
      for (const size_t i : *edges) {
        for (GspmdSharding& string : strings_of(ops[i].attributes, ops[i].location))
          strings.push_back(std::move(string));
      }
    }
    const ir::NamedMesh& mesh = mesh_of(strings);
    std::set<std::string> axes;
    for (const size_t i : region.entries) {
      for (const GspmdSharding& string : strings_of(ops[i].attributes, ops[i].location)) {
        if (!fits(string, *mesh.mesh)) unsupported_manual(ops[i], "it is over one mesh");
        for (std::string& axis : gspmd_manual_axes(string, *mesh.mesh)) axes.insert(std::move(axis));
      }
    }
    ir::ArrayAttr names;
    for (const mesh::Axis& axis : mesh.mesh->axes) {
      if (axes.count(axis.name) != 0) names.values.push_back({ir::StringAttr{axis.name}});
    }
    return {&mesh, std::move(names)};
  }

  void manual_computation(const ManualRegion& region, std::vector<ir::Op>& ops) {
    auto [mesh, names] = mesh_and_axes(region, ops);
    ir::Region body;
    std::vector<ir::ValueId> operands, results;
    ir::ShardingAttr in, out;
    in.per_value = out.per_value = true;
    for (const size_t i : region.entries) {
      const ir::ValueId shard = ops[i].results[0];
      const auto& [global, annotated] = entered_.at(shard);
      in.shardings.push_back(border(annotated, function_.type_of(global), ops[i], *mesh));
      operands.push_back(global);
      body.arguments.push_back(fresh(function_.type_of(shard)));
      use_[static_cast<size_t>(shard)] = body.arguments.back();
    }
    // Not the location of an entry: the entries of one computation may come from many lines.
    builder_.set_location(ops[region.body.empty() ? region.entries.back() : region.body.front()].location);
    const ir::Location location = builder_.location();
    std::vector<ir::ValueId> returned = manual_body(region, ops, body);
    for (const size_t i : region.exits) {
      const ir::ValueId full = ops[i].results[0];
      const std::vector<GspmdSharding> strings = strings_of(ops[i].attributes, ops[i].location);
      if (strings.size() != 1) unsupported_manual(ops[i], "what leaves it has one sharding");
      out.shardings.push_back(border(strings[0], function_.type_of(full), ops[i], *mesh));
      results.push_back(fresh(function_.type_of(full)));
      use_[static_cast<size_t>(full)] = results.back();
    }
    builder_.set_location(location);
    {
      const ir::OpBuilder::InsertionGuard inside(builder_, body.ops);
      builder_.define({}, "sdy.return", std::move(returned));
    }
    ir::AttributeList attributes{
        {"in_shardings", {std::move(in)}}, {"out_shardings", {std::move(out)}}, {"manual_axes", {std::move(names)}}};
    builder_.define(std::move(results), "sdy.manual_computation", std::move(operands), std::move(attributes),
                    {std::move(body)});
  }

  /// Moves the body's ops into `body`; returns what the exits give back.
  std::vector<ir::ValueId> manual_body(const ManualRegion& region, std::vector<ir::Op>& ops, ir::Region& body) {
    const ir::OpBuilder::InsertionGuard inside(builder_, body.ops);
    std::vector<std::pair<ir::ValueId, ir::ValueId>> outside;  // a copied value, and what it is around the body
    for (ir::Op copy : region.copied) {
      erase_string(copy.attributes);
      for (ir::ValueId& id : copy.operands) id = use_[static_cast<size_t>(id)];
      for (ir::ValueId& id : copy.results) {
        const ir::ValueId inner = fresh(function_.type_of(id));
        outside.emplace_back(id, std::exchange(use_[static_cast<size_t>(id)], inner));
        id = inner;
      }
      builder_.insert(std::move(copy));
    }
    for (const size_t i : region.body) mapped(std::move(ops[i]));
    for (const auto& [id, value] : outside) use_[static_cast<size_t>(id)] = value;
    std::vector<ir::ValueId> returned;
    for (const size_t i : region.exits) returned.push_back(use_[static_cast<size_t>(ops[i].operands[0])]);
    return returned;
  }

  ir::ValueId fresh(const ir::Type& type) {
    const ir::ValueId id = function_.add_value(type);
    use_.push_back(id);
    return id;
  }

  ir::Function& function_;
  ir::OpBuilder builder_;
  const std::vector<ir::NamedMesh>& meshes_;  ///< those made for the strings, at least one
  ir::Module& module_;
  std::vector<ir::ValueId> use_;                              ///< what replaces each value of the text
  std::unordered_map<ir::ValueId, GspmdSharding> annotated_;  ///< results of @Sharding
  std::unordered_map<ir::ValueId, Entry> entered_;            ///< by local value
};

}  // namespace

bool uses_gspmd(const ir::Module& module) {
  const auto has = [](const ir::AttributeList& attributes) { return ir::find(attributes, kString) != nullptr; };
  for (const ir::Function& function : module.functions) {
    for (const auto* side : {&function.arguments, &function.results}) {
      for (const ir::Parameter& parameter : *side) {
        if (has(parameter.attributes)) return true;
      }
    }
    if (ir::any_op(function.body, [&](const ir::Op& op) { return has(op.attributes); })) return true;
  }
  return false;
}

ir::Module import_gspmd(ir::Module module) {
  std::vector<GspmdSharding> all;
  ir::Location first;
  const auto add = [&](const ir::AttributeList& attributes, const ir::Location& where) {
    for (GspmdSharding& string : strings_of(attributes, where)) {
      if (string.kind != GspmdKind::kTiled) continue;
      if (all.empty()) first = where;
      all.push_back(std::move(string));
    }
  };
  for (const ir::Function& function : module.functions) {
    for (const auto* side : {&function.arguments, &function.results}) {
      for (const ir::Parameter& parameter : *side) add(parameter.attributes, parameter.location);
    }
    ir::walk(function.body, [&](const ir::Op& op) { add(op.attributes, op.location); });
  }
  std::vector<ir::NamedMesh> meshes;
  try {
    const int64_t count = all.empty() ? std::max<int64_t>(module.num_partitions, 1) : all[0].device_count();
    for (mesh::Mesh& mesh : gspmd_meshes(all, count)) {
      std::string name = "mesh";
      for (int i = 0; module.find_mesh(name) != nullptr; ++i) name = fmt::format("mesh_{}", i);
      meshes.push_back({name, std::make_shared<const mesh::Mesh>(std::move(mesh)), {}});
      module.meshes.push_back(meshes.back());
    }
  } catch (const core::Error& error) {
    ir::fail(error.code(), first, error.detail());
  }
  for (ir::Function& function : module.functions) {
    FunctionImporter(function, meshes, module).run();
    // A local value that is used outside of the manual computation.
    if (const ir::Op* op = first_undefined_use(function))
      unsupported_manual(*op,
                         "its shards leave through @SPMDShardToFullShape, and nothing that enters follows from them");
  }
  return module;
}

}  // namespace meshd::program
