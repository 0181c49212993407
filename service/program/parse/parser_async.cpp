// Asynchronous ops. When they begin and end is for a scheduler to choose, so that the program means the same without
// them: an op starts where its value is defined, and is over by then. Futures become tuples.
//
//   %f = "stablehlo.async_start"(%a) ({^bb0(%x): ... return %y}) : (A) -> !stablehlo.future<B>
//     ->  %y = sdy.named_computation<"async">(%a) (%x) {... return %y};  %f = tuple %y : tuple<B>
//   %f = "mhlo.async_start"(%a) {called_computation = @g} : (A) -> !mhlo.async_bundle<A, B>
//     ->  %y = call @g(%a);  %f = tuple %y : tuple<B>
//   %g = "mhlo.async_update"(%f)                           ->  another name of %f
//   %y = "stablehlo.async_done"(%f) : (...) -> B           ->  %y = get_tuple_element %f[0]
#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "service/program/parse/parser.h"

namespace meshd::program {
namespace {

bool ends_with_op(std::string_view name, std::string_view op) {
  return (name.starts_with("stablehlo.") || name.starts_with("mhlo.")) && name.substr(name.find('.') + 1) == op;
}

ir::Type tuple_of(std::vector<ir::Type> elements) {
  ir::Type out;
  out.kind = ir::TypeKind::kTuple;
  out.elements = std::move(elements);
  return out;
}

}  // namespace

bool Parser::is_async(std::string_view name) {
  return ends_with_op(name, "async_start") || ends_with_op(name, "async_update") || ends_with_op(name, "async_done");
}

ir::Type Parser::future_type() {
  const Token start = take();
  std::vector<ir::Type> elements;
  list('<', '>', "in the type of an asynchronous op", [&] { elements.push_back(type()); });
  if (start.text == kFuture) return tuple_of(std::move(elements));
  // A bundle has the operands, the result and what else is kept.
  if (elements.size() < 2) fail("program_syntax", start, "a bundle has the types of operands and of a result");
  ir::Type result = std::move(elements[1]);
  return result.kind == ir::TypeKind::kTuple ? result : tuple_of({std::move(result)});
}

ir::ValueId Parser::append(std::string_view name, const ir::Location& location, std::vector<ir::ValueId> operands,
                           std::vector<ir::Type> results, ir::AttributeList attributes,
                           std::vector<ir::Region> regions) {
  const ops::OpDef* def = ops::find_op(name);
  ir::Op op;
  op.code = ops::code_of(*def);
  op.name = std::string(def->name);
  op.location = location;
  op.operands = std::move(operands);
  op.attributes = std::move(attributes);
  op.regions = std::move(regions);
  const auto first = static_cast<ir::ValueId>(function_->values.size());
  for (ir::Type& type : results) op.results.push_back(function_->add_value(std::move(type)));
  region_->ops.push_back(std::move(op));
  return first;
}

void Parser::async_op(OperationState& state, const Token& where, const std::string& name) {
  const bool is_start = ends_with_op(name, "async_start");
  state.op.name = name;
  state.op.operands = operands_in_parentheses();
  if (accept('<')) {
    state.op.attributes = attribute_dict();
    expect('>', "behind the properties of an op");
  }
  if (at('(')) list('(', ')', "around regions", [&] { state.op.regions.push_back(region({})); });
  if (at('{')) {
    for (auto& entry : attribute_dict()) state.op.attributes.push_back(std::move(entry));
  }
  expect(':', "before the type of an op");
  check_operands(state, type_list_in_parentheses());
  expect(TokenKind::kArrow, "'->' in the type of an op");
  std::vector<ir::Type> types = result_types();
  state.op.location.name = optional_location();
  const auto as_future = [&](const ir::Type& type) {
    if (type.kind == ir::TypeKind::kTuple) return type.elements;
    fail("invalid_program", where,
         fmt::format("'{}' needs the type of an asynchronous op, got {}", name, to_string(type)));
  };
  if (is_start ? types.size() != 1 : state.op.operands.size() != 1)
    fail("invalid_program", where, "'" + name + "' has one value that is a future");

  ir::ValueId first = 0;
  if (is_start) {
    const std::vector<ir::Type> made = as_future(types[0]);
    const ir::Attribute* callee = ir::find(state.op.attributes, "called_computation");
    ir::ValueId inside = 0;
    if (callee != nullptr) {
      inside = append("func.call", state.op.location, state.op.operands, made, {{"callee", *callee}}, {});
    } else if (state.op.regions.size() == 1) {
      inside = append("sdy.named_computation", state.op.location, state.op.operands, made,
                      {{"name", ir::Attribute{ir::StringAttr{"async"}}}}, std::move(state.op.regions));
    } else {
      fail("invalid_program", where, "'" + name + "' needs a region or a called_computation");
    }
    std::vector<ir::ValueId> values;
    for (size_t i = 0; i < made.size(); ++i) values.push_back(inside + static_cast<ir::ValueId>(i));
    first = append("stablehlo.tuple", state.op.location, std::move(values), types, {}, {});
  } else if (ends_with_op(name, "async_update")) {
    if (types.size() != 1 || types[0] != function_->type_of(state.op.operands[0]))
      fail("invalid_program", where, "'" + name + "' gives the type that it takes");
    first = state.op.operands[0];
  } else {
    std::vector<ir::Type> made = as_future(function_->type_of(state.op.operands[0]));
    // HLO's tuple of results is one value.
    if (types.size() == 1 && types[0].kind == ir::TypeKind::kTuple && types[0].elements == made && made.size() != 1) {
      first = state.op.operands[0];
    } else if (types != made) {
      fail("invalid_program", where, "'" + name + "' has other results than the op that it ends");
    } else {
      for (size_t i = 0; i < made.size(); ++i) {
        const ir::ValueId element =
            append("stablehlo.get_tuple_element", state.op.location, state.op.operands, {made[i]},
                   {{"index", ir::Attribute{ir::IntegerAttr{static_cast<int64_t>(i), "i32"}}}}, {});
        if (i == 0) first = element;
      }
    }
  }
  name_results(state, where, first, types.size());
}

}  // namespace meshd::program
