#include "service/program/gspmd/import_shardy_strings.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "service/core/error.h"
#include "service/ir/op_builder.h"
#include "service/ir/walk.h"
#include "service/ops/op_def.h"
#include "service/program/limits.h"
#include "service/program/parse/parse.h"

namespace meshd::program {
namespace {

constexpr std::string_view kFrontend = "mhlo.frontend_attributes";
constexpr std::string_view kGspmd = "mhlo.sharding";
constexpr std::string_view kPrefix = "xla.sdy.";
constexpr std::string_view kBody = "xla.sdy.manual_computation_body";

/// The text of xla.sdy.`name` in the frontend attributes; null where there is none.
const std::string* shardy_string(const ir::AttributeList& attributes, std::string_view name) {
  const ir::Attribute* frontend = ir::find(attributes, kFrontend);
  const auto* entries = frontend == nullptr ? nullptr : frontend->as<ir::DictAttr>();
  if (entries == nullptr) return nullptr;
  const ir::Attribute* found = ir::find(entries->entries, std::string(kPrefix).append(name));
  const auto* text = found == nullptr ? nullptr : found->as<ir::StringAttr>();
  return text == nullptr ? nullptr : &text->value;
}

/// The attributes without what is imported.
void drop_strings(ir::AttributeList& attributes) {
  std::erase_if(attributes, [](ir::NamedAttribute& entry) {
    if (entry.name == kGspmd) return true;
    auto* entries = entry.name == kFrontend ? std::get_if<ir::DictAttr>(&entry.value.value) : nullptr;
    if (entries == nullptr) return false;
    std::erase_if(entries->entries, [](const auto& inner) { return inner.name.starts_with(kPrefix); });
    return entries->entries.empty();
  });
}

bool is_of(const ir::Op& op, ops::Structural role) { return ops::role_of(ops::op(op.code).body) == role; }

/// The target of a custom call behind "xla.sdy."; empty for other ops. "Sharding" is @Sharding with a Shardy string.
std::string shardy_target(const ir::Op& op) {
  if (!is_of(op, ops::Structural::kCustomCall)) return {};
  const std::string target = ir::string_or(op.attributes, "call_target_name", {});
  if (target.starts_with(kPrefix)) return target.substr(kPrefix.size());
  return target == "Sharding" && shardy_string(op.attributes, "sharding") != nullptr ? target : std::string();
}

class Importer {
 public:
  explicit Importer(ir::Module& module) : module_(module) {}

  void import_module() {
    const std::string* meshes = shardy_string(module_.attributes, "meshes");
    for (const ir::NamedMesh& mesh : meshes == nullptr ? std::vector<ir::NamedMesh>() : parse_meshes(*meshes)) {
      if (module_.find_mesh(mesh.name) != nullptr)
        throw core::Error("invalid_program", "mesh @" + mesh.name + " is defined twice");
      module_.meshes.push_back(mesh);
    }
    drop_strings(module_.attributes);
    // Bodies of manual computations are taken by their calls.
    std::vector<ir::Function> functions = std::move(module_.functions);
    for (ir::Function& function : functions) {
      if (!function.name.starts_with(kBody)) continue;
      std::string name = function.name;
      bodies_.emplace(std::move(name), std::exchange(function, {}));
    }
    std::erase_if(functions, [](const ir::Function& function) { return function.name.empty(); });
    for (ir::Function& function : functions) import_function(function);
    module_.functions = std::move(functions);
  }

 private:
  ir::Attribute attribute_of(const std::string& text, const ir::Location& where) {
    try {
      return parse_attribute(text, module_.meshes);
    } catch (const core::Error& error) {
      ir::fail(error.code(), where, "in a string of Shardy's: " + error.detail());
    }
  }

  ir::Attribute required(const ir::Op& op, std::string_view name) {
    const std::string* text = shardy_string(op.attributes, name);
    if (text == nullptr)
      ir::fail("invalid_program", op.location, "the call needs " + std::string(kPrefix) + std::string(name));
    return attribute_of(*text, op.location);
  }

  void import_parameter(ir::Parameter& parameter) {
    const std::string* text = shardy_string(parameter.attributes, "sharding");
    if (text != nullptr) set_sharding(parameter, attribute_of(*text, parameter.location));
    drop_strings(parameter.attributes);
  }

  static void set_sharding(ir::Parameter& parameter, const ir::Attribute& attribute) {
    const auto* sharding = attribute.as<ir::ShardingAttr>();
    if (sharding == nullptr || sharding->shardings.size() != 1)
      ir::fail("invalid_program", parameter.location, "an argument or result has one sharding");
    parameter.sharding = sharding->shardings[0];
    ir::set(parameter.attributes, "sdy.sharding", {ir::ShardingAttr{sharding->shardings, false}});
  }

  void import_function(ir::Function& function) {
    function_ = &function;
    use_.clear();
    for (ir::Parameter& argument : function.arguments) import_parameter(argument);
    for (ir::Parameter& result : function.results) import_parameter(result);
    drop_strings(function.attributes);
    if (!function.body.ops.empty()) {
      for (size_t i = 0; i < function.body.ops.back().operands.size() && i < function.results.size(); ++i)
        returned_[function.body.ops.back().operands[i]].push_back(i);
    }
    import_region(function.body, 0);
    returned_.clear();
  }

  ir::ValueId used(ir::ValueId id) const {
    const auto found = use_.find(id);
    return found == use_.end() ? id : found->second;
  }

  void import_region(ir::Region& region, int depth) {
    if (depth > kMaxRegionDepth) throw core::Error("invalid_program", "regions nest too deeply");
    std::vector<ir::Op> old = std::exchange(region.ops, {});
    std::unordered_map<ir::ValueId, ir::Op> entries;       // GlobalToLocalShape by its first result
    std::unordered_map<ir::ValueId, size_t> computations;  // by the first result of the call
    region.ops.reserve(old.size());
    for (ir::Op& op : old) {
      for (ir::ValueId& operand : op.operands) operand = used(operand);
      const std::string target = shardy_target(op);
      if (target == "GlobalToLocalShape") {
        if (op.results.empty()) ir::fail("invalid_program", op.location, "GlobalToLocalShape gives nothing");
        entries.emplace(op.results[0], std::move(op));
      } else if (target == "LocalToGlobalShape") {
        finish_computation(op, computations, region.ops);
      } else if (!target.empty()) {
        import_call(op, target, region.ops);
      } else if (is_of(op, ops::Structural::kCall) && ir::string_or(op.attributes, "callee", {}).starts_with(kBody)) {
        if (!op.results.empty()) computations.emplace(op.results[0], region.ops.size());
        region.ops.push_back(computation(op, entries));
        import_region(region.ops.back().regions[0], depth + 1);
      } else {
        import_op(op);
        for (ir::Region& inner : op.regions) import_region(inner, depth + 1);
        region.ops.push_back(std::move(op));
      }
    }
    if (!entries.empty() || !computations.empty()) {
      const ir::Location where =
          entries.empty() ? region.ops[computations.begin()->second].location : entries.begin()->second.location;
      ir::fail("invalid_program", where, "a manual computation does not go back to global shapes");
    }
  }

  void import_op(ir::Op& op) {
    for (const auto& [text, name] :
         {std::pair("sharding", "sdy.sharding"), std::pair("sharding_rule", "sdy.sharding_rule")}) {
      if (const std::string* found = shardy_string(op.attributes, text); found != nullptr)
        ir::set(op.attributes, name, attribute_of(*found, op.location));
    }
    drop_strings(op.attributes);
  }

  /// A custom call that stands for an op of Shardy with one operand.
  void import_call(ir::Op& op, const std::string& target, std::vector<ir::Op>& out) {
    ir::OpBuilder builder(*function_, ops::code_of, out, op.location);
    const bool is_group = target == "ShardingGroup";
    if (op.operands.size() != 1 || op.results.size() != (is_group ? 0U : 1U))
      ir::fail("invalid_program", op.location, "a call of @xla.sdy." + target + " has one operand");
    if (is_group) {
      builder.define({}, "sdy.sharding_group", op.operands, {{"group_id", required(op, "sharding_group_id")}});
    } else if (target == "PropagationBarrier") {
      ir::AttributeList attributes = {{"allowed_direction", direction(required(op, "allowed_direction"), op.location)}};
      if (const std::string* own = shardy_string(op.attributes, "sharding"); own != nullptr)
        ir::set(attributes, "sdy.sharding", attribute_of(*own, op.location));
      builder.define(op.results, "sdy.propagation_barrier", op.operands, std::move(attributes));
    } else if (target == "FuncResultSharding") {
      const ir::Attribute sharding = required(op, "sharding");
      const auto places = returned_.find(op.results[0]);
      if (places != returned_.end()) {
        for (const size_t place : places->second) set_sharding(function_->results[place], sharding);
      }
      use_[op.results[0]] = op.operands[0];
    } else if (target == "Sharding") {
      const ir::Attribute attribute = required(op, "sharding");
      const auto* sharding = attribute.as<ir::ShardingAttr>();
      if (sharding == nullptr || sharding->shardings.size() != 1)
        ir::fail("invalid_program", op.location, "a constraint has one sharding");
      builder.define(op.results, "sdy.sharding_constraint", op.operands,
                     {{"sharding", {ir::ShardingAttr{sharding->shardings, false}}}});
    } else {
      ir::fail("unsupported_op", op.location, "custom call @xla.sdy." + target + " is not supported");
    }
  }

  static ir::Attribute direction(const ir::Attribute& number, const ir::Location& where) {
    constexpr std::string_view kDirections[] = {"NONE", "FORWARD", "BACKWARD", "BOTH"};
    const auto* value = number.as<ir::IntegerAttr>();
    if (value == nullptr || value->value < 0 || value->value >= static_cast<int64_t>(std::size(kDirections)))
      ir::fail("invalid_program", where, "a barrier's direction is a number from 0 to 3");
    return {ir::EnumAttr{"sdy.propagation_direction", std::string(kDirections[static_cast<size_t>(value->value)])}};
  }

  /// The manual computation of a call of its body, without results yet.
  ir::Op computation(const ir::Op& call, std::unordered_map<ir::ValueId, ir::Op>& entries) {
    const auto body = bodies_.find(ir::string_or(call.attributes, "callee", {}));
    if (body == bodies_.end())
      ir::fail("invalid_program", call.location, "the body of a manual computation is missing, or called twice");
    ir::Op out;
    out.location = call.location;
    ir::Attribute in_shardings{ir::ShardingAttr{{}, true}};
    ir::Attribute manual_axes{ir::ArrayAttr{}};
    if (!call.operands.empty()) {
      const auto entry = entries.find(call.operands[0]);
      if (entry == entries.end() || entry->second.results != call.operands)
        ir::fail("invalid_program", call.location, "a manual computation takes what one GlobalToLocalShape gives");
      in_shardings = required(entry->second, "in_shardings");
      manual_axes = required(entry->second, "manual_axes");
      out.operands = entry->second.operands;
      entries.erase(entry);
    }
    out.attributes = {{"in_shardings", std::move(in_shardings)},
                      {"out_shardings", {ir::ShardingAttr{{}, true}}},
                      {"manual_axes", std::move(manual_axes)}};
    out.regions.push_back(body_of(std::move(body->second), call));
    bodies_.erase(body);
    std::vector<ir::Op> ops;
    ir::OpBuilder builder(*function_, ops::code_of, ops, call.location);
    return std::move(builder.define({}, "sdy.manual_computation", std::move(out.operands), std::move(out.attributes),
                                    std::move(out.regions)));
  }

  /// The function's region with values of the function around the call.
  ir::Region body_of(ir::Function body, const ir::Op& call) {
    if (body.body.ops.empty() || body.arguments.size() != call.operands.size() ||
        body.results.size() != call.results.size())
      ir::fail("invalid_program", call.location, "the body of a manual computation has other arguments or results");
    std::unordered_map<ir::ValueId, ir::ValueId> names;
    for (size_t i = 0; i < body.values.size(); ++i)
      names[static_cast<ir::ValueId>(i)] = function_->add_value(body.values[i].type, body.values[i].name);
    for (ir::ValueId& argument : body.body.arguments) argument = names.at(argument);
    for (ir::Op& op : body.body.ops) ir::rename_values(op, names);
    const std::vector<ir::ValueId> returned = body.body.ops.back().operands;
    const ir::Location where = body.body.ops.back().location;
    body.body.ops.pop_back();
    ir::OpBuilder(*function_, ops::code_of, body.body.ops, where).define({}, "sdy.return", returned);
    return std::move(body.body);
  }

  void finish_computation(const ir::Op& op, std::unordered_map<ir::ValueId, size_t>& computations,
                          std::vector<ir::Op>& ops) {
    const auto found = op.operands.empty() ? computations.end() : computations.find(op.operands[0]);
    if (found == computations.end() || op.operands.size() != op.results.size())
      ir::fail("invalid_program", op.location, "LocalToGlobalShape takes what a manual computation gives");
    ir::Op& computation = ops[found->second];
    computation.results = op.results;
    ir::set(computation.attributes, "out_shardings", required(op, "out_shardings"));
    const ir::Attribute* axes = ir::find(computation.attributes, "manual_axes");
    if (computation.operands.empty() && axes->as<ir::ArrayAttr>()->values.empty())
      ir::set(computation.attributes, "manual_axes", required(op, "manual_axes"));
    computations.erase(found);
  }

  ir::Module& module_;
  ir::Function* function_ = nullptr;
  std::map<std::string, ir::Function, std::less<>> bodies_;
  std::unordered_map<ir::ValueId, ir::ValueId> use_;
  std::unordered_map<ir::ValueId, std::vector<size_t>> returned_;  ///< places of a value among the function's results
};

}  // namespace

bool has_shardy_strings(const ir::Module& module) {
  if (shardy_string(module.attributes, "meshes") != nullptr) return true;
  return std::any_of(module.functions.begin(), module.functions.end(), [](const ir::Function& function) {
    return ir::any_op(function.body,
                      [](const ir::Op& op) { return shardy_string(op.attributes, "sharding_rule") != nullptr; });
  });
}

void import_shardy_strings(ir::Module& module) { Importer(module).import_module(); }

}  // namespace meshd::program
