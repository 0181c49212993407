#include "service/program/gradient/backward.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>

#include "service/ir/region_utils.h"
#include "service/ir/walk.h"
#include "service/ops/linalg/custom_calls.h"
#include "service/program/gradient/dead_ops.h"

namespace meshd::program {

void Backward::run(std::vector<ir::Op>& forward, Cotangents& sums, std::vector<ir::Op>& out) {
  std::vector<std::pair<size_t, std::vector<ir::Op>>> inserted;
  for (size_t i = forward.size(); i-- > 0;) {
    ir::Op& op = forward[i];
    const auto has_sum = [&](ir::ValueId id) { return facts_.is_varied(id) && sums.contains(id); };
    if (std::none_of(op.results.begin(), op.results.end(), has_sum)) continue;
    switch (ops::role_of(ops::op(op.code).body).value_or(ops::Structural::kReturn)) {
      case ops::Structural::kWhile: {
        std::vector<ir::Op> before = loop(op, sums, out);
        if (!before.empty()) inserted.emplace_back(i, std::move(before));
        break;
      }
      case ops::Structural::kCase:
      case ops::Structural::kIf:
        branches(op, sums, out);
        break;
      case ops::Structural::kManualComputation:
        manual(op, sums, out);
        break;
      default:
        plain(op, sums, out);
    }
  }
  if (inserted.empty()) return;
  std::vector<ir::Op> all;
  for (size_t i = 0; i < forward.size(); ++i) {
    if (!inserted.empty() && inserted.back().first == i) {
      std::move(inserted.back().second.begin(), inserted.back().second.end(), std::back_inserter(all));
      inserted.pop_back();
    }
    all.push_back(std::move(forward[i]));
  }
  forward = std::move(all);
}

void Backward::plain(const ir::Op& op, Cotangents& sums, std::vector<ir::Op>& out) {
  const ops::CustomCallDef* target = ops::find_custom_call(op);
  const ops::Derivative& derivative = target != nullptr ? target->derivative : ops::op(op.code).derivative;
  if (derivative.is_zero || as_others(op, derivative, sums, out)) return;
  if (derivative.vjp == nullptr) {
    const std::string name = ir::string_or(op.attributes, "call_target_name", "");
    ir::fail("unsupported_op", op.location,
             fmt::format("the derivative of '{}'{} is not supported", op.name,
                         name.empty() ? "" : " of target '" + name + "'"));
  }
  const ops::OpInstance instance(function_, op);
  ops::Writer writer(function_, out, op);
  ops::Vjp vjp{instance.view, op, {}, {}, {}, {}, writer};
  for (const ir::ValueId id : op.results) {
    const auto found = sums.find(id);
    vjp.cotangents.push_back(found == sums.end() ? ir::kNoValue : found->second);
  }
  for (const ir::ValueId id : op.operands) {
    const auto found = sums.find(id);
    vjp.sums.push_back(found == sums.end() ? ir::kNoValue : found->second);
    vjp.wanted.push_back(facts_.is_varied(id));
    vjp.from_integers.push_back(facts_.is_from_integers(id));
  }
  // An operand that occurs twice must not be updated in place: the second one would not see the first.
  for (size_t i = 0; i < op.operands.size(); ++i) {
    if (std::count(op.operands.begin(), op.operands.end(), op.operands[i]) > 1) vjp.sums[i] = ir::kNoValue;
  }
  const ops::Contributions parts = derivative.vjp(vjp);
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].value == ir::kNoValue || !vjp.wanted[i]) continue;
    // A rule that was given no sum returns a part, whatever it says.
    const bool replaces = parts[i].has_sum && vjp.sums[i] != ir::kNoValue;
    ops::Contribution part = parts[i];
    part.has_sum = replaces;
    give(sums, op.operands[i], part, writer);
  }
}

bool Backward::as_others(const ir::Op& op, const ops::Derivative& derivative, Cotangents& sums,
                         std::vector<ir::Op>& out) {
  if (derivative.as_others == nullptr) return false;
  ops::OpInstance instance(function_, op);
  instance.view.op = &op;
  std::vector<ir::Op> others, tail;
  ops::Writer writer(function_, others, op);
  const auto results = derivative.as_others(instance.view, writer);
  if (!results) return false;
  facts_.add(others);
  ops::Writer behind(function_, tail, op);
  for (size_t i = 0; i < op.results.size(); ++i) {
    const auto found = sums.find(op.results[i]);
    if (found != sums.end() && facts_.is_varied(results->at(i)))
      give(sums, results->at(i), ops::Term{&behind, found->second}, behind);
  }
  run(others, sums, tail);
  std::move(others.begin(), others.end(), std::back_inserter(out));
  std::move(tail.begin(), tail.end(), std::back_inserter(out));
  return true;
}

void Backward::branches(const ir::Op& op, Cotangents& sums, std::vector<ir::Op>& out) {
  std::vector<const ir::Region*> regions;
  for (const ir::Region& region : op.regions) regions.push_back(&region);
  const std::vector<ir::ValueId> read = captured(regions);
  if (read.empty()) return;
  std::vector<ir::Region> made;
  for (const ir::Region& region : op.regions) {
    std::unordered_map<ir::ValueId, ir::ValueId> names;
    ir::Region& branch = made.emplace_back();
    branch.ops = copy(region.ops, names);
    ir::Op terminator = std::move(branch.ops.back());
    branch.ops.pop_back();
    std::vector<ir::Op> tail;
    ops::Writer writer(function_, tail, op);
    Cotangents inner;
    for (size_t i = 0; i < op.results.size(); ++i) {
      const auto found = sums.find(op.results[i]);
      if (found == sums.end() || !facts_.is_varied(terminator.operands[i])) continue;
      give(inner, terminator.operands[i], ops::Term{&writer, found->second}, writer);
    }
    run(branch.ops, inner, tail);
    terminator.operands.clear();
    for (const ir::ValueId id : read) terminator.operands.push_back(sum_or_zero(inner, id, writer));
    std::move(tail.begin(), tail.end(), std::back_inserter(branch.ops));
    branch.ops.push_back(std::move(terminator));
    clean(branch, op);
  }
  ops::Writer writer(function_, out, op);
  const std::vector<ir::ValueId> results =
      writer.create(op.name, op.operands, function_.types_of(read), {}, std::move(made));
  for (size_t i = 0; i < read.size(); ++i) give(sums, read[i], ops::Term{&writer, results[i]}, writer);
}

void Backward::give(Cotangents& sums, ir::ValueId id, ops::Contribution part, ops::Writer& writer) {
  const auto [found, is_new] = sums.emplace(id, part.value);
  if (is_new) return;
  found->second = part.has_sum ? part.value : writer.add("stablehlo.add", {found->second, part.value});
}

ir::ValueId Backward::sum_or_zero(const Cotangents& sums, ir::ValueId id, ops::Writer& writer) {
  const auto found = sums.find(id);
  return found == sums.end() ? writer.splat(ir::Type(function_.type_of(id)), 0) : found->second;
}

std::vector<ir::Op> Backward::copy(const std::vector<ir::Op>& ops,
                                   std::unordered_map<ir::ValueId, ir::ValueId>& names) {
  std::vector<ir::Op> out = ops;
  const auto renew = [&](ir::ValueId id) {
    const ir::ValueId made = function_.add_value(ir::Type(function_.type_of(id)));
    facts_.copy(id, made);
    names[id] = made;
  };
  for (const ir::Op& op : out) {
    ir::walk(op, [&](const ir::Op& inner) {
      for (const ir::ValueId id : inner.results) renew(id);
      for (const ir::Region& region : inner.regions) {
        for (const ir::ValueId id : region.arguments) renew(id);
      }
    });
  }
  for (ir::Op& op : out) ir::rename_values(op, names);
  return out;
}

std::vector<ir::ValueId> Backward::captured(const std::vector<const ir::Region*>& regions) const {
  std::vector<ir::ValueId> out = ir::used_values_defined_above(regions);
  std::erase_if(out, [&](ir::ValueId id) { return !facts_.is_varied(id); });
  return out;
}

void Backward::clean(ir::Region& region, const ir::Op& source) const {
  remove_dead_ops(function_, region, UnreadEffects::kDropped);
  const ir::Op* effect = ir::first_op(region, [&](const ir::Op& op) { return has_effect(function_, op); });
  if (effect == nullptr) return;
  ir::fail("unsupported_op", effect->location,
           fmt::format("the derivative of '{}' needs what '{}' within it gives, and an effect must not happen twice",
                       source.name, effect->name));
}

}  // namespace meshd::program
