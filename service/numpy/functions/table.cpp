#include "service/numpy/functions/table.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include "service/numpy/function_facts.h"
#include "service/numpy/syntax/parser.h"
#include "service/numpy/trace/bind.h"

namespace meshd::numpy {
namespace {

// Names of modules, and the path under which the tables have them.
constexpr Globals::Meaning kModules[] = {{"jax.numpy", "jnp"},
                                         {"numpy", "jnp"},
                                         {"np", "jnp"},
                                         {"jnp", "jnp"},
                                         {"jax.nn", "nn"},
                                         {"nn", "nn"},
                                         {"jax.lax", "lax"},
                                         {"lax", "lax"},
                                         {"jax.random", "random"},
                                         {"random", "random"},
                                         {"jax", "jax"},
                                         {"functools", "functools"},
                                         {"jnp.linalg", "jnp.linalg"},
                                         {"jnp.fft", "jnp.fft"},
                                         {"jax.scipy.special", "special"},
                                         {"special", "special"},
                                         {"jax.debug", "jax.debug"},
                                         {"jax.tree", "jax.tree"},
                                         {"jax.tree_util", "jax.tree"},
                                         {"math", "math"},
                                         {"jax.sharding", "jax.sharding"},
                                         {"jax.scipy", "jax.scipy"},
                                         {"jax.nn.initializers", "nn.initializers"},
                                         {"jax.ops", "jax.ops"},
                                         {"jax.scipy.signal", "jax.scipy.signal"},
                                         {"jax.scipy.stats", "jax.scipy.stats"},
                                         {"jax.scipy.stats.norm", "jax.scipy.stats.norm"}};

// Names that are there without an import, and what they are short for.
constexpr Globals::Meaning kNames[] = {{"grad", "jax.grad"},
                                       {"value_and_grad", "jax.value_and_grad"},
                                       {"vmap", "jax.vmap"},
                                       {"jit", "jax.jit"},
                                       {"log", "jax.debug.log"},
                                       {"P", "jax.sharding.PartitionSpec"},
                                       {"PartitionSpec", "jax.sharding.PartitionSpec"},
                                       {"with_sharding_constraint", "lax.with_sharding_constraint"},
                                       {"partial", "functools.partial"}};

// Functions with two names: the second has the row.
constexpr std::pair<std::string_view, std::string_view> kAliases[] = {
    {"jax.Array", "jnp.ndarray"},
    {"jax.tree.tree_leaves", "jax.tree.leaves"},
    {"jax.tree.tree_map", "jax.tree.map"},
    {"jax.tree.tree_reduce", "jax.tree.reduce"},
    {"jnp.absolute", "jnp.abs"},
    {"jnp.acos", "jnp.arccos"},
    {"jnp.acosh", "jnp.arccosh"},
    {"jnp.around", "jnp.round"},
    {"jnp.asin", "jnp.arcsin"},
    {"jnp.asinh", "jnp.arcsinh"},
    {"jnp.atan", "jnp.arctan"},
    {"jnp.atan2", "jnp.arctan2"},
    {"jnp.atanh", "jnp.arctanh"},
    {"jnp.bitwise_invert", "jnp.bitwise_not"},
    {"jnp.bitwise_left_shift", "jnp.left_shift"},
    {"jnp.bitwise_right_shift", "jnp.right_shift"},
    {"jnp.concat", "jnp.concatenate"},
    {"jnp.conjugate", "jnp.conj"},
    {"jnp.degrees", "jnp.rad2deg"},
    {"jnp.invert", "jnp.bitwise_not"},
    {"jnp.linalg.cross", "jnp.cross"},
    {"jnp.linalg.diagonal", "jnp.diagonal"},
    {"jnp.linalg.matmul", "jnp.matmul"},
    {"jnp.linalg.matrix_transpose", "jnp.matrix_transpose"},
    {"jnp.linalg.outer", "jnp.outer"},
    {"jnp.linalg.tensordot", "jnp.tensordot"},
    {"jnp.linalg.trace", "jnp.trace"},
    {"jnp.linalg.vecdot", "jnp.vecdot"},
    {"jnp.pow", "jnp.power"},
    {"jnp.radians", "jnp.deg2rad"},
    {"jnp.remainder", "jnp.mod"},
    {"jnp.true_divide", "jnp.divide"},
    {"lax.abs", "jnp.abs"},
    {"lax.acos", "jnp.arccos"},
    {"lax.add", "jnp.add"},
    {"lax.asin", "jnp.arcsin"},
    {"lax.atan", "jnp.arctan"},
    {"lax.atan2", "jnp.arctan2"},
    {"lax.bitwise_and", "jnp.bitwise_and"},
    {"lax.bitwise_not", "jnp.bitwise_not"},
    {"lax.bitwise_or", "jnp.bitwise_or"},
    {"lax.bitwise_xor", "jnp.bitwise_xor"},
    {"lax.cbrt", "jnp.cbrt"},
    {"lax.ceil", "jnp.ceil"},
    {"lax.concatenate", "jnp.concatenate"},
    {"lax.conj", "jnp.conj"},
    {"lax.cos", "jnp.cos"},
    {"lax.cosh", "jnp.cosh"},
    {"lax.digamma", "special.digamma"},
    {"lax.dot", "jnp.dot"},
    {"lax.eq", "jnp.equal"},
    {"lax.erf", "special.erf"},
    {"lax.erf_inv", "special.erfinv"},
    {"lax.erfc", "special.erfc"},
    {"lax.exp", "jnp.exp"},
    {"lax.exp2", "jnp.exp2"},
    {"lax.expand_dims", "jnp.expand_dims"},
    {"lax.expm1", "jnp.expm1"},
    {"lax.floor", "jnp.floor"},
    {"lax.full", "jnp.full"},
    {"lax.full_like", "jnp.full_like"},
    {"lax.ge", "jnp.greater_equal"},
    {"lax.gt", "jnp.greater"},
    {"lax.imag", "jnp.imag"},
    {"lax.is_finite", "jnp.isfinite"},
    {"lax.le", "jnp.less_equal"},
    {"lax.lgamma", "special.gammaln"},
    {"lax.log", "jnp.log"},
    {"lax.log1p", "jnp.log1p"},
    {"lax.logistic", "special.expit"},
    {"lax.lt", "jnp.less"},
    {"lax.max", "jnp.maximum"},
    {"lax.min", "jnp.minimum"},
    {"lax.mul", "jnp.multiply"},
    {"lax.ne", "jnp.not_equal"},
    {"lax.neg", "jnp.negative"},
    {"lax.nextafter", "jnp.nextafter"},
    {"lax.pow", "jnp.power"},
    {"lax.real", "jnp.real"},
    {"lax.reciprocal", "jnp.reciprocal"},
    {"lax.reshape", "jnp.reshape"},
    {"lax.rev", "jnp.flip"},
    {"lax.shift_left", "jnp.left_shift"},
    {"lax.shift_right_arithmetic", "jnp.right_shift"},
    {"lax.sign", "jnp.sign"},
    {"lax.sin", "jnp.sin"},
    {"lax.sinh", "jnp.sinh"},
    {"lax.sort", "jnp.sort"},
    {"lax.sqrt", "jnp.sqrt"},
    {"lax.square", "jnp.square"},
    {"lax.squeeze", "jnp.squeeze"},
    {"lax.sub", "jnp.subtract"},
    {"lax.tan", "jnp.tan"},
    {"lax.tanh", "jnp.tanh"},
    {"lax.transpose", "jnp.transpose"},
    {"special.log_softmax", "nn.log_softmax"},
    {"special.softmax", "nn.softmax"}};

// Functions that are methods of arrays too, with the array as their first argument.
constexpr std::string_view kMethods[] = {
    "sum",     "prod",    "mean",     "var",     "std",       "min",     "max",       "argmin", "argmax",
    "all",     "any",     "cumsum",   "cumprod", "ptp",       "reshape", "transpose", "astype", "ravel",
    "flatten", "squeeze", "swapaxes", "sort",    "argsort",   "dot",     "round",     "clip",   "take",
    "repeat",  "trace",   "diagonal", "conj",    "conjugate", "copy",    "item",      "tolist"};

Value literal(const Expression& expression) {
  switch (expression.kind) {
    case ExpressionKind::kNumber:
      return std::visit([](const auto& number) { return Value(number); }, expression.number);
    case ExpressionKind::kString:
      return expression.text;
    case ExpressionKind::kUnary: {
      const Value inner = literal(*expression.children[0]);
      if (const auto* integer = inner.as<int64_t>()) return -*integer;
      return -*inner.as<double>();
    }
    case ExpressionKind::kTuple: {
      std::vector<Value> items;
      for (const ExpressionRef& child : expression.children) items.push_back(literal(*child));
      return tuple_of(std::move(items));
    }
    default:
      if (expression.text == "None") return None{};
      return expression.text == "True";
  }
}

struct Tables {
  std::vector<FunctionRow> rows;
  Globals globals;
};

CallableRef callable_of(const FunctionRow& row) {
  const FunctionRef signature = parse_signature(row.path, row.signature);
  std::vector<Value> defaults;
  for (const FunctionParameter& parameter : signature->parameters)
    defaults.push_back(parameter.otherwise == nullptr ? Value(Undefined{}) : literal(*parameter.otherwise));
  auto made = std::make_shared<Callable>();
  const bool is_builtin = row.path.starts_with("builtins.");
  made->name = is_builtin ? row.path.substr(row.path.find('.') + 1) : row.path;
  made->takes_fields = row.takes_fields;
  made->call = [signature, defaults, name = made->name, run = row.run](Tracer& t, CallArguments given) {
    const Place place = t.place();
    const Arguments arguments(*signature, bind(t, name, signature->parameters, defaults, std::move(given)));
    Value out;
    try {
      out = run(t, arguments);
    } catch (const core::Error& error) {
      // Of shapes that are too large; all else is refused with its place.
      if (error.code() != core::ErrorCode("invalid_array") || !error.diagnostics().empty()) throw;
      t.set_place(place);
      t.refuse("'" + name + "': " + error.detail());
    }
    t.set_place(place);
    return out;
  };
  return made;
}

const Tables& tables() {
  static const Tables kTables = [] {
    std::vector<FunctionRow> rows;
    for (auto topic : {builtin_functions, math_functions, reduction_functions, shape_functions, creation_functions,
                       selection_functions, linalg_functions, fft_functions, random_functions, nn_functions,
                       control_functions, transform_functions, library_functions}) {
      std::vector<FunctionRow> more = topic();
      std::move(more.begin(), more.end(), std::back_inserter(rows));
    }
    Globals::Values values;
    for (const FunctionRow& row : rows) values.emplace(row.path, callable_of(row));
    for (const auto& [name, path] : kAliases) values.emplace(name, values.at(std::string(path)));
    for (ConstantRow& row : constant_rows()) values.emplace(std::move(row.path), std::move(row.value));
    for (const auto& [name, path] : kModules) {
      values.emplace(name, Namespace{std::string(path)});
      values.emplace(path, Namespace{std::string(path)});
    }
    return Tables{std::move(rows), Globals(std::move(values), kModules, kNames, kMethods)};
  }();
  return kTables;
}

}  // namespace

const Value& Arguments::operator[](std::string_view name) const {
  const auto& parameters = signature_.parameters;
  const auto found =
      std::find_if(parameters.begin(), parameters.end(), [&](const auto& parameter) { return parameter.name == name; });
  return values_.at(static_cast<size_t>(found - parameters.begin()));
}

std::span<const FunctionRow> all_functions() { return tables().rows; }

const Globals& all_globals() { return tables().globals; }

std::vector<FunctionFacts> all_function_facts() {
  constexpr std::string_view kPython = "builtins.";
  std::vector<FunctionFacts> out;
  for (const FunctionRow& row : all_functions()) {
    FunctionFacts& facts = out.emplace_back();
    facts.name = row.path.starts_with(kPython) ? row.path.substr(kPython.size()) : row.path;
    facts.parameters = row.signature;
    for (const auto& [alias, path] : kAliases) {
      if (path == row.path) facts.other_names.emplace_back(alias);
    }
  }
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return out;
}

}  // namespace meshd::numpy
