// Calls: of functions of the text, of the tables, of dtypes; and the effects of a program.
#include <fmt/core.h>

#include <algorithm>

#include "service/numpy/syntax/limits.h"
#include "service/numpy/trace/bind.h"
#include "service/numpy/trace/depth.h"
#include "service/numpy/trace/tracer.h"

namespace meshd::numpy {

Tracer::Tracer(ir::Function& function, const Globals& globals, mesh::MeshRef mesh, bool has_effects,
               core::HoldMemory hold)
    : ArrayBuilder(function, std::move(hold)), globals_(globals), mesh_(std::move(mesh)), has_effects_(has_effects) {}

Tracer::~Tracer() {
  for (const std::weak_ptr<Scope>& each : scopes_) {
    // Moved out first: what a name held may hold the scope alone.
    if (const ScopeRef scope = each.lock()) auto names = std::move(scope->names);
  }
}

ScopeRef Tracer::new_scope(const ScopeRef& parent) {
  auto made = std::make_shared<Scope>();
  made->parent = parent;
  scopes_.push_back(made);
  return made;
}

void Tracer::begin() {
  if (has_effects_) token_ = writer().create_one("stablehlo.create_token", {}, ir::Type::token());
}

Value Tracer::call(const Value& callee, CallArguments arguments) {
  const Deeper deeper(*this);
  int64_t nodes = 0;
  for (const Value& value : arguments.positional) nodes += node_count(value);
  for (const auto& [name, value] : arguments.keywords) nodes += node_count(value);
  step(1 + nodes / 8);
  if (const auto* function = callee.as<CallableRef>()) {
    const CallableRef held = *function;
    return held->call(*this, std::move(arguments));
  }
  if (const auto* dtype = callee.as<DType>()) {
    if (arguments.positional.size() != 1 || !arguments.keywords.empty()) refuse("a dtype takes one value to convert");
    const Value& value = arguments.positional[0];
    if (value.is_number()) return full({*dtype, {}}, value);
    return convert(array(value), *dtype);
  }
  refuse(describe(callee) + " cannot be called");
}

CallableRef Tracer::user_function(const FunctionRef& function, const ScopeRef& scope) {
  step(static_cast<int64_t>(function->parameters.size() / 4));
  std::vector<Value> defaults;
  for (const FunctionParameter& parameter : function->parameters)
    defaults.push_back(parameter.otherwise == nullptr ? Value(Undefined{}) : evaluate(*parameter.otherwise, scope));
  auto made = std::make_shared<Callable>();
  made->name = function->name;
  made->call = [function, scope, defaults](Tracer& t, CallArguments given) {
    if (std::find(t.calls_.begin(), t.calls_.end(), function.get()) != t.calls_.end())
      t.refuse("'" + function->name + "' calls itself; recursion is not supported, use a loop");
    if (t.calls_.size() >= static_cast<size_t>(kMaxCallDepth))
      t.refuse(fmt::format("calls are nested more than {} deep", kMaxCallDepth));
    const Place place = t.place();
    const ScopeRef inner = t.new_scope(scope);
    t.step(static_cast<int64_t>(function->parameters.size()));
    std::vector<Value> values = bind(t, function->name, function->parameters, defaults, std::move(given));
    for (size_t i = 0; i < values.size(); ++i) inner->names[function->parameters[i].name] = std::move(values[i]);
    t.calls_.push_back(function.get());
    const std::vector<Rest> rest = std::exchange(t.rest_, {});
    Flow flow = t.run(function->body, 0, inner);
    t.rest_ = rest;
    t.calls_.pop_back();
    t.set_place(place);
    return flow.kind == Flow::Kind::kReturn ? std::move(flow.value) : Value();
  };
  return made;
}

void Tracer::log(const std::string& text, const std::vector<Array>& values) {
  const auto index = static_cast<int64_t>(logged_.size());
  step(static_cast<int64_t>(text.size() / 16));
  logged_.push_back(text);
  std::vector<ir::ValueId> operands{token_};
  for (const Array& value : values) operands.push_back(value.id);
  token_ =
      writer().create_one("stablehlo.custom_call", std::move(operands), ir::Type::token(),
                          {{"call_target_name", {ir::StringAttr{"xla_ffi_python_cpu_callback"}}},
                           {"has_side_effect", {ir::IntegerAttr{1, "i1"}}},
                           {"mhlo.backend_config", {ir::DictAttr{"", {{"index", {ir::IntegerAttr{index, "ui64"}}}}}}}});
}

}  // namespace meshd::numpy
