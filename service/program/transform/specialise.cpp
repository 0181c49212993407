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
#include "service/ops/rewrites/writer.h"
#include "service/ops/scalar_facts.h"
#include "service/program/transform/bounded/write_bounded.h"
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
      if (next < arguments.size()) {
        check_bounds(parameter.type, arguments[next], next);
        parameter.type = ir::Type::of(arguments[next]);
      }
      ++next;
      set_type(main_.body.arguments[i], parameter.type);
    }
  }

  ir::Module run() {
    region(main_.body);
    return_sizes();
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
  static void check_bounds(const ir::Type& declared, const tensor::TensorType& given, size_t position) {
    for (size_t d = 0; d < declared.bounds.size(); ++d) {
      if (declared.bounds[d] == tensor::kDynamicDim || given.dims.at(d) <= declared.bounds[d]) continue;
      const std::string what = fmt::format("dimension {} has {} elements, the program takes at most {} ({})", d,
                                           given.dims[d], declared.bounds[d], ir::to_string(declared));
      throw core::Error("invalid_argument", fmt::format("argument {}: {}", position, what),
                        {{fmt::format("/arguments/{}", position), what}});
    }
  }

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
      std::vector<ValueId> now = all_resolved({ids[i]});
      for (ValueId& each : now) each = bounded_of(each).padded;
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

  // Sizes that depend on data

  [[nodiscard]] bool is_bounded(ValueId id) const { return bounded_.contains(id); }
  [[nodiscard]] bool is_bounded(const std::vector<ValueId>& ids) const {
    return !bounded_.empty() && std::any_of(ids.begin(), ids.end(), [&](ValueId id) { return is_bounded(id); });
  }

  [[nodiscard]] BoundedValue bounded_of(ValueId id) const {
    const auto found = bounded_.find(id);
    if (found != bounded_.end()) return found->second;
    const size_t rank = type(id).is_tensor() ? type(id).dims().size() : 0;
    return {id, std::vector<ValueId>(rank, ir::kNoValue)};
  }

  /// Sizes, and numbers of elements, are computed in 32 bits.
  static void check_count(const ir::Type& padded, const ir::Location& location) {
    double count = 1;
    for (const int64_t size : padded.dims()) count *= static_cast<double>(size);
    if (count <= INT32_MAX) return;
    ir::fail(
        "unsupported_type", location,
        fmt::format("a value whose size depends on data has at most 2147483647 elements; the bounds of this one are "
                    "{}",
                    ir::to_string(padded)));
  }

  /// What stands for a result of the text from here on.
  void define_bounded(ValueId id, BoundedValue value, const ir::Location& location) {
    if (value.is_bounded()) check_count(type(value.padded), location);
    value.padded = resolved(value.padded);
    for (ValueId& size : value.sizes) {
      if (size != ir::kNoValue) size = resolved(size);
    }
    if (value.is_bounded()) {
      bounded_[id] = std::move(value);
    } else {
      same_as_[id] = value.padded;
    }
  }

  ops::Writer writer_into(std::vector<ir::Op>& to, const ir::Op& source) {
    return {main_, to, source, [this](ValueId id) { return integers(id); }};
  }

  /// Rewrites ops that are written over static values.
  void rewrite_all(std::vector<ir::Op> made, std::vector<ir::Op>& to) {
    for (ir::Op& each : made) rewrite(std::move(each), to);
  }

  /// What takes the place of an op's results has the types that the text declares of them: their readers have been
  /// checked with these.
  void expect_declared(const ir::Op& op, const std::vector<ValueId>& made) const {
    const std::vector<ir::Type> declared = main_.types_of(op.results);
    const std::vector<ir::Type> types = main_.types_of(made);
    const auto fits = [](const ir::Type& a, const ir::Type& b) {
      if (!a.is_tensor() || !b.is_tensor()) return a == b;
      return a.dtype() == b.dtype() && ops::compatible_shapes(a.dims(), b.dims());
    };
    if (std::equal(types.begin(), types.end(), declared.begin(), declared.end(), fits)) return;
    ir::fail(
        "invalid_program", op.location,
        fmt::format("'{}' gives {}, the text declares {}", op.name, ops::types_text(types), ops::types_text(declared)));
  }

  /// The op, whose types have been refined since the text was read, keeps to its rules.
  void expect_fits(const ir::Op& op) const {
    const Types types = types_of(op);
    ops::op(op.code).infer(view_of(op, types));
  }

  void write_bounded_op(const ir::Op& op, std::vector<ir::Op>& to) {
    std::vector<BoundedValue> operands;
    for (const ValueId id : op.operands) operands.push_back(bounded_of(id));
    std::vector<ir::Op> made;
    ops::Writer writer = writer_into(made, op);
    const auto results = write_bounded(op, operands, writer);
    if (!results) {
      ir::fail(
          "unsupported_op", op.location,
          fmt::format("'{}' is not supported where an operand or a result has a size that depends on data ({}): give "
                      "it a value of a known size, such as what stablehlo.dynamic_pad with a static result type "
                      "makes of it",
                      op.name, ir::to_string(first_bounded_type(op))));
    }
    std::vector<ValueId> padded;
    for (const BoundedValue& value : *results) padded.push_back(value.padded);
    expect_declared(op, padded);
    // Where an op keeps its shape, its annotation goes to the padded value.
    const ir::Attribute* sharding = ir::find(op.attributes, "sdy.sharding");
    if (sharding != nullptr && op.results.size() == 1 && !made.empty() && made.back().results.size() == 1 &&
        made.back().results[0] == results->at(0).padded &&
        ir::find(made.back().attributes, "sdy.sharding") == nullptr) {
      made.back().attributes.push_back({"sdy.sharding", *sharding});
    }
    rewrite_all(std::move(made), to);
    for (size_t i = 0; i < op.results.size(); ++i) define_bounded(op.results[i], results->at(i), op.location);
  }

  [[nodiscard]] ir::Type first_bounded_type(const ir::Op& op) const {
    for (const auto* ids : {&op.operands, &op.results}) {
      for (const ValueId id : *ids) {
        if (is_bounded(id) || is_dynamic(type(id))) return type(id);
      }
    }
    return type(op.operands.at(0));
  }

  /// Bounds of the values that control flow carries, by value; empty: it has no size that depends on data.
  struct Carried {
    std::vector<tensor::Dims> bounds;
    std::vector<ir::Type> types;  ///< of the padded values

    [[nodiscard]] bool any() const {
      return std::any_of(bounds.begin(), bounds.end(), [](const tensor::Dims& each) { return !each.empty(); });
    }
  };

  /// By what the text declares of its results, else by the start values of a loop.
  [[nodiscard]] Carried carried_by(const ir::Op& op, bool is_loop) const {
    Carried out;
    for (size_t i = 0; i < op.results.size(); ++i) {
      ir::Type now = type(op.results[i]);
      tensor::Dims bounds;
      if (now.is_tensor() && is_dynamic(now)) {
        const bool has_start = is_loop && is_bounded(op.operands[i]);
        if (now.is_bounded() || has_start) bounds = tensor::Dims(now.dims().size(), tensor::kDynamicDim);
        for (size_t d = 0; d < bounds.size(); ++d) {
          if (now.dims()[d] != tensor::kDynamicDim) continue;
          if (now.is_bounded()) bounds[d] = now.bounds[d];
          if (bounds[d] == tensor::kDynamicDim && has_start) {
            const BoundedValue start = bounded_of(op.operands[i]);
            if (start.sizes[d] != ir::kNoValue) bounds[d] = type(start.padded).dims()[d];
          }
          if (bounds[d] != tensor::kDynamicDim) now.tensor.dims[d] = bounds[d];
        }
        now.bounds.clear();
      }
      if (bounds.empty() && is_loop && now.is_tensor() && is_dynamic(now)) now = type(op.operands[i]);
      out.bounds.push_back(std::move(bounds));
      out.types.push_back(std::move(now));
    }
    return out;
  }

  /// The values as what is carried: padded ones, then the sizes.
  std::vector<ValueId> carry(const std::vector<ValueId>& values, const Carried& carried, const ir::Op& source,
                             std::vector<ir::Op>& to) {
    std::vector<ir::Op> made;
    ops::Writer writer = writer_into(made, source);
    BoundedWriter bounded(writer);
    std::vector<ValueId> out, sizes;
    for (size_t i = 0; i < values.size(); ++i) {
      const BoundedValue value = bounded_of(values[i]);
      if (carried.bounds[i].empty()) {
        out.push_back(value.padded);
        continue;
      }
      const BoundedValue fitting = bounded.as_bounded(value, carried.bounds[i]);
      out.push_back(fitting.padded);
      for (const ValueId size : fitting.sizes) {
        if (size != ir::kNoValue) sizes.push_back(size);
      }
    }
    rewrite_all(std::move(made), to);
    out.insert(out.end(), sizes.begin(), sizes.end());
    for (ValueId& each : out) each = resolved(each);
    return out;
  }

  /// New values in place of `ids`: padded ones, then the sizes.
  std::vector<ValueId> define_carried(const std::vector<ValueId>& ids, const Carried& carried) {
    std::vector<ValueId> out, sizes;
    for (size_t i = 0; i < ids.size(); ++i) {
      if (carried.bounds[i].empty()) {
        if (is_dynamic(type(ids[i]))) set_type(ids[i], carried.types[i]);
        out.push_back(ids[i]);
        continue;
      }
      BoundedValue value{main_.add_value(carried.types[i]), {}};
      for (const int64_t bound : carried.bounds[i]) {
        const bool has_size = bound != tensor::kDynamicDim;
        value.sizes.push_back(has_size ? main_.add_value(ir::Type::of({tensor::DType::kInt32, {}})) : ir::kNoValue);
        if (has_size) sizes.push_back(value.sizes.back());
      }
      out.push_back(value.padded);
      bounded_[ids[i]] = std::move(value);
    }
    out.insert(out.end(), sizes.begin(), sizes.end());
    return out;
  }

  /// A while, case or if that carries sizes.
  void write_bounded_flow(ir::Op op, const Carried& carried, bool is_loop, std::vector<ir::Op>& to) {
    for (size_t i = 0; i < carried.bounds.size(); ++i) {
      if (!carried.bounds[i].empty()) check_count(carried.types[i], op.location);
    }
    if (is_loop) op.operands = carry(op.operands, carried, op, to);
    for (size_t r = 0; r < op.regions.size(); ++r) {
      ir::Region& nested = op.regions[r];
      if (is_loop) nested.arguments = define_carried(nested.arguments, carried);
      region(nested);
      if (is_loop && r == 0) continue;  // the condition
      ir::Op end = std::move(nested.ops.back());
      nested.ops.pop_back();
      end.operands = carry(end.operands, carried, end, nested.ops);
      nested.ops.push_back(std::move(end));
    }
    const size_t count = op.results.size();
    op.results = define_carried(op.results, carried);
    for (size_t i = 0; i < op.results.size(); ++i) {
      const ValueId returned = op.regions.back().ops.back().operands.at(i);
      if (is_dynamic(type(op.results[i]))) set_type(op.results[i], type(returned));
    }
    check(op, ops::op(op.code));
    expect_fits(op);  // what regions give where the text says no sizes is known only now
    // The annotation has a sharding for each result: sizes have none.
    for (ir::NamedAttribute& entry : op.attributes) {
      auto* shardings = entry.name == "sdy.sharding" ? std::get_if<ir::ShardingAttr>(&entry.value.value) : nullptr;
      if (shardings == nullptr || shardings->shardings.size() != count || count == 0) continue;
      const sharding::TensorSharding& like = shardings->shardings[0];
      shardings->shardings.resize(op.results.size(), sharding::fully_replicated(like.mesh_name, like.mesh, 0));
    }
    to.push_back(std::move(op));
  }

  /// Results of @main whose size depends on data become padded ones, and one more result has the sizes.
  void return_sizes() {
    if (!is_bounded(main_.body.ops.back().operands)) return;
    ir::Op end = std::move(main_.body.ops.back());
    main_.body.ops.pop_back();
    std::vector<ir::Op> made;
    ops::Writer writer = writer_into(made, end);
    std::vector<ValueId> sizes;
    for (size_t i = 0; i < end.operands.size(); ++i) {
      const BoundedValue value = bounded_of(end.operands[i]);
      if (!value.is_bounded()) continue;
      end.operands[i] = value.padded;
      for (size_t d = 0; d < value.sizes.size(); ++d) {
        main_.results[i].size_places.push_back(-1);
        if (value.sizes[d] == ir::kNoValue) continue;
        main_.results[i].size_places.back() = static_cast<int64_t>(sizes.size());
        sizes.push_back(writer.reshape(value.sizes[d], {1}));
      }
    }
    const ValueId all = writer.concatenate(std::move(sizes), 0);
    rewrite_all(std::move(made), main_.body.ops);
    end.operands.push_back(resolved(all));
    ir::Parameter parameter;
    parameter.type = type(end.operands.back());
    parameter.is_sizes = true;
    parameter.location = main_.location;
    main_.results.push_back(std::move(parameter));
    main_.body.ops.push_back(std::move(end));
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
    if (is_dynamic_ && role != Structural::kReturn) {
      const bool is_loop = role == Structural::kWhile;
      if (is_loop || role == Structural::kCase || role == Structural::kIf) {
        const Carried carried = carried_by(op, is_loop);
        if (carried.any()) return write_bounded_flow(std::move(op), carried, is_loop, to);
      } else if (is_bounded(op.operands)) {
        expect_fits(op);
        return write_bounded_op(op, to);
      }
    }
    for (ir::Region& nested : op.regions) {
      nested.arguments = definitions(nested.arguments);
      // What a loop carries has the types of its start values.
      if (role == Structural::kWhile || role == Structural::kNamedComputation) {
        for (size_t i = 0; i < nested.arguments.size() && i < op.operands.size(); ++i) {
          if (is_dynamic(type(nested.arguments[i]))) set_type(nested.arguments[i], type(op.operands[i]));
        }
      }
      region(nested);
      if (!is_bounded(nested.ops.back().operands)) continue;
      ir::fail("unsupported_type", nested.ops.back().location,
               fmt::format("what a region of '{}' returns has a size that depends on data: give the types of what it "
                           "carries a bound, such as tensor<?xf32, #stablehlo.bounds<8>>",
                           op.name));
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
    remember_sum(op, def);
    if (expand(op, def, to)) return;
    if (has_bounds(op) || is_about_bounds(op)) return write_bounded_op(op, to);
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
          ir::Type merged = ir::Type::of({now.dtype(), ops::merged(now.dims(), types[i].dims())});
          if (is_dynamic(merged)) merged.bounds = now.bounds;
          set_type(op.results[i], std::move(merged));
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

  /// Of sums, which values they are of.
  void remember_sum(const ir::Op& op, const ops::OpDef& def) {
    if (!is_dynamic_ || op.operands.size() != 2) return;
    const Types types = types_of(op);
    if (ops::sum_of(def, view_of(op, types)) == ops::Sum::kOfBoth)
      sums_[op.results[0]] = {op.operands[0], op.operands[1]};
  }

  std::optional<std::vector<int64_t>> difference(ValueId a, ValueId b) const {
    const auto found = sums_.find(a);
    if (found == sums_.end()) return std::nullopt;
    const auto [left, right] = found->second;
    if (left == b) return integers(right);
    return right == b ? integers(left) : std::nullopt;
  }

  bool expand(const ir::Op& op, const ops::OpDef& def, std::vector<ir::Op>& to) {
    const ops::ExpandFn how = def.expand;
    if (how == nullptr) return false;
    const Types types = types_of(op);
    std::vector<ir::Op> made;
    ops::Writer writer(
        main_, made, op, [this](ValueId id) { return integers(id); },
        [this](ValueId a, ValueId b) { return difference(a, b); });
    const auto values = how(view_of(op, types), writer);
    if (!values) return false;
    expect_declared(op, *values);
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

  /// Whether a result has a size that depends on data and is bounded.
  [[nodiscard]] bool has_bounds(const ir::Op& op) const {
    return std::any_of(op.results.begin(), op.results.end(),
                       [&](ValueId id) { return is_dynamic(type(id)) && type(id).is_bounded(); });
  }

  /// A custom call that takes sizes off values or puts them on, whose operand may have none any more.
  static bool is_about_bounds(const ir::Op& op) {
    const ops::CustomCallDef* call = ops::find_custom_call(op);
    return call != nullptr && call->kind == ops::CustomCallKind::kBounds;
  }

  /// What is left must have shapes that are known.
  void check(const ir::Op& op, const ops::OpDef& def) const {
    for (const ValueId id : op.results) {
      if (!is_dynamic(type(id))) continue;
      ir::fail(
          "unsupported_type", op.location,
          fmt::format("the shape of what '{}' gives, {}, does not follow from the shapes of the arguments: where it "
                      "depends on data, give the type a bound, such as tensor<?xf32, #stablehlo.bounds<8>>",
                      op.name, ir::to_string(type(id))));
    }
    if (def.expand != nullptr && std::holds_alternative<ops::Unsupported>(def.body)) {
      ir::fail(
          "unsupported_op", op.location,
          fmt::format("'{}' is run only where its shape operands follow from the shapes of the arguments, or where "
                      "its result type has a bound, such as tensor<?xf32, #stablehlo.bounds<8>>",
                      op.name));
    }
  }

  ir::Module out_;
  ir::Function& main_;
  bool is_dynamic_;
  std::unordered_map<ValueId, ValueId> same_as_;
  std::unordered_map<ValueId, std::vector<ValueId>> parts_;
  std::unordered_map<ValueId, SmallValue> known_;
  std::unordered_map<ValueId, std::pair<ValueId, ValueId>> sums_;
  BoundedValues bounded_;  ///< values of the text whose sizes depend on data
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
