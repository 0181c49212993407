// Rules about shardings on arguments, results and ops, and about manual computations. Shardy:
// dialect/sdy/ir/verifiers.cc.
#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "service/core/checked_math.h"
#include "service/core/error.h"
#include "service/ir/walk.h"
#include "service/ops/op_def.h"
#include "service/program/verify/verify.h"
#include "service/program/verify/verify_sdy_collectives.h"

namespace meshd::program {
namespace {

using sharding::TensorSharding;

/// A mesh and those of its axes that an enclosing manual computation has bound.
struct Bound {
  const mesh::Mesh* mesh = nullptr;
  std::vector<std::string> axes;
};

const std::vector<TensorSharding>* shardings_of(const ir::Op& op, std::string_view name) {
  const ir::Attribute* attribute = ir::find(op.attributes, name);
  if (attribute == nullptr) return nullptr;
  const auto* shardings = attribute->as<ir::ShardingAttr>();
  if (shardings == nullptr) {
    ir::fail("invalid_program", op.location, fmt::format("attribute '{}' of '{}' must hold shardings", name, op.name));
  }
  return &shardings->shardings;
}

void verify_rank(const TensorSharding& sharding, const ir::Type& type, const ir::Location& where,
                 const std::string& what) {
  if (type.kind == ir::TypeKind::kTuple) ir::fail("invalid_program", where, what + ": a tuple has no sharding");
  if (sharding.mesh->is_maximal() && sharding.dims.empty()) return;
  try {
    sharding::verify(sharding, type.is_tensor() ? type.rank() : 0);
  } catch (const core::Error& error) {
    ir::fail("invalid_program", where, what + ": " + error.detail());
  }
}

class ShardingVerifier {
 public:
  explicit ShardingVerifier(const ir::Function& function) : function_(function) {}

  void run() {
    for (size_t i = 0; i < function_.arguments.size(); ++i)
      parameter(function_.arguments[i], fmt::format("argument {}", i));
    for (size_t i = 0; i < function_.arguments.size(); ++i) {
      if (function_.arguments[i].sharding && i < function_.body.arguments.size())
        known_.insert_or_assign(function_.body.arguments[i], *function_.arguments[i].sharding);
    }
    for (size_t i = 0; i < function_.results.size(); ++i) parameter(function_.results[i], fmt::format("result {}", i));
    region(function_.body, nullptr);
  }

 private:
  void parameter(const ir::Parameter& parameter, const std::string& what) const {
    if (parameter.sharding)
      verify_rank(*parameter.sharding, parameter.type, parameter.location, what + " of @" + function_.name);
  }

  void region(const ir::Region& region, const ir::Op* manual) {
    ir::walk(region, [&](const ir::Op& op) {
      op_shardings(op);
      const std::optional<ops::Structural> role = ops::role_of(ops::op(op.code).body);
      if (role == ops::Structural::kShardingGroup) group(op, manual);
      verify_sdy_collective(function_, op, known_);
      for (size_t i = 0; i < op.results.size(); ++i) note(op, i);
      if (role == ops::Structural::kManualComputation) {
        manual_computation(op);
        return ir::WalkResult::kSkip;
      }
      if (role == ops::Structural::kWhile) carry(op);
      return ir::WalkResult::kAdvance;
    });
  }

  // Records the annotated sharding of a result.
  void note(const ir::Op& op, size_t result) {
    for (const char* name : {"sharding", "sdy.sharding", "out_shardings"}) {
      const auto* shardings = shardings_of(op, name);
      if (shardings != nullptr && result < shardings->size())
        known_.insert_or_assign(op.results[result], (*shardings)[result]);
    }
  }

  // Carried values have the shardings of the loop's results.
  void carry(const ir::Op& op) {
    for (size_t i = 0; i < op.results.size(); ++i) {
      const auto found = known_.find(op.results[i]);
      if (found == known_.end()) continue;
      for (const ir::Region& region : op.regions) {
        if (i < region.arguments.size()) known_.insert_or_assign(region.arguments[i], found->second);
      }
    }
  }

  // The arguments of a manual computation's body have the shardings of its operands over the axes that stay free.
  void note_body(const ir::Op& op, const std::vector<std::string>& manual_axes) {
    const auto* shardings = shardings_of(op, "in_shardings");
    const std::vector<ir::ValueId>& arguments = op.regions[0].arguments;
    for (size_t i = 0; shardings != nullptr && i < shardings->size() && i < arguments.size(); ++i) {
      TensorSharding free = (*shardings)[i];
      const auto is_manual = [&](const sharding::AxisRef& axis) {
        const std::string& name = free.mesh->axes[static_cast<size_t>(axis.axis)].name;
        return std::find(manual_axes.begin(), manual_axes.end(), name) != manual_axes.end();
      };
      for (sharding::DimSharding& dim : free.dims) std::erase_if(dim.axes, is_manual);
      known_.insert_or_assign(arguments[i], std::move(free));
    }
  }

  void op_shardings(const ir::Op& op) {
    if (const auto* shardings = shardings_of(op, "sdy.sharding")) {
      // An op without results may have one sharding: it places the op.
      const bool places_op = op.results.empty() && shardings->size() == 1;
      if (shardings->size() != op.results.size() && !places_op) {
        ir::fail("invalid_program", op.location,
                 fmt::format("'{}' has {} results, but {} shardings", op.name, op.results.size(), shardings->size()));
      }
      for (size_t i = 0; i < op.results.size(); ++i) {
        verify_rank((*shardings)[i], function_.type_of(op.results[i]), op.location,
                    fmt::format("result {} of '{}'", i, op.name));
      }
      for (const TensorSharding& sharding : *shardings) bound_axes(sharding, op);
    }
    if (const auto* shardings = shardings_of(op, "sharding")) {
      if (shardings->size() != 1 || op.operands.size() != 1) {
        ir::fail("invalid_program", op.location, "'" + op.name + "' has one operand and one sharding");
      }
      verify_rank((*shardings)[0], function_.type_of(op.operands[0]), op.location, "'" + op.name + "'");
      bound_axes((*shardings)[0], op);
    }
    if (const ir::Attribute* rule = ir::find(op.attributes, "sdy.sharding_rule")) factor_rule(*rule, op);
  }

  void bound_axes(const TensorSharding& sharding, const ir::Op& op) const {
    for (const Bound& bound : bound_) {
      if (!(*bound.mesh == *sharding.mesh)) continue;
      const auto check = [&](const std::vector<sharding::AxisRef>& axes) {
        for (const sharding::AxisRef& axis : axes) {
          const std::string& name = sharding.mesh->axes[static_cast<size_t>(axis.axis)].name;
          if (std::find(bound.axes.begin(), bound.axes.end(), name) == bound.axes.end()) continue;
          ir::fail(
              "invalid_program", op.location,
              fmt::format("'{}' uses axis \"{}\", which an enclosing sdy.manual_computation has bound", op.name, name));
        }
      };
      for (const sharding::DimSharding& dim : sharding.dims) check(dim.axes);
      check(sharding.unreduced);
    }
  }

  void factor_rule(const ir::Attribute& attribute, const ir::Op& op) const {
    const auto* held = attribute.as<ir::ShardingRuleAttr>();
    if (held == nullptr) ir::fail("invalid_program", op.location, "'sdy.sharding_rule' must be a sharding rule");
    const auto compare = [&](const std::vector<sharding::TensorFactors>& mappings,
                             const std::vector<ir::ValueId>& values, const char* what) {
      if (mappings.size() != values.size()) {
        ir::fail("invalid_program", op.location,
                 fmt::format("the sharding rule has {} {}s, but '{}' has {}", mappings.size(), what, op.name,
                             values.size()));
      }
      for (size_t i = 0; i < values.size(); ++i) {
        const ir::Type& type = function_.type_of(values[i]);
        const int64_t rank = type.is_tensor() ? type.rank() : 0;
        if (static_cast<int64_t>(mappings[i].size()) != rank) {
          ir::fail("invalid_program", op.location,
                   fmt::format("the sharding rule maps {} dimensions of {} {}, but its rank is {}", mappings[i].size(),
                               what, i, rank));
        }
      }
    };
    compare(held->rule.operands, op.operands, "operand");
    compare(held->rule.results, op.results, "result");
  }

  void group(const ir::Op& op, const ir::Op* manual) {
    const int64_t id = ir::int_or(op.attributes, "group_id", 0);
    const auto [found, inserted] = groups_.emplace(id, manual);
    if (!inserted && found->second != manual) {
      ir::fail("invalid_program", op.location,
               fmt::format("sharding group {} has members on both sides of an sdy.manual_computation", id));
    }
  }

  /// Checks the shardings on one side of a manual computation and returns the local types that its body must have
  /// there.
  std::vector<ir::Type> local_types(const ir::Op& op, std::string_view name, const std::vector<ir::ValueId>& values,
                                    const std::vector<std::string>& manual_axes, Bound& bound) const {
    const auto* shardings = shardings_of(op, name);
    const std::string what = "'" + std::string(name) + "' of '" + op.name + "'";
    if (shardings == nullptr || shardings->size() != values.size()) {
      ir::fail("invalid_program", op.location,
               fmt::format("{} has {} shardings for {} values", what, shardings == nullptr ? 0 : shardings->size(),
                           values.size()));
    }
    std::vector<ir::Type> out;
    for (size_t i = 0; i < values.size(); ++i) {
      const TensorSharding& sharding = (*shardings)[i];
      const mesh::Mesh& mesh = *sharding.mesh;
      ir::Type type = function_.type_of(values[i]);
      verify_rank(sharding, type, op.location, what);
      bound_axes(sharding, op);
      bool names_axes = !mesh.is_empty() && !mesh.is_maximal();
      if (names_axes) bound.mesh = &mesh;
      for (size_t d = 0; names_axes && d < sharding.dims.size(); ++d) {
        int64_t parts = 1;
        bool seen_free = false;
        for (const sharding::AxisRef& axis : sharding.dims[d].axes) {
          const std::string& axis_name = mesh.axes[static_cast<size_t>(axis.axis)].name;
          const bool manual = std::find(manual_axes.begin(), manual_axes.end(), axis_name) != manual_axes.end();
          if (manual && seen_free) {
            ir::fail("invalid_program", op.location,
                     fmt::format("{}: manual axis \"{}\" is behind a free axis in dimension {} of value {}", what,
                                 axis_name, d, i));
          }
          seen_free = seen_free || !manual;
          if (manual) parts *= sharding::axis_size(axis, mesh);
        }
        int64_t& size = type.tensor.dims[d];
        if (size != tensor::kDynamicDim) size = core::ceil_div(size, parts);
      }
      out.push_back(std::move(type));
    }
    return out;
  }

  void compare_types(const ir::Op& op, const std::vector<ir::Type>& expected, const std::vector<ir::ValueId>& values,
                     const char* what) const {
    if (expected.size() != values.size()) {
      ir::fail("invalid_program", op.location,
               fmt::format("the body of '{}' has {} {}s, expected {}", op.name, values.size(), what, expected.size()));
    }
    for (size_t i = 0; i < values.size(); ++i) {
      if (function_.type_of(values[i]) == expected[i]) continue;
      ir::fail("invalid_program", op.location,
               fmt::format("{} {} in the body of '{}' must have the local type {}, got {}", what, i, op.name,
                           to_string(expected[i]), to_string(function_.type_of(values[i]))));
    }
  }

  void manual_computation(const ir::Op& op) {
    std::vector<std::string> manual_axes;
    if (const ir::Attribute* axes = ir::find(op.attributes, "manual_axes")) {
      const auto* names = axes->as<ir::ArrayAttr>();
      if (names == nullptr) ir::fail("invalid_program", op.location, "'manual_axes' must be a list of axes");
      for (const ir::Attribute& name : names->values) {
        const auto* text = name.as<ir::StringAttr>();
        if (text == nullptr) ir::fail("invalid_program", op.location, "'manual_axes' must be a list of axes");
        manual_axes.push_back(text->value);
      }
    }
    Bound bound;
    const std::vector<ir::Type> inputs = local_types(op, "in_shardings", op.operands, manual_axes, bound);
    const std::vector<ir::Type> outputs = local_types(op, "out_shardings", op.results, manual_axes, bound);
    if (op.regions.size() != 1 || op.regions[0].ops.empty())
      ir::fail("invalid_program", op.location, "'" + op.name + "' needs a body");
    const ir::Region& body = op.regions[0];
    compare_types(op, inputs, body.arguments, "argument");
    compare_types(op, outputs, body.ops.back().operands, "result");
    for (const std::string& name : manual_axes) {
      if (bound.mesh != nullptr && !bound.mesh->axis_index(name)) {
        ir::fail("invalid_program", op.location,
                 fmt::format("manual axis \"{}\" is not of the mesh {}", name, mesh::to_text(*bound.mesh)));
      }
    }
    note_body(op, manual_axes);
    bound.axes = std::move(manual_axes);
    if (bound.mesh != nullptr) bound_.push_back(bound);
    region(body, &op);
    if (bound.mesh != nullptr) bound_.pop_back();
  }

  const ir::Function& function_;
  std::vector<Bound> bound_;
  KnownShardings known_;
  std::map<int64_t, const ir::Op*> groups_;
};

}  // namespace

void verify_shardings(const ir::Function& function) { ShardingVerifier(function).run(); }

}  // namespace meshd::program
