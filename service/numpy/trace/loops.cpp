// while and for: repeated while the program is traced where they are static, else loops on arrays.
#include <fmt/core.h>

#include <algorithm>

#include "service/numpy/syntax/limits.h"
#include "service/numpy/trace/loop_jumps.h"
#include "service/numpy/trace/tracer.h"

namespace meshd::numpy {
namespace {

// A loop over a static range is traced as a while from so many steps on; up to this many it is unrolled after all where
// its body needs the index.
constexpr int64_t kMostRetriedSteps = 1000;
constexpr int64_t kMostStaticWhile = 10'000;

// The loop with a body without break and continue, and the flag that a break sets; as it is where there is none.
struct PlainLoop {
  Statement loop;
  std::string broken;  // empty: the loop ends by its test or range alone
};

PlainLoop plain_loop(const Statement& loop) {
  PlainLoop out{loop, {}};
  if (!has_jumps(loop.body)) return out;
  JumpFreeBody made = without_jumps(loop);
  out.loop.body = std::move(made.body);
  out.broken = std::move(made.broken);
  return out;
}

}  // namespace

std::vector<std::string> Tracer::carried_names(const Statement& statement, const ScopeRef& scope) {
  std::vector<std::string> out;
  for (const std::string& name : assigned_names(statement.body)) {
    const auto found = scope->names.find(name);
    if (found == scope->names.end() || found->second.is<Undefined>() || found->second.is<CallableRef>()) continue;
    out.push_back(name);
  }
  return out;
}

// One pass through the body with these values; what the names have then.
std::vector<Value> Tracer::run_carried(const Statement& statement, const std::vector<std::string>& names,
                                       const std::vector<Value>& values, const ScopeRef& scope) {
  for (size_t i = 0; i < names.size(); ++i) scope->names[names[i]] = values[i];
  rest_.push_back({});
  const Flow flow = run(statement.body, 0, scope);
  rest_.pop_back();
  if (flow.kind == Flow::Kind::kReturn)
    refuse("'return' inside of a loop on arrays is not possible; assign to a name and return it behind the loop");
  std::vector<Value> out;
  for (const std::string& name : names) out.push_back(scope->names[name]);
  return out;
}

// Names have what the loop gave; those that it alone assigns have nothing.
void Tracer::leave_loop(const Statement& statement, const std::vector<std::string>& names, std::vector<Value> values,
                        const ScopeRef& scope) {
  std::set<std::string> made = assigned_names(statement.body);
  if (statement.kind == StatementKind::kFor && statement.targets[0]->kind == ExpressionKind::kName)
    made.insert(statement.targets[0]->text);
  for (const std::string& name : made) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    const auto found = scope->names.find(name);
    if (found != scope->names.end() && found->second.is<CallableRef>()) continue;
    scope->names[name] = Undefined{
        fmt::format("'{}' gets its value inside of the loop of line {}, which may run no time; give it one before",
                    name, statement.place.line)};
  }
  for (size_t i = 0; i < names.size(); ++i) scope->names[names[i]] = std::move(values[i]);
}

Flow Tracer::run_while(const Statement& statement, const ScopeRef& scope) {
  step(statement.size / 16);  // what is copied
  const PlainLoop plain = plain_loop(statement);
  const auto leave = [&] { scope->names.erase(plain.broken); };
  if (!plain.broken.empty()) scope->names[plain.broken] = false;
  for (int64_t count = 0;; ++count) {
    const Value test = evaluate(*statement.value, scope);
    set_place(statement.place);
    const bool may_have_ended = !plain.broken.empty() && scope->names[plain.broken].array() != nullptr;
    if (test.array() != nullptr || may_have_ended) {
      run_traced_while(plain.loop, plain.broken, scope);
      leave();
      return {};
    }
    if (!truth(test, "while")) break;
    if (count >= kMostStaticWhile)
      refuse(
          fmt::format("the loop has run {} times while the program is traced; let its test depend on an array", count));
    rest_.push_back({});
    const Flow flow = run(plain.loop.body, 0, scope);
    rest_.pop_back();
    if (flow.kind == Flow::Kind::kReturn) return flow;
    if (!plain.broken.empty() && scope->names[plain.broken].array() == nullptr &&
        truth(scope->names[plain.broken], "break"))
      break;
  }
  leave();
  return {};
}

// `broken`: the name of the flag that ends the loop; empty: there is none.
void Tracer::run_traced_while(const Statement& statement, const std::string& broken, const ScopeRef& scope) {
  const std::vector<std::string> names = carried_names(statement, scope);
  std::vector<Value> values;
  for (const std::string& name : names) values.push_back(scope->names[name]);
  const Names before = names_of(scope);
  std::vector<Value> made = loop(
      values, names,
      [&](const std::vector<Value>& now) {
        scope->names = before;
        for (size_t i = 0; i < names.size(); ++i) scope->names[names[i]] = now[i];
        return and_not_broken(evaluate(*statement.value, scope), broken, scope);
      },
      [&](const std::vector<Value>& now) {
        scope->names = before;
        return run_carried(statement, names, now, scope);
      });
  scope->names = before;
  leave_loop(statement, names, std::move(made), scope);
}

Value Tracer::and_not_broken(const Value& test, const std::string& broken, const ScopeRef& scope) {
  if (broken.empty()) return test;
  if (!dims_of(test).empty()) refuse("the test of a loop has to be a scalar, got " + describe(test));
  const Array goes_on = logical_not(convert(array(scope->names[broken]), DType::kBool));
  return logical_and(convert(array(test), DType::kBool), goes_on);
}

// True: the loop ended the function, or was left by break.
bool Tracer::run_unrolled(const Statement& statement, const std::string& broken, const std::vector<Value>& items,
                          const ScopeRef& scope, Flow& out) {
  for (const Value& item : items) {
    assign(*statement.targets[0], item, scope);
    rest_.push_back({});
    const bool may_have_ended = !broken.empty() && scope->names[broken].array() != nullptr;
    Flow flow = may_have_ended ? run_unless_broken(statement, broken, scope) : run(statement.body, 0, scope);
    rest_.pop_back();
    if (flow.kind == Flow::Kind::kReturn) {
      out = std::move(flow);
      return true;
    }
    if (!broken.empty() && scope->names[broken].array() == nullptr && truth(scope->names[broken], "break")) return true;
  }
  return false;
}

// The body where an earlier step may have left the loop.
Flow Tracer::run_unless_broken(const Statement& statement, const std::string& broken, const ScopeRef& scope) {
  Statement guarded;
  guarded.kind = StatementKind::kIf;
  guarded.place = statement.place;
  guarded.body = statement.body;
  return run_traced_if(guarded, logical_not(convert(array(scope->names[broken]), DType::kBool)), scope);
}

Flow Tracer::run_for(const Statement& statement, const ScopeRef& scope) {
  const Value over = evaluate(*statement.value, scope);
  set_place(statement.place);
  step(statement.size / 16);  // what is copied
  const PlainLoop plain = plain_loop(statement);
  if (!plain.broken.empty()) scope->names[plain.broken] = false;
  Flow flow = run_over(plain.loop, plain.broken, over, scope);
  scope->names.erase(plain.broken);
  return flow;
}

Flow Tracer::run_over(const Statement& statement, const std::string& broken, const Value& over, const ScopeRef& scope) {
  Flow flow;
  const auto* held = over.as<RangeRef>();
  if (held == nullptr) {
    run_unrolled(statement, broken, items_of(over, "for"), scope, flow);
    return flow;
  }
  const Range& range = **held;
  if (!range.is_static()) {
    run_counted_for(statement, broken, range.start, range, scope);
    return {};
  }
  const int64_t step = *range.step.as<int64_t>();
  const int64_t start = *range.start.as<int64_t>();
  const int64_t stop = *range.stop.as<int64_t>();
  const double count = (static_cast<double>(stop) - static_cast<double>(start)) / static_cast<double>(step);
  if (count <= static_cast<double>(kMostUnrolledSteps)) {
    run_unrolled(statement, broken, items_of(over, "for"), scope, flow);
    return flow;
  }
  // The first step is traced by itself: it gives names and their types what the steps behind it have.
  if (run_unrolled(statement, broken, {Value(start)}, scope, flow)) return flow;
  const Names before = names_of(scope);
  const State at = state();
  try {
    const Value last = run_counted_for(statement, broken, start + step, range, scope);
    assign(*statement.targets[0],
           broken.empty() ? Value(start + (stop - start - (step > 0 ? 1 : -1)) / step * step) : last, scope);
  } catch (const core::Error&) {
    if (count > static_cast<double>(kMostRetriedSteps)) throw;
    scope->names = before;
    restore(at);
    std::vector<Value> items = items_of(over, "for");
    items.erase(items.begin());
    run_unrolled(statement, broken, items, scope, flow);
  }
  return flow;
}

// Gives the index of the last iteration where a break may have ended the loop.
Value Tracer::run_counted_for(const Statement& statement, const std::string& broken, const Value& start,
                              const Range& range, const ScopeRef& scope) {
  const std::vector<std::string> names = carried_names(statement, scope);
  std::vector<Value> values;
  for (const std::string& name : names) values.push_back(scope->names[name]);
  const Names before = names_of(scope);
  EarlyEnd end;
  end.broken = static_cast<size_t>(std::find(names.begin(), names.end(), broken) - names.begin());
  std::vector<Value> made = counted_loop(
      start, range.stop, range.step, values, names,
      [&](const Value& index, const std::vector<Value>& now) {
        scope->names = before;
        assign(*statement.targets[0], index, scope);
        return run_carried(statement, names, now, scope);
      },
      broken.empty() ? nullptr : &end);
  scope->names = before;
  leave_loop(statement, names, std::move(made), scope);
  return end.index;
}

}  // namespace meshd::numpy
