// Ops: names in scope, the generic form, regions, locations. A name must be defined above its use: that is dominance,
// because regions have one block.
#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "service/core/near_names.h"
#include "service/program/bytecode/vhlo_forms.h"
#include "service/program/parse/parser.h"

namespace meshd::program {
namespace {

/// Attributes of no row: they hold anyway, or repeat the types.
bool is_dropped(std::string_view name) {
  return name == "operandSegmentSizes" || name == "resultSegmentSizes" || name == "result_accuracy";
}

/// Takes out an accuracy that vector math keeps; refuses one that it may not.
void drop_accuracy(ir::Op& op) {
  const ir::Attribute* attribute = ir::find(op.attributes, "result_accuracy");
  if (attribute == nullptr) return;
  constexpr int64_t kUlps = 4;
  const auto* accuracy = attribute->as<ir::DictAttr>();
  const bool has_tolerance = accuracy == nullptr || ir::string_or(accuracy->entries, "mode", "DEFAULT") == "TOLERANCE";
  if (has_tolerance && (accuracy == nullptr || ir::int_or(accuracy->entries, "ulps", 0) < kUlps)) {
    ir::fail("unsupported_attribute", op.location,
             fmt::format("'result_accuracy' of '{}': results are within {} units in the last place", op.name, kUlps));
  }
  std::erase_if(op.attributes, [](const ir::NamedAttribute& entry) { return entry.name == "result_accuracy"; });
}

/// The directions of a barrier, which MLIR writes by their numbers in the generic form.
void name_direction(ir::NamedAttribute& entry) {
  constexpr std::array<std::string_view, 4> kDirections = {"NONE", "FORWARD", "BACKWARD", "BOTH"};
  const auto* number = entry.value.as<ir::IntegerAttr>();
  if (entry.name != "allowed_direction" || number == nullptr || number->value < 0 ||
      number->value >= static_cast<int64_t>(kDirections.size()))
    return;
  entry.value = {
      ir::EnumAttr{"sdy.propagation_direction", std::string(kDirections[static_cast<size_t>(number->value)])}};
}

/// An index among the elements of an attribute is an i64 as a value.
void drop_index(ir::Op& op) {
  for (auto& [name, value] : op.attributes) {
    auto* dense = std::get_if<ir::DenseAttr>(&value.value);
    if (dense != nullptr && name == "value") dense->is_index = false;
  }
}

/// A field of a pretty form and the dictionary behind it may contain the same attribute.
void refuse_doubles(const ir::Op& op) {
  std::vector<std::string_view> names;
  names.reserve(op.attributes.size());
  for (const auto& [name, value] : op.attributes) names.push_back(name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice == names.end()) return;
  ir::fail("program_syntax", op.location, fmt::format("attribute '{}' of '{}' is given twice", *twice, op.name));
}

/// XLA's own printers, and texts before 2023, name ops by the dialect that StableHLO came from, which also has those of
/// chlo; pretty forms leave the function dialect's out.
const ops::OpDef* find_op(std::string_view name) {
  constexpr std::string_view kOld = "mhlo.";
  if (name.find('.') == std::string_view::npos) return ops::find_op("func." + std::string(name));
  if (const ops::OpDef* def = ops::find_op(name); def != nullptr || !name.starts_with(kOld)) return def;
  const std::string short_name(name.substr(kOld.size()));
  const ops::OpDef* def = ops::find_op("stablehlo." + short_name);
  return def != nullptr ? def : ops::find_op("chlo." + short_name);
}

/// "; did you mean 'stablehlo.add'?" for a name that is nearly that of an op.
std::string nearest_op(const std::string& name) {
  std::vector<std::string_view> names;
  for (const ops::OpDef& def : ops::all_ops()) names.push_back(def.name);
  std::string_view nearest = core::nearest_name(name, names);
  // Without its dialect, as some printers and people write it.
  if (nearest.empty() && name.find('.') == std::string::npos) nearest = core::nearest_name("stablehlo." + name, names);
  return core::did_you_mean(nearest);
}

}  // namespace

void Parser::set_op(OperationState& state, const Token& where, std::string name) {
  state.def = find_op(name);
  if (state.def == nullptr)
    fail("unsupported_op", where, fmt::format("op '{}' is not supported{}", name, nearest_op(name)));
  state.op.code = ops::code_of(*state.def);
  state.op.name = std::string(state.def->name);
}

void Parser::op() {
  OperationState state;
  state.op.location = token_.location();
  while (token_.is(TokenKind::kValue)) {
    const Token name = take();
    int64_t count = 1;
    if (accept(':')) {
      const Token number = token_;
      count = integer("the number of results");
      if (count < 1 || count > INT32_MAX) fail("program_syntax", number, "the number of results must be at least 1");
    }
    state.result_names.emplace_back(name, count);
    if (!accept(',')) {
      expect('=', "behind the names of results");
      break;
    }
  }
  const Token name = token_;
  if (name.is(TokenKind::kString)) {
    advance();
    std::string op_name = unescape(name);
    state.is_vhlo = op_name.starts_with("vhlo.");
    if (state.is_vhlo) op_name = todays_op_name(op_name, region_depth_ == function_depth_);
    if (is_async(op_name)) return async_op(state, name, op_name);
    if (is_scalar_op(op_name)) return scalar_op(state, name, op_name, true);
    set_op(state, name, op_name);
    generic_op(state);
  } else if (name.is(TokenKind::kWord)) {
    advance();
    if (is_scalar_op(name.text)) return scalar_op(state, name, std::string(name.text), false);
    set_op(state, name, std::string(name.text));
    pretty_op(state);
  } else {
    expected("an op");
  }
  finish_op(state, name);
}

void Parser::finish_op(OperationState& state, const Token& where) {
  state.op.location.name = optional_location();
  refuse_doubles(state.op);
  drop_accuracy(state.op);
  drop_index(state.op);
  const auto first = static_cast<ir::ValueId>(function_->values.size());
  for (size_t i = 0; i < state.result_types.size(); ++i) {
    state.op.results.push_back(function_->add_value(std::move(state.result_types[i])));
  }
  name_results(state, where, first, state.result_types.size());
  region_->ops.push_back(std::move(state.op));
}

void Parser::name_results(const OperationState& state, const Token& where, ir::ValueId first, size_t result_count) {
  int64_t named = 0;
  for (const auto& [name, count] : state.result_names) named += count;
  if (named != 0 && named != static_cast<int64_t>(result_count)) {
    fail("invalid_program", where,
         fmt::format("'{}' has {} results, but {} are named", state.op.name, result_count, named));
  }
  for (const auto& [name, count] : state.result_names) {
    define(name, first, count);
    first += static_cast<ir::ValueId>(count);
  }
}

void Parser::define(const Token& name, ir::ValueId first, int64_t count) {
  if (!names_.emplace(name.text, Definition{first, count}).second) {
    fail("invalid_program", name, "value " + describe(name) + " is defined twice");
  }
  defined_.push_back(name.text);
  for (int64_t i = 0; i < count; ++i) {
    std::string text(name.text);
    if (count > 1) text += fmt::format("#{}", i);
    function_->values[static_cast<size_t>(first + i)].name = std::move(text);
  }
}

ir::ValueId Parser::value_use() {
  const Token name = expect(TokenKind::kValue, "a value such as %0");
  const auto found = names_.find(name.text);
  if (found == names_.end()) fail("invalid_program", name, "value " + describe(name) + " is not defined above its use");
  int64_t index = 0;
  if (token_.is(TokenKind::kHash)) {
    const Token number = take();
    index = -1;
    if (number.text.size() <= 10 && number.text[1] >= '0' && number.text[1] <= '9') {
      index = std::stoll(std::string(number.text.substr(1)));
    }
    if (index < 0 || index >= found->second.count) {
      fail("invalid_program", number,
           fmt::format("value {} has {} results, there is no {}", describe(name), found->second.count,
                       describe(number)));
    }
  }
  return found->second.first + static_cast<ir::ValueId>(index);
}

std::vector<ir::ValueId> Parser::operands_in_parentheses() {
  std::vector<ir::ValueId> out;
  list('(', ')', "around operands", [&] { out.push_back(value_use()); });
  return out;
}

void Parser::check_operands(const OperationState& state, const std::vector<ir::Type>& types) {
  const ir::Op& op = state.op;
  if (types.size() != op.operands.size()) {
    ir::fail("invalid_program", op.location,
             fmt::format("'{}' has {} operands, but {} operand types", op.name, op.operands.size(), types.size()));
  }
  for (size_t i = 0; i < types.size(); ++i) {
    const ir::Value& value = function_->values[static_cast<size_t>(op.operands[i])];
    if (value.type == types[i]) continue;
    ir::fail("invalid_program", op.location,
             fmt::format("operand {} of '{}' is used as {}, but its type is {}", value.name, op.name,
                         to_string(types[i]), to_string(value.type)));
  }
}

void Parser::generic_op(OperationState& state) {
  ir::Op& op = state.op;
  op.operands = operands_in_parentheses();
  if (at('[')) fail("unsupported_op", token_, "ops with successor blocks are not supported");
  if (at('<')) {
    advance();
    const Token where = token_;
    op.attributes = attribute_dict();
    expect('>', "behind the properties of an op");
    if (state.is_vhlo) op.attributes = from_vhlo(std::move(op.attributes));
    for (ir::NamedAttribute& entry : op.attributes) {
      auto& [name, value] = entry;
      const auto& known = state.def->signature.attributes;
      const auto found =
          std::find_if(known.begin(), known.end(), [&](const ops::AttributeSpec& spec) { return spec.name == name; });
      if (found == known.end() && !is_dropped(name))
        fail("unsupported_attribute", where, fmt::format("op '{}' has no attribute '{}'", op.name, name));
      if (found == known.end()) continue;
      name_direction(entry);
      if (found->kept_as.empty()) continue;
      name = found->kept_as;
      // An edge's sharding is its results': one for each.
      auto* held = std::get_if<ir::ShardingAttr>(&value.value);
      if (held != nullptr && name == "sdy.sharding") held->per_value = true;
    }
    std::erase_if(op.attributes, [](const ir::NamedAttribute& entry) {
      return entry.name != "result_accuracy" && is_dropped(entry.name);
    });
  }
  if (at('(')) {
    list('(', ')', "around regions", [&] { op.regions.push_back(region({})); });
  }
  if (at('{')) {
    const Token where = token_;
    for (auto& [name, value] : attribute_dict()) {
      if (find(op.attributes, name) != nullptr)
        fail("program_syntax", where, "attribute '" + name + "' is given twice");
      op.attributes.emplace_back(std::move(name), std::move(value));
    }
  }
  expect(':', "before the type of an op");
  check_operands(state, type_list_in_parentheses());
  expect(TokenKind::kArrow, "'->' in the type of an op");
  state.result_types = result_types();
}

std::vector<BlockArgument> Parser::block_arguments() {
  std::vector<BlockArgument> out;
  list('(', ')', "around arguments", [&] {
    BlockArgument argument;
    argument.name = expect(TokenKind::kValue, "the name of an argument");
    expect(':', "behind the name of an argument");
    argument.type = type();
    optional_location();
    out.push_back(std::move(argument));
  });
  return out;
}

ir::Region Parser::region(const std::vector<BlockArgument>& arguments) {
  const Token start = token_;
  if (++region_depth_ > kMaxRegionDepth) {
    fail("invalid_program", start, fmt::format("regions nest more than {} deep", kMaxRegionDepth));
  }
  expect('{', "at the start of a region");
  ir::Region out;
  ir::Region* outer = region_;
  region_ = &out;
  const size_t names_before = defined_.size();
  std::vector<BlockArgument> all = arguments;
  if (token_.is(TokenKind::kBlock)) {
    if (!arguments.empty()) expected("an op, because the region's arguments are before it");
    advance();
    if (at('(')) all = block_arguments();
    expect(':', "behind the label of a block");
  }
  for (const BlockArgument& argument : all) {
    out.arguments.push_back(function_->add_value(argument.type));
    define(argument.name, out.arguments.back(), 1);
  }
  while (!at('}')) {
    if (token_.is(TokenKind::kEnd)) fail("program_syntax", start, "the region that begins here is not closed");
    if (token_.is(TokenKind::kBlock))
      fail("unsupported_op", token_, "regions of more than one block are not supported");
    op();
  }
  advance();
  for (size_t i = names_before; i < defined_.size(); ++i) names_.erase(defined_[i]);
  defined_.resize(names_before);
  region_ = outer;
  --region_depth_;
  return out;
}

std::string Parser::optional_location() {
  if (!at("loc")) return {};
  advance();
  return location_body();
}

std::string Parser::location_body() {
  if (!at('(')) expected("'(' behind 'loc'");
  std::string name;
  const Lexer inside = lexer_;
  Lexer peek = inside;
  // The first string or alias inside is the name: loc("name"(#loc1)), loc("file":3:1), loc(callsite(#loc1 at ...)).
  for (Token token = peek.next(); !token.is(')') && !token.is(TokenKind::kEnd); token = peek.next()) {
    if (token.is(TokenKind::kString)) {
      name = unescape(token);
      if (peek.next().is(':')) {
        const Token line = peek.next();
        if (line.is(TokenKind::kInteger)) name += ":" + std::string(line.text);
      }
      break;
    }
    if (token.is(TokenKind::kHash)) {
      name = kAlias + std::string(token.text);
      break;
    }
  }
  skip_balanced();
  return name;
}

}  // namespace meshd::program
