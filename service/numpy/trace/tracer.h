// The tracer: walks the syntax of a program with static values and arrays, and writes the function that it computes.
//
// A statement or expression whose values are static is done at once, as Python would. Control flow on arrays becomes
// stablehlo.if and stablehlo.while. One tracer for one trace; one thread. Functions of the tables get it to compute
// with.
//
// Example: def f(x, n): for i in range(n): x = x * 2 ... with n = 3 static: three multiplications; with n an array: a
// while that carries i and x.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "service/mesh/mesh.h"
#include "service/numpy/trace/array_builder.h"
#include "service/numpy/trace/globals.h"

namespace meshd::numpy {

/// Names and their values; a function's names are looked up in those around it.
struct Scope {
  std::map<std::string, Value, std::less<>> names;
  std::shared_ptr<Scope> parent;
};
using ScopeRef = std::shared_ptr<Scope>;

/// How a block ended.
struct Flow {
  enum class Kind : uint8_t { kNext, kReturn };
  Kind kind = Kind::kNext;
  Value value;  ///< of a return
};

class Tracer : public ArrayBuilder {
 public:
  /// `globals`, which outlives the tracer: what programs name without defining it. `mesh`: what partition specs are
  /// over; null: none.
  Tracer(ir::Function& function, const Globals& globals, mesh::MeshRef mesh, bool has_effects, core::HoldMemory hold);
  ~Tracer();
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;

  // --- arrays of values

  /// A number becomes a weak scalar, a list or tuple is stacked, an array stays. Refuses the rest.
  Array array(const Value& value);
  WeakType type_of(const Value& value);
  tensor::Dims dims_of(const Value& value);
  /// The values with one type, promoted, in their own shapes; with one shape too.
  std::vector<Array> promoted_arrays(const std::vector<Value>& values);
  std::vector<Array> broadcast_arrays(const std::vector<Value>& values);
  /// The same with the type made a float or complex one.
  std::vector<Array> inexact_arrays(const std::vector<Value>& values);
  Array inexact(const Value& value) { return inexact_arrays({value})[0]; }
  /// A number or array in a given type and shape.
  Array typed(const Value& value, const tensor::TensorType& type);

  // --- Python's operators

  Value unary(std::string_view op, const Value& value);
  Value binary(std::string_view op, const Value& a, const Value& b);
  Value comparison(std::string_view op, const Value& a, const Value& b);
  /// Truth of a static value. `what` says what needs it: "if", "assert"; an array is refused with what to use.
  bool truth(const Value& value, std::string_view what);
  /// The items of what a for can go over: lists, tuples, dicts (keys), ranges, rows of arrays.
  std::vector<Value> items_of(const Value& value, std::string_view what);
  Value subscript(const Value& value, const Value& index);
  Value attribute(const Value& value, const std::string& name);

  /// Counts work on static values, as much as so many expressions. Refuses a program that does too much.
  void count_steps(int64_t count) { step(count); }
  /// A text that the program makes. Refuses one that is longer than is kept.
  Value made_text(std::string text);
  /// The value of a key; null: the dict has none. Counts the keys that are compared.
  Value* find_item(const DictRef& dict, std::string_view key);

  // --- static arguments of functions

  int64_t to_int(const Value& value, std::string_view what);
  double to_float(const Value& value, std::string_view what);
  /// An int, or a tuple or list of them.
  std::vector<int64_t> to_ints(const Value& value, std::string_view what);
  bool to_bool(const Value& value, std::string_view what) { return truth(value, what); }
  std::string to_text(const Value& value, std::string_view what);
  /// A string, or an int as its digits.
  std::string dict_key(const Value& key);
  /// A dtype, or its name; Python's int, float, bool and complex.
  DType to_dtype(const Value& value);
  std::optional<DType> to_dtype_or_none(const Value& value);
  /// The dimensions that `axis` names (None: all), ascending, each once.
  std::vector<int64_t> to_axes(const Value& axis, int64_t rank);
  std::vector<Value> to_items(const Value& value, std::string_view what);

  // --- calls and control flow

  Value call(const Value& callee, CallArguments arguments);
  Value call(const Value& callee, std::vector<Value> arguments) {
    return call(callee, CallArguments{std::move(arguments), {}});
  }
  CallableRef user_function(const FunctionRef& function, const ScopeRef& scope);

  /// The value of the branch that `index` chooses (a bool scalar: 0 is true; or an int32 scalar). Each of `branches`
  /// traces one; what they give has to agree: `names` (one for each of the values that each branch gives) are for
  /// messages.
  std::vector<Value> branch(const Array& index, const std::vector<std::function<std::vector<Value>()>>& branches,
                            const std::vector<std::string>& names);
  /// A loop over `carried`, as jax.lax.while_loop: types that are weak give way to those of the body.
  std::vector<Value> loop(std::vector<Value> carried, const std::vector<std::string>& names,
                          const std::function<Value(const std::vector<Value>&)>& test,
                          const std::function<std::vector<Value>(const std::vector<Value>&)>& body);
  /// How a loop may end before its range does, and where it ended.
  struct EarlyEnd {
    size_t broken = 0;  ///< number of the carried flag that ends it
    Value index;        ///< set: the index of the last iteration, where there was one
  };
  /// A loop whose body gets the index, from `start` while it is before `stop` and, where there is an `end`, its flag
  /// does not hold.
  std::vector<Value> counted_loop(const Value& start, const Value& stop, const Value& step, std::vector<Value> carried,
                                  std::vector<std::string> names,
                                  const std::function<std::vector<Value>(Value, const std::vector<Value>&)>& body,
                                  EarlyEnd* end = nullptr);

  /// What `body` gives as arrays whose types count, but which the program does not have: for what has to know shapes
  /// before it traces for good. Its ops are dropped.
  Value traced_aside(const std::function<Value()>& body);

  // --- what the traced program does beside computing

  /// Whether the program may have effects: its ops are then in their order and happen once.
  [[nodiscard]] bool has_effects() const { return has_effects_; }
  /// log("loss {}", y): an ordered effect.
  void log(const std::string& text, const std::vector<Array>& values);
  /// The texts of the program's effects, by number.
  [[nodiscard]] const std::vector<std::string>& logged() const { return logged_; }
  [[nodiscard]] const mesh::MeshRef& mesh() const { return mesh_; }
  [[nodiscard]] const Globals& globals() const { return globals_; }

  /// Makes what the first effect waits for; before anything is traced.
  void begin();

  // --- the syntax

  /// A scope inside of `parent` (null: none). Functions hold the scopes in which they were made, which hold them: the
  /// tracer takes their names away when it ends.
  ScopeRef new_scope(const ScopeRef& parent);

  /// Runs the top of the text: makes its functions and constants.
  void run_top(const Syntax& syntax, const ScopeRef& scope);
  Flow run(const Block& block, size_t from, const ScopeRef& scope);
  Value evaluate(const Expression& expression, const ScopeRef& scope);

 private:
  struct Branch {
    ir::Region region;
    std::vector<Value> results;
    ir::ValueId token = ir::kNoValue;
  };
  // What is left of the blocks around, for a return below an if on arrays; a null block: nothing can follow it.
  struct Rest {
    const Block* block = nullptr;
    size_t from = 0;
  };
  class Deeper;
  // What a trace that is given up is taken back to.
  struct State {
    std::vector<Rest> rest;
    std::vector<const Function*> calls;
    ir::ValueId token = ir::kNoValue;
    size_t logged = 0;
    int depth = 0;
  };
  [[nodiscard]] State state() const { return {rest_, calls_, token_, logged_.size(), depth_}; }
  void restore(State state);

  using Names = std::map<std::string, Value, std::less<>>;

  void step(int64_t count = 1);
  /// A scope's names as they are now, to go back to. Counts them.
  Names names_of(const ScopeRef& scope);
  Flow run_statement(const Statement& statement, const ScopeRef& scope);
  Flow run_if(const Statement& statement, const ScopeRef& scope);
  Flow run_traced_if(const Statement& statement, const Array& test, const ScopeRef& scope);
  Flow run_rest(const ScopeRef& scope);
  Flow run_while(const Statement& statement, const ScopeRef& scope);
  void run_traced_while(const Statement& statement, const std::string& broken, const ScopeRef& scope);
  Value and_not_broken(const Value& test, const std::string& broken, const ScopeRef& scope);
  Flow run_for(const Statement& statement, const ScopeRef& scope);
  Flow run_over(const Statement& statement, const std::string& broken, const Value& over, const ScopeRef& scope);
  bool run_unrolled(const Statement& statement, const std::string& broken, const std::vector<Value>& items,
                    const ScopeRef& scope, Flow& out);
  Flow run_unless_broken(const Statement& statement, const std::string& broken, const ScopeRef& scope);
  Value run_counted_for(const Statement& statement, const std::string& broken, const Value& start, const Range& range,
                        const ScopeRef& scope);
  void run_function(const FunctionRef& function, const ScopeRef& scope);
  /// Ends the trace where the text says so, by an assert or a raise; `said`: its message, or null.
  [[noreturn]] void end_trace(const Statement& statement, std::string what, const ExpressionRef& said,
                              const ScopeRef& scope);
  std::vector<Value> run_carried(const Statement& statement, const std::vector<std::string>& names,
                                 const std::vector<Value>& values, const ScopeRef& scope);
  void leave_loop(const Statement& statement, const std::vector<std::string>& names, std::vector<Value> values,
                  const ScopeRef& scope);
  void assign(const Expression& target, const Value& value, const ScopeRef& scope);
  void assign_item(const Expression& target, const Value& value, const ScopeRef& scope);
  std::vector<std::string> carried_names(const Statement& statement, const ScopeRef& scope);

  Value evaluate_name(const Expression& expression, const ScopeRef& scope);
  Value evaluate_call(const Expression& expression, const ScopeRef& scope);
  std::string evaluate_format(const Expression& expression, const ScopeRef& scope, std::vector<Value>* values);
  Value evaluate_conditional(const Expression& expression, const ScopeRef& scope);
  Value evaluate_compare(const Expression& expression, const ScopeRef& scope);
  Value joined_condition(const std::string& word, const Value& first, const std::function<Value()>& second);
  Value evaluate_comprehension(const Expression& expression, const ScopeRef& scope);
  Value evaluate_dict(const Expression& expression, const ScopeRef& scope);
  std::vector<Value> evaluate_items(const Expression& expression, const ScopeRef& scope);
  Value* find_name(std::string_view name, const ScopeRef& scope);
  Value static_binary(std::string_view op, const Value& a, const Value& b);
  std::optional<Value> container_binary(std::string_view op, const Value& a, const Value& b);
  Value array_binary(std::string_view op, const Value& a, const Value& b);
  bool is_equal(const Value& a, const Value& b);
  Value container_subscript(const Value& value, const Value& index);
  Value function_attribute(const Value& value, const std::string& name);
  [[noreturn]] void unknown_name(const std::string& name, const ScopeRef& scope);

  std::vector<Value> joined(std::vector<Branch>& branches, const Array& index, const std::vector<std::string>& names);
  Array leaf_of_type(const Value& value, WeakType type);
  std::optional<std::vector<Value>> try_loop(const std::vector<Value>& carried, const std::vector<std::string>& names,
                                             std::vector<WeakType>& types,
                                             const std::function<Value(const std::vector<Value>&)>& test,
                                             const std::function<std::vector<Value>(const std::vector<Value>&)>& body);

  const Globals& globals_;
  mesh::MeshRef mesh_;
  bool has_effects_ = false;
  ir::ValueId token_ = ir::kNoValue;
  std::vector<std::string> logged_;
  std::vector<const Function*> calls_;
  std::vector<Rest> rest_;
  std::vector<std::weak_ptr<Scope>> scopes_;
  int64_t steps_ = 0;
  int depth_ = 0;
};

/// The names that statements of a block assign, loops and branches in it included.
std::set<std::string> assigned_names(const Block& block);
/// True when a statement of that kind is in a block or in those within it (functions apart).
bool contains(const Block& block, StatementKind kind);
/// Joins two types as a branch or loop does: equal, or one gives way. Nothing: they do not agree.
std::optional<WeakType> agreed(WeakType a, WeakType b);

}  // namespace meshd::numpy
