// Functions, pretty and generic, and what their arguments and results carry.
#include <fmt/core.h>

#include "service/core/error.h"
#include "service/program/parse/parser.h"

namespace meshd::program {
namespace {

/// The value of attribute `name` as T, taken out of the list; null when absent.
template <typename T>
const T* typed(const ir::AttributeList& list, std::string_view name, const ir::Location& where,
               std::string_view expected) {
  const ir::Attribute* attribute = ir::find(list, name);
  if (attribute == nullptr) return nullptr;
  const T* value = attribute->as<T>();
  if (value == nullptr)
    ir::fail("invalid_program", where, "attribute '" + std::string(name) + "' must be " + std::string(expected));
  return value;
}

ir::Attribute take_attribute(ir::AttributeList& list, std::string_view name) {
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i].name != name) continue;
    ir::Attribute out = std::move(list[i].value);
    list.erase(list.begin() + static_cast<std::ptrdiff_t>(i));
    return out;
  }
  return {};
}

}  // namespace

void Parser::parameter_attributes(ir::Parameter& parameter, ir::AttributeList attributes, const Token& where) {
  const ir::Location location = where.location();
  if (const auto* sharding = typed<ir::ShardingAttr>(attributes, "sdy.sharding", location, "a sharding")) {
    if (sharding->per_value)
      fail("invalid_program", where, "an argument or result has one sharding: #sdy.sharding<...>");
    parameter.sharding = sharding->shardings[0];
  }
  if (const auto* alias =
          typed<ir::IntegerAttr>(attributes, "tf.aliasing_output", location, "the number of a result")) {
    parameter.aliases_output = alias->value;
  }
  try {
    parameter.is_donor = ir::bool_or(attributes, "jax.buffer_donor", false);
    parameter.is_token = parameter.type.is_token() || ir::bool_or(attributes, "jax.token", false);
    parameter.result_info = ir::string_or(attributes, "jax.result_info", {});
  } catch (const core::Error& error) {
    fail("invalid_program", where, error.detail());
  }
  // Older texts write tokens as booleans of no elements.
  const bool is_empty = parameter.type == ir::Type::of({tensor::DType::kBool, {0}});
  if (parameter.is_token && !parameter.type.is_token() && !is_empty) {
    fail("invalid_program", where,
         fmt::format("jax.token is of !stablehlo.token or tensor<0xi1>, got {}", ir::to_string(parameter.type)));
  }
  parameter.attributes = std::move(attributes);
  parameter.location = location;
}

void Parser::begin_function(ir::Function& function) {
  names_.clear();
  defined_.clear();
  known_scalars_.clear();
  function_ = &function;
  function_depth_ = region_depth_ + 1;
}

void Parser::end_function(ir::Function function) {
  function_ = nullptr;
  module_.functions.push_back(std::move(function));
}

void Parser::pretty_function(const Token& start) {
  ir::Function function;
  function.location = start.location();
  function.is_public = true;
  if (accept("private")) {
    function.is_public = false;
  } else if (!accept("public")) {
    accept("nested");
  }
  const Token name = expect(TokenKind::kSymbol, "the name of a function");
  function.name = symbol_name(name);
  begin_function(function);
  std::vector<BlockArgument> arguments;
  list('(', ')', "around the arguments of a function", [&] {
    BlockArgument argument;
    const Token where = token_;
    if (!token_.is(TokenKind::kValue)) {
      fail("invalid_program", where, "function @" + function.name + " has no body: its arguments have no names");
    }
    argument.name = take();
    expect(':', "behind the name of an argument");
    argument.type = type();
    ir::Parameter parameter;
    parameter.type = argument.type;
    parameter_attributes(parameter, optional_attribute_dict(), where);
    parameter.location.name = optional_location();
    function.arguments.push_back(std::move(parameter));
    arguments.push_back(std::move(argument));
  });
  if (token_.is(TokenKind::kArrow)) {
    advance();
    const auto result = [&] {
      const Token where = token_;
      ir::Parameter parameter;
      parameter.type = type();
      parameter_attributes(parameter, optional_attribute_dict(), where);
      optional_location();
      function.results.push_back(std::move(parameter));
    };
    if (at('(')) {
      list('(', ')', "around the results of a function", result);
    } else {
      const Token where = token_;
      ir::Parameter parameter;
      parameter.type = type();
      parameter_attributes(parameter, {}, where);
      function.results.push_back(std::move(parameter));
    }
  }
  if (accept("attributes")) function.attributes = attribute_dict();
  if (!at('{')) fail("invalid_program", name, "function @" + function.name + " has no body");
  function.body = region(arguments);
  if (start.text.starts_with("vhlo.")) vhlo_function(function, name);
  function.location.name = optional_location();
  end_function(std::move(function));
}

void Parser::vhlo_function(ir::Function& function, const Token& where) {
  for (auto& [key, value] : optional_attribute_dict()) {
    const auto* list = value.as<ir::ArrayAttr>();
    const bool is_arguments = key == "arg_attrs";
    if (key == "sym_visibility") {
      const auto* text = value.as<ir::StringAttr>();
      function.is_public = text == nullptr || text->value != "private";
    } else if (!is_arguments && key != "res_attrs") {
      function.attributes.emplace_back(key, std::move(value));
    } else if (list != nullptr && !list->values.empty()) {
      std::vector<ir::Parameter>& parameters = is_arguments ? function.arguments : function.results;
      if (list->values.size() != parameters.size())
        fail("invalid_program", where, "'" + key + "' has another number of entries than the function's type");
      for (size_t i = 0; i < parameters.size(); ++i) {
        const auto* entries = list->values[i].as<ir::DictAttr>();
        if (entries == nullptr) fail("invalid_program", where, "'" + key + "' must hold dictionaries");
        parameter_attributes(parameters[i], entries->entries, where);
      }
    }
  }
}

void Parser::generic_function(ir::Function& function) {
  const ir::Location& where = function.location;
  ir::AttributeList& attributes = function.attributes;
  const auto text = [&](std::string_view name) {
    const auto* value = typed<ir::StringAttr>(attributes, name, where, "a string");
    return value == nullptr ? std::string() : value->value;
  };
  function.name = text("sym_name");
  if (function.name.empty()) ir::fail("invalid_program", where, "a function needs 'sym_name'");
  function.is_public = text("sym_visibility") != "private";
  const auto* type = typed<ir::TypeAttr>(attributes, "function_type", where, "a function type");
  if (type == nullptr || !type->is_function) ir::fail("invalid_program", where, "a function needs 'function_type'");
  const auto fill = [&](const std::vector<ir::Type>& types, const std::string& name, std::vector<ir::Parameter>& out) {
    const auto* all = typed<ir::ArrayAttr>(attributes, name, where, "a list of dictionaries");
    // VHLO writes an empty list where there are none.
    if (all != nullptr && all->values.empty()) all = nullptr;
    if (all != nullptr && all->values.size() != types.size()) {
      ir::fail("invalid_program", where,
               fmt::format("'{}' has {} entries, but the type has {}", name, all->values.size(), types.size()));
    }
    for (size_t i = 0; i < types.size(); ++i) {
      ir::Parameter parameter;
      parameter.type = types[i];
      const auto* entries = all == nullptr ? nullptr : all->values[i].as<ir::DictAttr>();
      if (all != nullptr && entries == nullptr)
        ir::fail("invalid_program", where, "'" + name + "' must hold dictionaries");
      Token token;
      token.line = where.line;
      token.column = where.column;
      parameter_attributes(parameter, entries == nullptr ? ir::AttributeList{} : entries->entries, token);
      out.push_back(std::move(parameter));
    }
  };
  fill(type->inputs, "arg_attrs", function.arguments);
  fill(type->results, "res_attrs", function.results);
  if (function.body.arguments.size() != function.arguments.size()) {
    ir::fail("invalid_program", where,
             fmt::format("the body of @{} has {} arguments, but its type has {}", function.name,
                         function.body.arguments.size(), function.arguments.size()));
  }
  for (size_t i = 0; i < function.arguments.size(); ++i) {
    if (function.type_of(function.body.arguments[i]) != function.arguments[i].type) {
      ir::fail(
          "invalid_program", where,
          fmt::format("argument {} of @{} is {} in its type, but {} in its body", i, function.name,
                      to_string(function.arguments[i].type), to_string(function.type_of(function.body.arguments[i]))));
    }
  }
  for (const char* name : {"sym_name", "sym_visibility", "function_type", "arg_attrs", "res_attrs"})
    take_attribute(attributes, name);
}

}  // namespace meshd::program
