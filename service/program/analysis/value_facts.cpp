#include "service/program/analysis/value_facts.h"

#include <fmt/core.h>

#include <algorithm>

#include "service/ops/op_def.h"

namespace meshd::program {
namespace {

// Each pass over the program follows what varies through one more iteration of its loops.
constexpr int kMostPasses = 1000;

}  // namespace

bool has_cotangents(const ir::Type& type) {
  return type.is_tensor() && (tensor::is_float(type.dtype()) || tensor::is_complex(type.dtype()));
}

ValueFacts::ValueFacts(const ir::Function& function, const std::vector<ir::ValueId>& varied)
    : function_(function), varied_(function.values.size()) {
  for (const ir::ValueId id : varied) vary(id);
  for (int pass = 0; pass == 0 || changed_; ++pass) {
    if (pass == kMostPasses) {
      ir::fail("unsupported_op", function.location,
               fmt::format("the derivative of loops that hand values on through more than {} others is not supported",
                           kMostPasses));
    }
    changed_ = false;
    visit(function.body.ops);
  }
}

std::optional<int64_t> ValueFacts::known(ir::ValueId id) const {
  const auto found = known_.find(id);
  if (found == known_.end() || function_.type_of(id).rank() != 0) return std::nullopt;
  return ops::integers_of(function_.type_of(id), *found->second).at(0);
}

void ValueFacts::copy(ir::ValueId from, ir::ValueId to) {
  if (varied_.size() <= static_cast<size_t>(to)) varied_.resize(static_cast<size_t>(to) + 1);
  varied_[static_cast<size_t>(to)] = is_varied(from);
  know(to, from);
  if (is_from_integers(from)) from_integers_.insert(to);
}

void ValueFacts::add(const std::vector<ir::Op>& ops) {
  varied_.resize(std::max(varied_.size(), function_.values.size()));
  do {
    changed_ = false;
    visit(ops);
  } while (changed_);
}

void ValueFacts::vary(ir::ValueId id) {
  if (is_varied(id) || !has_cotangents(function_.type_of(id))) return;
  varied_[static_cast<size_t>(id)] = true;
  changed_ = true;
}

void ValueFacts::know(ir::ValueId id, ir::ValueId like) {
  const auto found = known_.find(like);
  if (found != known_.end()) known_.emplace(id, found->second);
}

void ValueFacts::visit(const std::vector<ir::Op>& ops) {
  for (const ir::Op& op : ops) {
    if (op.regions.empty()) {
      visit_plain(op);
      continue;
    }
    switch (ops::role_of(ops::op(op.code).body).value_or(ops::Structural::kReturn)) {
      case ops::Structural::kWhile:
        visit_while(op);
        break;
      case ops::Structural::kCase:
      case ops::Structural::kIf:
        visit_regions(op);
        break;
      case ops::Structural::kManualComputation:
        visit_manual(op);
        break;
      default:
        visit_plain(op);
    }
  }
}

void ValueFacts::visit_while(const ir::Op& op) {
  const ir::Region& condition = op.regions[0];
  const ir::Region& body = op.regions[1];
  const std::vector<ir::ValueId>& returned = body.ops.back().operands;
  for (size_t i = 0; i < op.operands.size(); ++i) {
    if (is_varied(op.operands[i]) || is_varied(returned[i])) vary(body.arguments[i]);
    if (is_varied(body.arguments[i])) vary(op.results[i]);
    // What the body hands on unchanged is what it was in front of the loop.
    if (returned[i] != body.arguments[i]) continue;
    know(body.arguments[i], op.operands[i]);
    know(condition.arguments[i], op.operands[i]);
    know(op.results[i], op.operands[i]);
  }
  visit(condition.ops);
  visit(body.ops);
}

void ValueFacts::visit_regions(const ir::Op& op) {
  for (const ir::Region& region : op.regions) {
    visit(region.ops);
    const std::vector<ir::ValueId>& returned = region.ops.back().operands;
    for (size_t i = 0; i < returned.size(); ++i) {
      if (is_varied(returned[i])) vary(op.results[i]);
    }
  }
}

void ValueFacts::visit_manual(const ir::Op& op) {
  for (size_t i = 0; i < op.operands.size(); ++i) {
    if (is_varied(op.operands[i])) vary(op.regions[0].arguments[i]);
  }
  visit_regions(op);
}

void ValueFacts::visit_plain(const ir::Op& op) {
  fold(op);
  const ops::Derivative& derivative = ops::op(op.code).derivative;
  if (derivative.is_zero) return;
  // One with a derivative that makes a value with cotangents of an integer converts it.
  if (derivative.vjp != nullptr && op.operands.size() == 1 && op.results.size() == 1 &&
      has_cotangents(function_.type_of(op.results[0]))) {
    const ir::Type& from = function_.type_of(op.operands[0]);
    if (from.is_tensor() && tensor::is_integer(from.dtype())) from_integers_.insert(op.results[0]);
  }
  if (!std::any_of(op.operands.begin(), op.operands.end(), [&](ir::ValueId id) { return is_varied(id); })) return;
  for (const ir::ValueId id : op.results) vary(id);
}

// Integers alone: they count loops.
void ValueFacts::fold(const ir::Op& op) {
  const auto is_integer = [&](ir::ValueId id) {
    const ir::Type& type = function_.type_of(id);
    return type.is_tensor() && (tensor::is_integer(type.dtype()) || type.dtype() == tensor::DType::kBool);
  };
  if (op.results.size() != 1 || !op.regions.empty() || !is_integer(op.results[0]) || known_.contains(op.results[0]))
    return;
  std::vector<ops::SmallValue> operands;
  for (const ir::ValueId id : op.operands) {
    const auto found = known_.find(id);
    if (found == known_.end()) return;
    operands.push_back(found->second);
  }
  const ops::OpInstance instance(function_, op);
  if (const auto values = ops::evaluate_small(ops::op(op.code), instance.view, operands))
    known_.emplace(op.results[0], values->at(0));
}

}  // namespace meshd::program
