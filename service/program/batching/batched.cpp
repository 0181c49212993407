#include "service/program/batching/batched.h"

#include <algorithm>
#include <unordered_map>

#include "service/ir/region_utils.h"
#include "service/ir/walk.h"
#include "service/ops/checks.h"
#include "service/ops/collective/sdy_collectives.h"
#include "service/ops/linalg/custom_calls.h"
#include "service/ops/rewrites/batching.h"
#include "service/ops/rewrites/derivative.h"
#include "service/program/analysis/value_facts.h"

namespace meshd::program {
namespace {

// Ops that may be written, attempts at the bodies of loops included.
constexpr int64_t kMostOps = 500'000;

/// Thrown and caught here: the program cannot be written over a batch.
struct NoRule {};

class Batcher {
 public:
  Batcher(ir::Function& function, int64_t size) : function_(function), size_(size) {}

  void run_main(const std::vector<bool>& batched) {
    ir::Region before = std::move(function_.body);
    ir::Region made;
    for (size_t i = 0; i < before.arguments.size(); ++i) {
      const ir::ValueId id = before.arguments[i];
      define_argument(made, id, batched[i]);
      function_.arguments[i].type = function_.type_of(made.arguments.back());
      function_.arguments[i].sharding.reset();
    }
    run(before.ops, made.ops);
    ir::Op terminator = before.ops.back();
    ops::Writer writer(function_, made.ops, terminator);
    for (size_t i = 0; i < terminator.operands.size(); ++i) {
      terminator.operands[i] = over_batch(terminator.operands[i], writer);
      function_.results[i].type = function_.type_of(terminator.operands[i]);
      function_.results[i].sharding.reset();
    }
    made.ops.push_back(std::move(terminator));
    function_.body = std::move(made);
  }

 private:
  /// A value in the rewritten program.
  struct Entry {
    ir::ValueId id = ir::kNoValue;
    bool is_batched = false;
  };
  using Flags = std::vector<bool>;

  [[nodiscard]] Entry entry(ir::ValueId id) const {
    const auto found = entries_.find(id);
    if (found == entries_.end()) throw NoRule{};
    return found->second;
  }
  [[nodiscard]] bool is_batched(ir::ValueId id) const { return entry(id).is_batched; }

  ir::Type type_over_batch(ir::ValueId id) const {
    const ir::Type& type = function_.type_of(id);
    if (!type.is_tensor()) throw NoRule{};
    return ops::with_dims(type, ops::with_front(size_, type.dims()));
  }

  void define_argument(ir::Region& region, ir::ValueId id, bool batched) {
    const ir::Type type = batched ? type_over_batch(id) : ir::Type(function_.type_of(id));
    region.arguments.push_back(function_.add_value(type));
    entries_[id] = {region.arguments.back(), batched};
  }

  /// The value with the batch dimension, repeated where it has none.
  ir::ValueId over_batch(ir::ValueId id, ops::Writer& writer) {
    const Entry now = entry(id);
    if (now.is_batched) return now.id;
    if (!function_.type_of(id).is_tensor()) throw NoRule{};
    return ops::repeated_over_batch(writer, now.id, size_);
  }

  /// All ops but the terminator.
  void run(const std::vector<ir::Op>& ops, std::vector<ir::Op>& out) {
    for (size_t i = 0; i + 1 < ops.size(); ++i) {
      if (++op_count_ > kMostOps) throw NoRule{};
      run_op(ops[i], out);
    }
  }

  void run_op(const ir::Op& op, std::vector<ir::Op>& out) {
    switch (ops::role_of(ops::op(op.code).body).value_or(ops::Structural::kReturn)) {
      case ops::Structural::kWhile:
        return run_while(op, out);
      case ops::Structural::kCase:
      case ops::Structural::kIf:
        return is_batched(op.operands[0]) ? select_branches(op, out) : run_branches(op, out);
      default:
        run_plain(op, out);
    }
  }

  /// The op with values of its own in its regions, and what is read from around them under its new name.
  ir::Op renewed(const ir::Op& op) {
    ir::Op out = op;
    if (op.regions.empty()) return out;
    std::unordered_map<ir::ValueId, ir::ValueId> names;
    for (const ir::ValueId id : ir::used_values_defined_above(op.regions)) {
      if (is_batched(id)) throw NoRule{};
      names[id] = entry(id).id;
    }
    const auto renew = [&](ir::ValueId id) { names[id] = function_.add_value(ir::Type(function_.type_of(id))); };
    for (const ir::Region& region : op.regions) {
      for (const ir::ValueId id : region.arguments) renew(id);
      ir::walk(region, [&](const ir::Op& inner) {
        for (const ir::ValueId id : inner.results) renew(id);
        for (const ir::Region& nested : inner.regions) {
          for (const ir::ValueId id : nested.arguments) renew(id);
        }
      });
    }
    for (ir::Region& region : out.regions) {
      for (ir::ValueId& id : region.arguments) id = names[id];
      for (ir::Op& inner : region.ops) ir::rename_values(inner, names);
    }
    return out;
  }

  void run_plain(const ir::Op& op, std::vector<ir::Op>& out) {
    const ops::OpDef& def = ops::op(op.code);
    ir::Op source = renewed(op);
    std::vector<ir::ValueId> operands;
    Flags flags;
    for (const ir::ValueId id : op.operands) {
      operands.push_back(entry(id).id);
      flags.push_back(entry(id).is_batched);
    }
    const ops::OpInstance instance(function_, source);
    if (ops::has_effect(def, instance.view) || def.is_random) throw NoRule{};
    if (std::find(flags.begin(), flags.end(), true) == flags.end()) {
      for (ir::ValueId& id : source.results) {
        const ir::ValueId made = function_.add_value(ir::Type(function_.type_of(id)));
        entries_[id] = {made, false};
        id = made;
      }
      source.operands = std::move(operands);
      out.push_back(std::move(source));
      return;
    }
    // These are of the dimensions that the op had.
    std::erase_if(source.attributes, [](const ir::NamedAttribute& entry) {
      return entry.name == "sdy.sharding" || entry.name == "sdy.sharding_rule" || entry.name == "mhlo.sharding";
    });
    const ops::CustomCallDef* target = ops::find_custom_call(source);
    ops::BatchFn rule = target != nullptr ? target->batch : def.batch;
    const ops::Body body = ops::body_of(def, instance.view);
    if (rule == nullptr && std::holds_alternative<ops::ScalarMath>(body)) rule = ops::batch_pointwise;
    if (rule == nullptr) throw NoRule{};
    ops::Writer writer(function_, out, source);
    const auto results = rule({instance.view, source, std::move(operands), std::move(flags), size_, writer});
    if (!results) throw NoRule{};
    for (size_t i = 0; i < op.results.size(); ++i) entries_[op.results[i]] = {results->at(i), true};
  }

  /// A condition that is the same for all entries: the branches give batches where one of them does.
  void run_branches(const ir::Op& op, std::vector<ir::Op>& out) {
    std::vector<ir::Region> made(op.regions.size());
    Flags flags(op.results.size(), false);
    for (size_t r = 0; r < op.regions.size(); ++r) {
      run(op.regions[r].ops, made[r].ops);
      const std::vector<ir::ValueId>& returned = op.regions[r].ops.back().operands;
      for (size_t i = 0; i < returned.size(); ++i) flags[i] = flags[i] || is_batched(returned[i]);
    }
    for (size_t r = 0; r < op.regions.size(); ++r) end_region(op.regions[r].ops.back(), flags, made[r]);
    define_results(op, {entry(op.operands[0]).id}, flags, std::move(made), out);
  }

  /// The terminator, which gives batches where `flags` says so.
  void end_region(const ir::Op& terminator, const Flags& flags, ir::Region& region) {
    ir::Op made = terminator;
    ops::Writer writer(function_, region.ops, terminator);
    for (size_t i = 0; i < made.operands.size(); ++i)
      made.operands[i] = flags[i] ? over_batch(terminator.operands[i], writer) : entry(terminator.operands[i]).id;
    region.ops.push_back(std::move(made));
  }

  void define_results(const ir::Op& op, std::vector<ir::ValueId> operands, const Flags& flags,
                      std::vector<ir::Region> regions, std::vector<ir::Op>& out) {
    std::vector<ir::Type> types;
    for (size_t i = 0; i < op.results.size(); ++i)
      types.push_back(flags[i] ? type_over_batch(op.results[i]) : ir::Type(function_.type_of(op.results[i])));
    ops::Writer writer(function_, out, op);
    const std::vector<ir::ValueId> results = writer.create(op.name, std::move(operands), types, {}, std::move(regions));
    for (size_t i = 0; i < op.results.size(); ++i) entries_[op.results[i]] = {results[i], flags[i]};
  }

  /// The value of `then` for entries whose `where` holds.
  ir::ValueId selected(ir::ValueId where, ir::ValueId then, ir::ValueId otherwise, ops::Writer& writer) {
    const ir::Type type = writer.type(then);
    const ir::ValueId shaped = type.rank() == 1 ? where : writer.broadcast(where, type.dims(), {0});
    return writer.add("stablehlo.select", {shaped, then, otherwise});
  }

  /// A branch for all entries. What it reads has no cotangents from entries that chose another branch, as in JAX: a
  /// slope of infinity there would make them NaN.
  void run_selected(const ir::Region& region, ir::ValueId where, ops::Writer& writer, std::vector<ir::Op>& out) {
    const ir::Region* const regions[] = {&region};
    std::unordered_map<ir::ValueId, Entry> before;
    for (const ir::ValueId id : ir::used_values_defined_above(regions)) {
      const Entry now = entry(id);
      if (!now.is_batched || !has_cotangents(function_.type_of(id))) continue;
      before.emplace(id, now);
      const ir::Type type = writer.type(now.id);
      const ir::ValueId masked = selected(where, now.id, writer.splat(type, 0), writer);
      const ir::Attribute target{ir::StringAttr{std::string(ops::kDifferentiatedAs)}};
      entries_[id].id =
          writer.create("stablehlo.custom_call", {now.id, masked}, {type}, {{"call_target_name", target}}).at(0);
    }
    run(region.ops, out);
    for (const auto& [id, entry] : before) entries_[id] = entry;
  }

  /// A condition of its own for each entry: all branches are computed. An index that is none of a branch's is the
  /// last's.
  void select_branches(const ir::Op& op, std::vector<ir::Op>& out) {
    ops::Writer writer(function_, out, op);
    const ops::Term index{&writer, entry(op.operands[0]).id};
    const bool is_bool = index.dtype() == tensor::DType::kBool;
    std::vector<ir::ValueId> chosen;
    for (size_t r = 0; r + 1 < op.regions.size(); ++r)
      chosen.push_back(is_bool ? index.id : ops::compare(index, "EQ", index.number(static_cast<double>(r))).id);
    for (size_t r = 0; r < chosen.size(); ++r) run_selected(op.regions[r], chosen[r], writer, out);
    ops::Term none{&writer, writer.splat(ir::Type::of({tensor::DType::kBool, {size_}}), 1)};
    for (const ir::ValueId id : chosen) none = ops::select({&writer, id}, none.number(0), none);
    run_selected(op.regions.back(), none.id, writer, out);
    for (size_t i = 0; i < op.results.size(); ++i) {
      ir::ValueId value = over_batch(op.regions.back().ops.back().operands[i], writer);
      for (size_t r = op.regions.size() - 1; r-- > 0;)
        value = selected(chosen[r], over_batch(op.regions[r].ops.back().operands[i], writer), value, writer);
      entries_[op.results[i]] = {value, true};
    }
  }

  void run_while(const ir::Op& op, std::vector<ir::Op>& out) {
    const ir::Region& condition = op.regions[0];
    const ir::Region& body = op.regions[1];
    Flags flags;
    for (const ir::ValueId id : op.operands) flags.push_back(is_batched(id));
    // What is carried becomes batched where the body gives a batch for it, until nothing changes.
    for (;;) {
      ir::Region made_condition = with_arguments(condition, flags);
      run(condition.ops, made_condition.ops);
      const bool own_conditions = is_batched(condition.ops.back().operands[0]);
      if (own_conditions && std::find(flags.begin(), flags.end(), false) != flags.end()) {
        flags.assign(flags.size(), true);
        continue;
      }
      if (own_conditions) {
        any_of(condition.ops.back(), made_condition);
      } else {
        end_region(condition.ops.back(), {false}, made_condition);
      }
      ir::Region made = with_arguments(body, flags);
      ir::ValueId goes_on = ir::kNoValue;
      if (own_conditions) {
        for (size_t i = 0; i < flags.size(); ++i) entries_[condition.arguments[i]] = {made.arguments[i], true};
        run(condition.ops, made.ops);
        goes_on = entry(condition.ops.back().operands[0]).id;
      }
      run(body.ops, made.ops);
      Flags after = flags;
      for (size_t i = 0; i < flags.size(); ++i) after[i] = flags[i] || is_batched(body.ops.back().operands[i]);
      if (after != flags) {
        flags = std::move(after);
        continue;
      }
      if (own_conditions) {
        keep_entries_that_ended(body, goes_on, made);
      } else {
        end_region(body.ops.back(), flags, made);
      }
      ops::Writer writer(function_, out, op);
      std::vector<ir::ValueId> operands;
      for (size_t i = 0; i < op.operands.size(); ++i)
        operands.push_back(flags[i] ? over_batch(op.operands[i], writer) : entry(op.operands[i]).id);
      std::vector<ir::Region> regions;
      regions.push_back(std::move(made_condition));
      regions.push_back(std::move(made));
      return define_results(op, std::move(operands), flags, std::move(regions), out);
    }
  }

  ir::Region with_arguments(const ir::Region& region, const Flags& flags) {
    ir::Region out;
    for (size_t i = 0; i < flags.size(); ++i) define_argument(out, region.arguments[i], flags[i]);
    return out;
  }

  /// The condition of a loop: whether that of any entry holds.
  void any_of(const ir::Op& terminator, ir::Region& region) {
    ops::Writer writer(function_, region.ops, terminator);
    const ir::Type scalar = ir::Type::of({tensor::DType::kBool, {}});
    std::vector<ir::Region> regions;
    regions.push_back(writer.reducer("stablehlo.or", scalar));
    ir::Op made = terminator;
    made.operands = writer.add("stablehlo.reduce", {entry(terminator.operands[0]).id, writer.zero(scalar.tensor)},
                               {{"dimensions", ir::int_array_attr({0})}}, {scalar}, std::move(regions));
    region.ops.push_back(std::move(made));
  }

  void keep_entries_that_ended(const ir::Region& body, ir::ValueId goes_on, ir::Region& made) {
    ir::Op terminator = body.ops.back();
    ops::Writer writer(function_, made.ops, terminator);
    for (size_t i = 0; i < terminator.operands.size(); ++i) {
      const ir::ValueId next = over_batch(body.ops.back().operands[i], writer);
      terminator.operands[i] = selected(goes_on, next, made.arguments[i], writer);
    }
    made.ops.push_back(std::move(terminator));
  }

  ir::Function& function_;
  int64_t size_;
  int64_t op_count_ = 0;
  std::unordered_map<ir::ValueId, Entry> entries_;
};

}  // namespace

std::optional<ir::Module> batched(const ir::Module& flat, const std::vector<bool>& batched, int64_t size) {
  ir::Module out = flat;
  ops::drop_call_edges(out);
  out.inlined_calls.clear();
  try {
    Batcher(out.main(), size).run_main(batched);
  } catch (const NoRule&) {
    return std::nullopt;
  }
  return out;
}

}  // namespace meshd::program
