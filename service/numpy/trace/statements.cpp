// Statements: each changes the names of a scope, or ends a block.
#include <fmt/core.h>

#include <algorithm>

#include "service/numpy/trace/depth.h"
#include "service/numpy/trace/tracer.h"

namespace meshd::numpy {
namespace {

void add_target(const Expression& target, std::set<std::string>& out) {
  if (target.kind == ExpressionKind::kName) out.insert(target.text);
  if (target.kind == ExpressionKind::kSubscript && target.children[0]->kind == ExpressionKind::kName)
    out.insert(target.children[0]->text);
  if (target.kind == ExpressionKind::kTuple || target.kind == ExpressionKind::kList ||
      target.kind == ExpressionKind::kStarred) {
    for (const ExpressionRef& child : target.children) add_target(*child, out);
  }
}

}  // namespace

std::set<std::string> assigned_names(const Block& block) {
  std::set<std::string> out;
  for (const Statement& statement : block) {
    if (statement.kind == StatementKind::kFunction) out.insert(statement.function->name);
    if (statement.kind == StatementKind::kAssert) continue;
    for (const ExpressionRef& target : statement.targets) add_target(*target, out);
    out.merge(assigned_names(statement.body));
    out.merge(assigned_names(statement.otherwise));
  }
  return out;
}

bool contains(const Block& block, StatementKind kind) {
  return std::any_of(block.begin(), block.end(), [&](const Statement& statement) {
    return statement.kind == kind || contains(statement.body, kind) || contains(statement.otherwise, kind);
  });
}

void Tracer::run_top(const Syntax& syntax, const ScopeRef& scope) { run(syntax.body, 0, scope); }

Flow Tracer::run(const Block& block, size_t from, const ScopeRef& scope) {
  for (size_t i = from; i < block.size(); ++i) {
    const Statement& statement = block[i];
    rest_.push_back({&block, i + 1});
    Flow flow = run_statement(statement, scope);
    rest_.pop_back();
    if (flow.kind != Flow::Kind::kNext) return flow;
  }
  return {};
}

Flow Tracer::run_statement(const Statement& statement, const ScopeRef& scope) {
  const Deeper deeper(*this);
  set_place(statement.place);
  step();
  switch (statement.kind) {
    case StatementKind::kExpression:
      evaluate(*statement.value, scope);
      return {};
    case StatementKind::kAssign: {
      const Value value = evaluate(*statement.value, scope);
      for (const ExpressionRef& target : statement.targets) assign(*target, value, scope);
      return {};
    }
    case StatementKind::kAugmentedAssign: {
      const Value before = evaluate(*statement.targets[0], scope);
      const Value value = evaluate(*statement.value, scope);
      set_place(statement.place);
      assign(*statement.targets[0], binary(statement.text, before, value), scope);
      return {};
    }
    case StatementKind::kReturn:
      return {Flow::Kind::kReturn, statement.value == nullptr ? Value() : evaluate(*statement.value, scope)};
    case StatementKind::kIf:
      return run_if(statement, scope);
    case StatementKind::kWhile:
      return run_while(statement, scope);
    case StatementKind::kFor:
      return run_for(statement, scope);
    case StatementKind::kFunction:
      run_function(statement.function, scope);
      return {};
    case StatementKind::kAssert: {
      const Value test = evaluate(*statement.value, scope);
      set_place(statement.place);
      if (truth(test, "assert")) return {};
      end_trace(statement, "an assert does not hold", statement.targets.empty() ? nullptr : statement.targets[0],
                scope);
    }
    case StatementKind::kRaise:
      set_place(statement.place);
      end_trace(statement, "the program raises " + statement.text, statement.value, scope);
    case StatementKind::kPass:
      return {};
    case StatementKind::kBreak:
    case StatementKind::kContinue:  // loop_jumps has rewritten those of loops
      refuse("'break' and 'continue' belong in loops");
  }
  return {};
}

void Tracer::end_trace(const Statement& statement, std::string what, const ExpressionRef& said, const ScopeRef& scope) {
  if (said != nullptr) {
    const Value message = evaluate(*said, scope);
    // An assert of the library says what its function wants, at the caller's place.
    if (const auto* text = message.as<std::string>()) what = is_place_kept() ? *text : what + ": " + *text;
  }
  set_place(statement.place);
  refuse(what);
}

void Tracer::run_function(const FunctionRef& function, const ScopeRef& scope) {
  Value made = user_function(function, scope);
  for (auto decorator = function->decorators.rbegin(); decorator != function->decorators.rend(); ++decorator) {
    const Value with = evaluate(**decorator, scope);
    set_place((*decorator)->place);
    made = call(with, {made});
  }
  scope->names[function->name] = std::move(made);
}

void Tracer::assign(const Expression& target, const Value& value, const ScopeRef& scope) {
  set_place(target.place);
  if (target.kind == ExpressionKind::kName) {
    scope->names[target.text] = value;
    return;
  }
  if (target.kind == ExpressionKind::kSubscript) return assign_item(target, value, scope);
  if (target.kind == ExpressionKind::kAttribute) refuse("attributes cannot be assigned");
  const std::vector<Value> items = items_of(value, "unpacking");
  const size_t count = target.children.size();
  const auto starred = std::find_if(target.children.begin(), target.children.end(),
                                    [](const ExpressionRef& child) { return child->kind == ExpressionKind::kStarred; });
  if (starred == target.children.end() ? items.size() != count : items.size() + 1 < count) {
    set_place(target.place);
    refuse(fmt::format("there are {} values for {} names", items.size(), count));
  }
  size_t at = 0;
  for (const ExpressionRef& child : target.children) {
    if (child->kind != ExpressionKind::kStarred) {
      assign(*child, items[at++], scope);
      continue;
    }
    const size_t taken = items.size() + 1 - count;
    std::vector<Value> rest(items.begin() + static_cast<int64_t>(at), items.begin() + static_cast<int64_t>(at + taken));
    assign(*child->children[0], list_of(std::move(rest), region_depth()), scope);
    at += taken;
  }
}

void Tracer::assign_item(const Expression& target, const Value& value, const ScopeRef& scope) {
  const Value holder = evaluate(*target.children[0], scope);
  const Value index = evaluate(*target.children[1], scope);
  set_place(target.place);
  const auto check_region = [&](int region) {
    if (region != region_depth())
      refuse("a list or dict from outside is changed inside of an if or a loop on arrays; assign a new one to a name");
  };
  const bool is_container = value.sequence() != nullptr || value.is<DictRef>();
  if ((holder.is<SequenceRef>() && value.is<SequenceRef>() && *holder.as<SequenceRef>() == *value.as<SequenceRef>()) ||
      (holder.is<DictRef>() && value.is<DictRef>() && *holder.as<DictRef>() == *value.as<DictRef>()))
    refuse("a list or dict cannot be an item of itself");
  const auto check_held = [&](const Extent& extent, bool adds) {
    if (extent.held && (adds || is_container))
      refuse("a list or dict that is an element of another gets no new items, lists or dicts; make it first");
  };
  if (const auto* dict = holder.as<DictRef>()) {
    check_region((*dict)->region);
    const std::string key = dict_key(index);
    if (Value* const found = find_item(*dict, key)) {
      check_held((*dict)->extent, false);
      if (is_container) hold((*dict)->extent, value);
      *found = value;
      return;
    }
    check_held((*dict)->extent, true);
    check_key(key);
    hold((*dict)->extent, value);
    (*dict)->items.emplace_back(key, value);
    return;
  }
  const auto* list = holder.as<SequenceRef>();
  if (list != nullptr && !(*list)->is_tuple) {
    check_region((*list)->region);
    const auto size = static_cast<int64_t>((*list)->items.size());
    int64_t at = to_int(index, "an index of a list");
    if (at < -size || at >= size) refuse(fmt::format("index {} is outside of {}", at, describe(holder)));
    if (at < 0) at += size;
    check_held((*list)->extent, false);
    if (is_container) hold((*list)->extent, value);
    (*list)->items[static_cast<size_t>(at)] = value;
    return;
  }
  if (holder.array() != nullptr) refuse("arrays are not changed in place; write x = x.at[index].set(value)");
  refuse("items of " + describe(holder) + " cannot be assigned");
}

Flow Tracer::run_if(const Statement& statement, const ScopeRef& scope) {
  const Value test = evaluate(*statement.value, scope);
  set_place(statement.place);
  const Array* held = test.array();
  if (held == nullptr) return run(truth(test, "if") ? statement.body : statement.otherwise, 0, scope);
  if (held->rank() != 0)
    refuse("the test of 'if' has to be a scalar, got " + describe(test) +
           "; jnp.any, jnp.all and jnp.where are for arrays");
  return run_traced_if(statement, convert(*held, DType::kBool), scope);
}

// Runs what follows the blocks that are open in this function; used inside of a branch that may return.
Flow Tracer::run_rest(const ScopeRef& scope) {
  const std::vector<Rest> rest = rest_;
  Flow flow;
  for (size_t i = rest.size(); i-- > 0 && flow.kind == Flow::Kind::kNext;) {
    if (rest[i].block == nullptr)
      refuse(
          "'return' inside of a loop, below an if on an array, is not possible; assign to a name and return it behind "
          "the loop");
    rest_.assign(rest.begin(), rest.begin() + static_cast<int64_t>(i));
    flow = run(*rest[i].block, rest[i].from, scope);
  }
  rest_ = rest;
  return flow;
}

Flow Tracer::run_traced_if(const Statement& statement, const Array& test, const ScopeRef& scope) {
  const Names before = names_of(scope);
  const Place place = this->place();
  if (contains(statement.body, StatementKind::kReturn) || contains(statement.otherwise, StatementKind::kReturn)) {
    const auto side = [&](const Block& block) {
      return [this, &block, &scope, &before] {
        scope->names = before;
        Flow flow = run(block, 0, scope);
        if (flow.kind == Flow::Kind::kNext) flow = run_rest(scope);
        scope->names = before;
        return std::vector<Value>{flow.value};
      };
    };
    std::vector<Value> made = branch(test, {side(statement.body), side(statement.otherwise)}, {"what is returned"});
    return {Flow::Kind::kReturn, std::move(made[0])};
  }
  std::set<std::string> names = assigned_names(statement.body);
  names.merge(assigned_names(statement.otherwise));
  const std::vector<std::string> all(names.begin(), names.end());
  const auto side = [&](const Block& block) {
    return [this, &block, &scope, &before, &all, &statement] {
      scope->names = before;
      run(block, 0, scope);
      std::vector<Value> out;
      for (const std::string& name : all) {
        const auto found = scope->names.find(name);
        out.push_back(
            found != scope->names.end()
                ? found->second
                : Value(Undefined{fmt::format(
                      "'{}' has a value in one branch of the if of line {} only; give it one in the other, or before",
                      name, statement.place.line)}));
      }
      return out;
    };
  };
  const std::vector<Value> made = branch(test, {side(statement.body), side(statement.otherwise)}, all);
  scope->names = before;
  for (size_t i = 0; i < all.size(); ++i) scope->names[all[i]] = made[i];
  set_place(place);
  return {};
}

}  // namespace meshd::numpy
