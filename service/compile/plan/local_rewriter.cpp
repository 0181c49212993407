#include "service/compile/plan/local_rewriter.h"

#include <algorithm>
#include <variant>

namespace meshd::compile {

using partition::LocalBlock;

std::optional<LocalOp> splat_of(const LocalOp& constant, const tensor::Dims& dims) {
  const auto* const dense = ir::find(constant.attributes, "value")->as<ir::DenseAttr>();
  if (dense == nullptr || !dense->splat) return std::nullopt;
  ir::DenseAttr other = *dense;
  other.type.dims = dims;
  LocalOp made = constant;
  ir::set(made.attributes, "value", ir::Attribute{std::move(other)});
  return made;
}

bool is_pointwise(const partition::LocalProgram& program, const LocalOp& op) {
  if (op.kind != partition::LocalKind::kOp || op.def == nullptr || op.def->is_random || op.results.size() != 1)
    return false;
  const LocalView local(program, op);
  return std::holds_alternative<ops::ScalarMath>(ops::body_of(*op.def, local.view));
}

bool is_pointwise_region(const partition::LocalProgram& program, const ir::Region& region) {
  std::set<ir::ValueId> known(region.arguments.begin(), region.arguments.end());
  for (const ir::Op& op : region.ops) {
    const auto is_known = [&](ir::ValueId id) { return known.contains(id); };
    if (!std::all_of(op.operands.begin(), op.operands.end(), is_known)) return false;
    if (&op == &region.ops.back()) break;
    const ops::OpInstance instance(*program.function, op);
    const bool is_scalar_math = std::holds_alternative<ops::ScalarMath>(ops::body_of(ops::op(op.code), instance.view));
    if (!is_scalar_math || ops::op(op.code).is_random || op.results.size() != 1) return false;
    known.insert(op.results[0]);
  }
  return true;
}

std::vector<LocalId> write_region(const partition::LocalProgram& program, const ir::Region& region,
                                  const std::vector<LocalId>& arguments,
                                  const std::function<LocalId(LocalOp op, tensor::DType dtype)>& add) {
  std::map<ir::ValueId, LocalId> names;
  for (size_t k = 0; k < arguments.size(); ++k) names[region.arguments[k]] = arguments[k];
  const auto operands_of = [&](const ir::Op& op) {
    std::vector<LocalId> operands;
    for (const ir::ValueId id : op.operands) operands.push_back(names.at(id));
    return operands;
  };
  for (size_t i = 0; i + 1 < region.ops.size(); ++i) {
    const ir::Op& op = region.ops[i];
    names[op.results[0]] = add(make_op(op.name, operands_of(op), op.attributes, op.location),
                               program.function->type_of(op.results[0]).dtype());
  }
  return operands_of(region.ops.back());
}

LocalOp make_op(std::string_view name, std::vector<LocalId> operands, ir::AttributeList attributes,
                const ir::Location& location) {
  LocalOp op;
  op.def = ops::find_op(name);
  op.name = name;
  op.operands = std::move(operands);
  op.attributes = std::move(attributes);
  op.location = location;
  return op;
}

CarriedValues carried_values(const partition::LocalProgram& program, const LocalOp& loop) {
  const auto same_type = [&](LocalId a, LocalId b) {
    return program.type(a).local == program.type(b).local && program.type(a).layout == program.type(b).layout &&
           program.type(a).varies == program.type(b).varies;
  };
  CarriedValues out;
  const LocalBlock& body = loop.blocks[1];
  for (const LocalBlock& block : loop.blocks) {
    for (size_t k = 0; k < block.arguments.size(); ++k) {
      if (body.results[k] == body.arguments[k] && same_type(block.arguments[k], loop.operands[k]))
        out.outside[block.arguments[k]] = loop.operands[k];
      else
        out.changing.insert(block.arguments[k]);
    }
  }
  return out;
}

void LocalRewriter::rewrite(LocalBlock& block) {
  std::map<LocalId, size_t> outside = std::exchange(makers_, {});
  std::vector<LocalOp> ops = std::exchange(block.ops, {});
  LocalBlock rest = std::exchange(made_, {});
  for (LocalOp& op : ops) {
    for (LocalBlock& inner : op.blocks) rewrite(inner);
    write_for(op);
    if (replace(op))
      has_changed_ = true;
    else
      append(std::move(op));
  }
  block.ops = std::exchange(made_, std::move(rest)).ops;
  makers_ = std::move(outside);
}

const LocalOp* LocalRewriter::maker(LocalId id) const {
  const auto found = makers_.find(id);
  return found == makers_.end() ? nullptr : &made_.ops[found->second];
}

void LocalRewriter::append(LocalOp op) {
  for (const LocalId id : op.results) makers_[id] = made_.ops.size();
  made_.ops.push_back(std::move(op));
}

LocalId LocalRewriter::add(LocalOp op, partition::ShardedType type, std::string name) {
  program_.values.push_back({std::move(type), std::move(name)});
  op.results = {static_cast<LocalId>(program_.values.size() - 1)};
  append(std::move(op));
  return made_.ops.back().results[0];
}

bool LocalRewriter::rename(LocalId id, LocalId name, const Mark& mark) {
  const auto found = makers_.find(id);
  if (found == makers_.end() || found->second < mark.ops) return false;
  const size_t at = found->second;
  makers_.erase(found);
  makers_[name] = at;
  std::replace(made_.ops[at].results.begin(), made_.ops[at].results.end(), id, name);
  for (size_t i = at + 1; i < made_.ops.size(); ++i)
    std::replace(made_.ops[i].operands.begin(), made_.ops[i].operands.end(), id, name);
  return true;
}

void LocalRewriter::undo(const Mark& mark) {
  for (size_t i = mark.ops; i < made_.ops.size(); ++i) {
    for (const LocalId id : made_.ops[i].results) makers_.erase(id);
  }
  made_.ops.resize(mark.ops);
  program_.values.resize(mark.values);
}

}  // namespace meshd::compile
