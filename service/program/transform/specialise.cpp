#include "service/program/transform/specialise.h"

#include <fmt/core.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "service/core/error.h"
#include "service/ir/walk.h"
#include "service/ops/checks.h"
#include "service/ops/evaluate.h"
#include "service/ops/linalg/custom_calls.h"
#include "service/ops/writer.h"
#include "service/program/transform/captured_values.h"

namespace meshd::program {
namespace {

using ir::ValueId;
using ops::SmallValue;
using ops::Structural;
using tensor::Dims;

bool is_dynamic(const ir::Type& type) {
  if (type.kind == ir::TypeKind::kTuple) return std::any_of(type.elements.begin(), type.elements.end(), is_dynamic);
  return type.is_tensor() && std::count(type.dims().begin(), type.dims().end(), tensor::kDynamicDim) != 0;
}

/// Types of a tuple's leaves, from left to right; the type itself where it is none.
void leaves_of(const ir::Type& type, std::vector<ir::Type>& out) {
  if (!type.is_tuple()) {
    out.push_back(type);
    return;
  }
  for (const ir::Type& element : type.elements) leaves_of(element, out);
}

std::vector<ir::Type> leaves_of(const ir::Type& type) {
  std::vector<ir::Type> out;
  leaves_of(type, out);
  return out;
}

std::optional<Structural> role_of(const ops::OpDef& def) { return ops::role_of(def.body); }

class Specialiser {
 public:
  Specialiser(const ir::Module& flat, std::span<const tensor::TensorType> arguments)
      : out_(flat), main_(out_.main()), is_dynamic_(has_dynamic_shapes(flat)) {
    size_t next = 0;
    for (size_t i = 0; i < main_.arguments.size(); ++i) {
      ir::Parameter& parameter = main_.arguments[i];
      if (parameter.type.is_tuple()) {
        ir::fail("unsupported_type", parameter.location,
                 fmt::format("argument {} of @main is a tuple: its elements must be arguments of their own", i));
      }
      if (parameter.is_token) continue;
      if (next < arguments.size()) parameter.type = ir::Type::of(arguments[next]);
      ++next;
      set_type(main_.body.arguments[i], parameter.type);
    }
  }

  ir::Module run() {
    region(main_.body);
    const std::vector<ValueId>& returned = main_.body.ops.back().operands;
    if (returned.size() != main_.results.size()) {
      ir::fail("unsupported_type", main_.location,
               "a result of @main is a tuple: its elements must be results of their own");
    }
    for (size_t i = 0; i < returned.size(); ++i) {
      if (!main_.results[i].is_token) main_.results[i].type = main_.type_of(returned[i]);
    }
    for (ir::InlinedCall& call : out_.inlined_calls) {
      edge(call.arguments, call.argument_shardings);
      edge(call.results, call.result_shardings);
    }
    return std::move(out_);
  }

 private:
  [[nodiscard]] const ir::Type& type(ValueId id) const { return main_.type_of(id); }
  void set_type(ValueId id, ir::Type type) { main_.values[static_cast<size_t>(id)].type = std::move(type); }

  [[nodiscard]] ValueId resolved(ValueId id) const {
    for (auto found = same_as_.find(id); found != same_as_.end(); found = same_as_.find(id)) id = found->second;
    return id;
  }

  /// Operands after rewriting: replaced values, and tuples by their leaves.
  std::vector<ValueId> all_resolved(const std::vector<ValueId>& ids) const {
    std::vector<ValueId> out;
    for (const ValueId id : ids) {
      const auto parts = parts_.find(resolved(id));
      if (parts == parts_.end()) {
        out.push_back(resolved(id));
      } else {
        for (const ValueId part : parts->second) out.push_back(resolved(part));
      }
    }
    return out;
  }

  /// Arguments or results of a call with tuples flattened; annotations of tuples are dropped with them.
  void edge(std::vector<ValueId>& ids, std::vector<std::optional<sharding::TensorSharding>>& shardings) const {
    std::vector<ValueId> made;
    std::vector<std::optional<sharding::TensorSharding>> kept;
    for (size_t i = 0; i < ids.size(); ++i) {
      const std::vector<ValueId> now = all_resolved({ids[i]});
      made.insert(made.end(), now.begin(), now.end());
      const bool same = now.size() == 1 && i < shardings.size();
      kept.resize(made.size());
      if (same) kept.back() = shardings[i];
    }
    ids = std::move(made);
    shardings = std::move(kept);
  }

  /// Flattens a value of tuple type into values of its leaves.
  std::vector<ValueId> take_apart(ValueId id) {
    std::vector<ValueId> made;
    for (ir::Type& leaf : leaves_of(type(id))) made.push_back(main_.add_value(std::move(leaf)));
    parts_[id] = made;
    return made;
  }

  std::vector<ValueId> definitions(const std::vector<ValueId>& ids) {
    std::vector<ValueId> out;
    for (const ValueId id : ids) {
      if (!type(id).is_tuple()) {
        out.push_back(id);
        continue;
      }
      for (const ValueId part : take_apart(id)) out.push_back(part);
    }
    return out;
  }

  void region(ir::Region& region) {
    std::vector<ir::Op> old = std::exchange(region.ops, {});
    for (ir::Op& op : old) rewrite(std::move(op), region.ops);
  }

  void rewrite(ir::Op op, std::vector<ir::Op>& to) {
    const ops::OpDef& def = ops::op(op.code);
    const auto role = role_of(def);
    if (role == Structural::kTuple) {
      parts_[op.results[0]] = all_resolved(op.operands);
      return;
    }
    if (role == Structural::kGetTupleElement) return element(op);
    op.operands = all_resolved(op.operands);
    op.results = definitions(op.results);
    for (ir::Region& nested : op.regions) {
      nested.arguments = definitions(nested.arguments);
      // What a loop carries has the types of its start values.
      if (role == Structural::kWhile || role == Structural::kNamedComputation) {
        for (size_t i = 0; i < nested.arguments.size() && i < op.operands.size(); ++i) {
          if (is_dynamic(type(nested.arguments[i]))) set_type(nested.arguments[i], type(op.operands[i]));
        }
      }
      region(nested);
    }
    if (is_dynamic_) refine(op, def, role);
    if (captures_values(op)) {
      take_captured_values(
          main_, op,
          [this](ValueId id) {
            const auto found = known_.find(id);
            return found == known_.end() ? SmallValue() : found->second;
          },
          to);
    }
    if (fold(op, def)) return;
    if (expand(op, def, to)) return;
    check(op, def);
    to.push_back(std::move(op));
  }

  void element(const ir::Op& op) {
    const ir::Type& tuple = type(op.operands[0]);
    const auto index = static_cast<size_t>(ir::int_or(op.attributes, "index", 0));
    size_t first = 0;
    for (size_t i = 0; i < index; ++i) first += leaves_of(tuple.elements.at(i)).size();
    const size_t count = leaves_of(tuple.elements.at(index)).size();
    const std::vector<ValueId> leaves = all_resolved({op.operands[0]});
    if (tuple.elements[index].is_tuple()) {
      const auto begin = leaves.begin() + static_cast<std::ptrdiff_t>(first);
      parts_[op.results[0]] = {begin, begin + static_cast<std::ptrdiff_t>(count)};
    } else {
      same_as_[op.results[0]] = leaves.at(first);
    }
  }

  struct Types {
    std::vector<ir::Type> operands;
    std::vector<ir::Type> results;
  };

  [[nodiscard]] Types types_of(const ir::Op& op) const {
    return {main_.types_of(op.operands), main_.types_of(op.results)};
  }

  [[nodiscard]] ops::OpView view_of(const ir::Op& op, const Types& types) const {
    ops::OpView view{types.operands, types.results, &op.attributes, op.regions, &main_, &op.location};
    view.op = &op;
    return view;
  }

  /// Result types from operands whose sizes are known by now.
  void refine(const ir::Op& op, const ops::OpDef& def, std::optional<Structural> role) {
    const auto take = [&](const std::vector<ir::Type>& types) {
      for (size_t i = 0; i < op.results.size() && i < types.size(); ++i) {
        const ir::Type& now = type(op.results[i]);
        if (is_dynamic(now) && types[i].is_tensor() && types[i].rank() == now.rank()) {
          set_type(op.results[i], ir::Type::of({now.dtype(), ops::merged(now.dims(), types[i].dims())}));
        }
      }
    };
    const auto unknown = [&] {
      return std::any_of(op.results.begin(), op.results.end(), [&](ValueId id) { return is_dynamic(type(id)); });
    };
    Types types = types_of(op);
    // Shapes could not be checked before.
    if (def.infer != nullptr && role != Structural::kReturn) take(def.infer(view_of(op, types)));
    if (!unknown()) return;
    if (role == Structural::kWhile || role == Structural::kNamedComputation || def.result_is_operand ||
        role == Structural::kShardingConstraint || role == Structural::kReshard ||
        role == Structural::kPropagationBarrier) {
      take(types.operands);
    } else if (role == Structural::kCase || role == Structural::kIf) {
      take(ops::returned_types(view_of(op, types), op.regions[0]));
    } else if (std::holds_alternative<ops::ScalarMath>(ops::body_of(def, view_of(op, types)))) {
      for (const ir::Type& operand : types.operands) take(std::vector<ir::Type>(op.results.size(), operand));
    } else {
      types.results.clear();
      try {
        take(def.infer(view_of(op, types)));
      } catch (const core::Error&) {
        // Its result type is declared by the program; a decomposition may refine it.
      }
    }
  }

  /// Follows small values. True when the op is done with: an assertion that holds.
  bool fold(const ir::Op& op, const ops::OpDef& def) {
    if (!is_dynamic_ && known_.empty() && def.expand == nullptr && role_of(def) != Structural::kConstant) return false;
    std::vector<SmallValue> operands;
    for (const ValueId id : op.operands) {
      const auto found = known_.find(id);
      const bool is_known = found != known_.end();
      if (!is_known && (!def.reads_shapes_only || is_dynamic(type(id)))) return false;
      operands.push_back(is_known ? found->second : nullptr);
    }
    if (op.operands.empty() && role_of(def) != Structural::kConstant) return false;
    const Types types = types_of(op);
    auto results = ops::evaluate_small(def, view_of(op, types), operands);
    if (!results) return false;
    for (size_t i = 0; i < op.results.size(); ++i) known_[op.results[i]] = (*results)[i];
    if (role_of(def) != Structural::kCustomCall) return false;
    const ops::CustomCallDef* row = ops::find_custom_call(ops::target_of(view_of(op, types)));
    return row != nullptr && row->kind == ops::CustomCallKind::kShapeAssertion;
  }

  std::optional<std::vector<int64_t>> integers(ValueId id) const {
    const auto found = known_.find(id);
    if (found == known_.end() || tensor::is_float(type(id).dtype()) || tensor::is_complex(type(id).dtype()))
      return std::nullopt;
    return ops::integers_of(type(id), *found->second);
  }

  bool expand(const ir::Op& op, const ops::OpDef& def, std::vector<ir::Op>& to) {
    const ops::ExpandFn how = def.expand;
    if (how == nullptr) return false;
    const Types types = types_of(op);
    std::vector<ir::Op> made;
    ops::Writer writer(main_, made, op, [this](ValueId id) { return integers(id); });
    const auto values = how(view_of(op, types), writer);
    if (!values) return false;
    std::unordered_map<ValueId, ValueId> renamed;
    for (size_t i = 0; i < op.results.size(); ++i) {
      const ValueId made_id = (*values)[i];
      const bool is_new = std::any_of(made.begin(), made.end(), [made_id](const ir::Op& each) {
        return std::find(each.results.begin(), each.results.end(), made_id) != each.results.end();
      });
      if (is_new && renamed.emplace(made_id, op.results[i]).second) {
        set_type(op.results[i], type(made_id));
      } else {
        const auto other = renamed.find(made_id);
        same_as_[op.results[i]] = other == renamed.end() ? made_id : other->second;
      }
    }
    for (ir::Op& each : made) ir::rename_values(each, renamed);
    // The results' sharding annotations stay on the op that defines them.
    const ir::Attribute* sharding = ir::find(op.attributes, "sdy.sharding");
    if (sharding != nullptr && !made.empty() && made.back().results == op.results) {
      made.back().attributes.emplace_back("sdy.sharding", *sharding);
    }
    for (ir::Op& each : made) rewrite(std::move(each), to);
    return true;
  }

  /// What is left must have shapes that are known.
  void check(const ir::Op& op, const ops::OpDef& def) const {
    for (const ValueId id : op.results) {
      if (!is_dynamic(type(id))) continue;
      ir::fail("unsupported_type", op.location,
               fmt::format("the shape of what '{}' gives, {}, does not follow from the shapes of the arguments",
                           op.name, ir::to_string(type(id))));
    }
    if (def.expand != nullptr && std::holds_alternative<ops::Unsupported>(def.body)) {
      ir::fail("unsupported_op", op.location,
               "'" + op.name + "' is run only where its shape operands follow from the shapes of the arguments");
    }
  }

  ir::Module out_;
  ir::Function& main_;
  bool is_dynamic_;
  std::unordered_map<ValueId, ValueId> same_as_;
  std::unordered_map<ValueId, std::vector<ValueId>> parts_;
  std::unordered_map<ValueId, SmallValue> known_;
};

}  // namespace

bool has_more_than_plain_ops(const ir::Module& flat) {
  return ir::any_op(flat.main().body,
                    [](const ir::Op& op) {
                      const ops::OpDef& def = ops::op(op.code);
                      return def.expand != nullptr || captures_values(op) || role_of(def) == Structural::kTuple ||
                             role_of(def) == Structural::kGetTupleElement;
                    }) ||
         std::any_of(flat.main().values.begin(), flat.main().values.end(),
                     [](const ir::Value& value) { return value.type.is_tuple(); });
}

bool has_static_arguments(const ir::Module& flat) {
  const std::vector<ir::Parameter>& arguments = flat.main().arguments;
  return std::none_of(arguments.begin(), arguments.end(),
                      [](const ir::Parameter& parameter) { return is_dynamic(parameter.type); });
}

bool has_dynamic_shapes(const ir::Module& flat) {
  return std::any_of(flat.main().values.begin(), flat.main().values.end(),
                     [](const ir::Value& value) { return is_dynamic(value.type); });
}

ir::Module specialise(const ir::Module& flat, std::span<const tensor::TensorType> arguments) {
  return Specialiser(flat, arguments).run();
}

}  // namespace meshd::program
