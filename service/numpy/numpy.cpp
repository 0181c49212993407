#include "service/numpy/numpy.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <unordered_map>

#include "service/ir/walk.h"
#include "service/numpy/functions/table.h"
#include "service/numpy/syntax/mistakes.h"
#include "service/numpy/syntax/parser.h"
#include "service/numpy/trace/tracer.h"
#include "service/ops/linalg/custom_calls.h"
#include "service/ops/movement/gather_scatter.h"
#include "service/program/gradient/dead_ops.h"
#include "service/program/json_string.h"
#include "service/program/verify/verify.h"

namespace meshd::numpy {
namespace {

constexpr std::string_view kMain = "main";

void walk(const Expression& expression, const std::function<void(const Expression&)>& visit);

void walk(const Block& block, const std::function<void(const Expression&)>& visit) {
  for (const Statement& statement : block) {
    if (statement.value != nullptr) walk(*statement.value, visit);
    for (const ExpressionRef& target : statement.targets) walk(*target, visit);
    walk(statement.body, visit);
    walk(statement.otherwise, visit);
    if (statement.function == nullptr) continue;
    walk(statement.function->body, visit);
  }
}

void walk(const Expression& expression, const std::function<void(const Expression&)>& visit) {
  visit(expression);
  for (const ExpressionRef& child : expression.children) {
    if (child != nullptr) walk(*child, visit);
  }
  if (expression.function != nullptr) walk(expression.function->body, visit);
}

bool calls_log(const Syntax& syntax) {
  bool found = false;
  walk(syntax.body, [&](const Expression& expression) {
    if (expression.kind == ExpressionKind::kName && (expression.text == "log" || expression.text == "debug"))
      found = true;
    if (expression.kind == ExpressionKind::kAttribute && expression.text == "debug") found = true;
  });
  for (const Import& import : syntax.imports) found = found || import.path.starts_with("jax.debug");
  return found;
}

// Names and positions that the decorators of a jit declare static.
void read_static(const Expression& decorator, Program& program) {
  const auto mark = [&](const Expression& what) {
    if (what.kind == ExpressionKind::kString) {
      for (size_t i = 0; i < program.parameters().size(); ++i) {
        if (program.parameters()[i].name == what.text) program.is_static[i] = true;
      }
    }
    const auto* position = std::get_if<int64_t>(&what.number);
    if (what.kind == ExpressionKind::kNumber && position != nullptr && *position >= 0 &&
        *position < static_cast<int64_t>(program.is_static.size()))
      program.is_static[static_cast<size_t>(*position)] = true;
  };
  if (decorator.kind != ExpressionKind::kCall) return;
  for (size_t i = 0; i < decorator.names.size(); ++i) {
    const Expression& argument = *decorator.children[i + 1];
    if (decorator.names[i] != "static_argnames" && decorator.names[i] != "static_argnums") continue;
    mark(argument);
    for (const ExpressionRef& child : argument.children) mark(*child);
  }
}

Value value_of(Tracer& t, const Input& input, const std::vector<ir::ValueId>& arguments, size_t& next) {
  if (const auto* array = std::get_if<Input::ArrayType>(&input.value)) {
    return t.array_of(arguments[next++], array->weak);
  }
  if (const auto* held = std::get_if<Input::Static>(&input.value)) {
    return std::visit(
        [&t](const auto& value) -> Value {
          if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::monostate>) {
            return None{};
          } else if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::string>) {
            return t.made_text(value);
          } else {
            return value;
          }
        },
        *held);
  }
  if (const auto* list = std::get_if<Input::List>(&input.value)) {
    std::vector<Value> items;
    for (const Input& item : *list) items.push_back(value_of(t, item, arguments, next));
    return input.is_list ? list_of(std::move(items), 0) : tuple_of(std::move(items));
  }
  auto made = std::make_shared<Dict>();
  for (const auto& [name, item] : std::get<Input::Dict>(input.value))
    made->items.emplace_back(name, value_of(t, item, arguments, next));
  hold_items(*made);
  return DictRef(std::move(made));
}

void add_types(const Input& input, std::vector<tensor::TensorType>& out) {
  if (const auto* array = std::get_if<Input::ArrayType>(&input.value)) out.push_back(array->type);
  if (const auto* list = std::get_if<Input::List>(&input.value)) {
    for (const Input& item : *list) add_types(item, out);
  }
  if (const auto* dict = std::get_if<Input::Dict>(&input.value)) {
    for (const auto& [name, item] : *dict) add_types(item, out);
  }
}

// Fields in the order of their names, as leaves are.
void append_tree(std::string& out, const Value& value) {
  if (const Sequence* sequence = value.sequence()) {
    out += '[';
    for (size_t i = 0; i < sequence->items.size(); ++i) {
      if (i > 0) out += ',';
      append_tree(out, sequence->items[i]);
    }
    out += ']';
    return;
  }
  if (const auto* dict = value.as<DictRef>()) {
    std::vector<const std::pair<std::string, Value>*> items;
    for (const auto& item : (*dict)->items) items.push_back(&item);
    std::sort(items.begin(), items.end(), [](const auto* a, const auto* b) { return a->first < b->first; });
    out += '{';
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out += ',';
      out += program::json_string(items[i]->first) + ':';
      append_tree(out, items[i]->second);
    }
    out += '}';
    return;
  }
  out += value.is_none() ? "null" : "\"*\"";
}

// Drops what only derivatives read: other derivatives of values, and promises of gathers.
void drop_derivatives(ir::Function& main) {
  std::unordered_map<ir::ValueId, ir::ValueId> values;
  ir::walk(main.body, [&](ir::Op& op) {
    std::erase_if(op.attributes, [](const ir::NamedAttribute& entry) { return entry.name == ops::kPromisedInside; });
    // What an operand stands for is known: ops are visited behind those that they read.
    for (ir::ValueId& id : op.operands) {
      if (const auto found = values.find(id); found != values.end()) id = found->second;
    }
    if (ir::string_or(op.attributes, "call_target_name", "") == ops::kDifferentiatedAs)
      values[op.results[0]] = op.operands[0];
  });
  if (!values.empty()) program::remove_dead_ops(main, main.body, program::UnreadEffects::kKept);
}

ScopeRef top_scope(Tracer& t, const Syntax& syntax) {
  const ScopeRef scope = t.new_scope(nullptr);
  for (const Import& import : syntax.imports) {
    t.set_place(import.place);
    // Annotations are read over, and so are the names that they need.
    if (import.path.starts_with("typing.") || import.path.starts_with("__future__.") || import.path == "typing")
      continue;
    const std::string path = t.globals().canonical_path(import.path);
    const Value* found = t.globals().find(path);
    if (found == nullptr)
      t.refuse(
          "there is no '" + import.path +
          "' here; known modules are jax, jax.numpy, jax.nn, jax.lax, jax.random, jax.scipy.special, numpy, functools "
          "and math; all names are in scope without an import");
    scope->names[import.name] = *found;
  }
  t.run_top(syntax, scope);
  return scope;
}

}  // namespace

ProgramRef read(std::string_view text) {
  auto out = std::make_shared<Program>();
  out->syntax = parse_text(text);
  for (const Statement& statement : out->syntax.body) {
    if (statement.kind != StatementKind::kFunction) continue;
    if (out->main == nullptr || out->main->name != kMain) out->main = statement.function;
  }
  if (out->main == nullptr)
    fail("invalid_program", {1, 1}, "there is no function; a program is 'def f(x): return ...'");
  out->is_static.assign(out->main->parameters.size(), false);
  for (const ExpressionRef& decorator : out->main->decorators) read_static(*decorator, *out);
  out->has_effects = calls_log(out->syntax);
  return out;
}

Traced trace(const Program& program, const Inputs& inputs, const mesh::MeshRef& mesh, const core::HoldMemory& hold) {
  Traced out;
  out.module.name = "numpy_" + program.main->name;
  ir::Function& main = out.module.functions.emplace_back();
  main.name = "main";
  main.is_public = true;
  main.location.line = program.main->place.line;
  main.location.column = program.main->place.column;
  std::vector<tensor::TensorType> types;
  for (const Input& input : inputs.positional) add_types(input, types);
  for (const auto& [name, input] : inputs.keywords) add_types(input, types);
  for (size_t i = 0; i < types.size(); ++i) {
    ir::Parameter& parameter = main.arguments.emplace_back();
    parameter.type = ir::Type::of(types[i]);
    parameter.location = main.location;
    main.body.arguments.push_back(main.add_value(parameter.type, fmt::format("%arg{}", i)));
  }
  Tracer t(main, all_globals(), mesh, program.has_effects, hold);
  const ir::OpBuilder::InsertionGuard inside(t.writer(), main.body.ops);
  t.set_place(program.main->place);
  t.begin();
  const ScopeRef scope = top_scope(t, program.syntax);
  CallArguments arguments;
  size_t next = 0;
  for (const Input& input : inputs.positional)
    arguments.positional.push_back(value_of(t, input, main.body.arguments, next));
  for (const auto& [name, input] : inputs.keywords)
    arguments.keywords.emplace_back(name, value_of(t, input, main.body.arguments, next));
  t.set_place(program.main->place);
  const Value made = t.call(scope->names.at(program.main->name), std::move(arguments));
  t.set_place(program.main->place);
  std::vector<ir::ValueId> results;
  for_each_leaf(made, [&](const Value& leaf) {
    if (const auto* undefined = leaf.as<Undefined>()) t.refuse(undefined->why);
    if (leaf.array() == nullptr && !leaf.is_number())
      t.refuse("the program returns " + describe(leaf) +
               "; it can return arrays, numbers, and tuples, lists and dicts of them");
    const Array array = t.array(leaf);
    results.push_back(array.id);
    ir::Parameter& parameter = main.results.emplace_back();
    parameter.type = ir::Type::of(array.type);
    parameter.location = main.location;
  });
  t.writer().create("func.return", std::move(results), {});
  drop_derivatives(main);
  if (made.array() == nullptr && !made.is_number()) append_tree(out.result_tree, made);
  const bool has_specs =
      ir::any_op(main.body, [](const ir::Op& op) { return ir::find(op.attributes, "sharding") != nullptr; });
  if (has_specs) out.module.meshes.push_back({"mesh", mesh, {}});
  out.logs = t.logged();
  program::verify(out.module);
  return out;
}

namespace {

void append_key(std::string& out, const Input& input) {
  if (const auto* array = std::get_if<Input::ArrayType>(&input.value)) {
    out += fmt::format("{}{}", tensor::to_string(array->type), array->weak ? "*" : "");
  } else if (const auto* held = std::get_if<Input::Static>(&input.value)) {
    out += fmt::format("={}", held->index());
    if (const auto* truth = std::get_if<bool>(held)) out += *truth ? "t" : "f";
    if (const auto* integer = std::get_if<int64_t>(held)) out += std::to_string(*integer);
    if (const auto* real = std::get_if<double>(held)) {
      uint64_t bits = 0;
      static_assert(sizeof(bits) == sizeof(*real));
      std::copy_n(reinterpret_cast<const char*>(real), sizeof(bits), reinterpret_cast<char*>(&bits));
      out += std::to_string(bits);
    }
    if (const auto* text = std::get_if<std::string>(held)) out += fmt::format("{}:{}", text->size(), *text);
  } else if (const auto* list = std::get_if<Input::List>(&input.value)) {
    out += input.is_list ? "[" : "(";
    for (const Input& item : *list) append_key(out, item);
    out += ")";
  } else {
    out += "{";
    for (const auto& [name, item] : std::get<Input::Dict>(input.value)) {
      out += fmt::format("{}:{}", name.size(), name);
      append_key(out, item);
    }
    out += "}";
  }
  out += ",";
}

}  // namespace

std::string key_of(const Inputs& inputs) {
  std::string out;
  for (const Input& input : inputs.positional) append_key(out, input);
  for (const auto& [name, input] : inputs.keywords) {
    out += fmt::format("@{}:{}", name.size(), name);
    append_key(out, input);
  }
  return out;
}

}  // namespace meshd::numpy
