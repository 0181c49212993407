#include "service/program/bytecode/module_printer.h"

#include <fmt/core.h>

#include <algorithm>

#include "service/program/bytecode/op_properties.h"
#include "service/program/bytecode/vhlo_forms.h"
#include "service/program/limits.h"
#include "service/program/print.h"

namespace meshd::program {
namespace {

// Which parts an op has.
constexpr uint8_t kHasAttributes = 0x01;
constexpr uint8_t kHasResults = 0x02;
constexpr uint8_t kHasOperands = 0x04;
constexpr uint8_t kHasSuccessors = 0x08;
constexpr uint8_t kHasRegions = 0x10;
constexpr uint8_t kHasUseLists = 0x20;
constexpr uint8_t kHasProperties = 0x40;

/// Stands between VHLO's types and those of other dialects, which mean the same: its results are its operands.
constexpr std::string_view kCast = "builtin.unrealized_conversion_cast";

constexpr std::string_view kPlatformArgument = "_platform_index";

const AttributeIndex* find_index(const NamedIndices& list, std::string_view name) {
  const auto found = std::find_if(list.begin(), list.end(), [&](const auto& entry) { return entry.first == name; });
  return found == list.end() ? nullptr : &found->second;
}

}  // namespace

void ModulePrinter::indent(int depth) {
  for (int i = 0; i < depth; ++i) out_ << "  ";
}

void ModulePrinter::print() {
  ByteReader reader = file_.ir();
  Scope scope;
  RegionValues none;
  const auto [count, has_arguments] = reader.flagged_varint();
  if (count != 1 || has_arguments) reader.fail(fmt::format("one module is expected, got {} ops", count));
  op(reader, scope, none, 0, false);
  if (!reader.empty()) reader.fail("bytes are left behind the module");
}

void ModulePrinter::read_properties(ByteReader& reader, Operation& out, const BytecodeOpName& name) {
  const std::string_view bytes = file_.properties()[reader.index(file_.properties().size(), "property")];
  ByteReader properties = reader.within(bytes);
  const OpProperties* row = find_properties(name.name);
  if (!name.is_registered || row == nullptr)
    properties.fail("op '" + name.name + "' is not supported", "unsupported_op");
  std::string_view rest = row->attributes;
  while (!rest.empty()) {
    bool is_optional = false;
    const std::string_view attribute = next_property(rest, is_optional);
    const auto index =
        is_optional ? tables_.read_optional_attribute(properties) : std::optional(tables_.read_attribute(properties));
    if (index) out.inherent.emplace_back(attribute, *index);
  }
  if (row->has_segments) properties.take(properties.remaining());
  if (!properties.empty())
    properties.fail("op '" + name.name + "' has more attributes than are known of it", "unsupported_op");
}

void ModulePrinter::read_attributes(ByteReader& reader, Operation& out, const BytecodeOpName& name, uint8_t mask) {
  if ((mask & kHasAttributes) != 0) {
    const AttributeIndex index = tables_.read_attribute(reader);
    const AttributeNode& all = tables_.attribute(index);
    if (all.kind != AttributeNode::Kind::kDict) reader.fail("attributes of an op must be a dictionary");
    // Before there were properties, all attributes were here.
    const bool has_both = file_.version() < bytecode_version::kProperties;
    const OpProperties* row = has_both ? find_properties(name.name) : nullptr;
    for (size_t i = 0; i + 1 < all.children.size(); i += 2) {
      const AttributeNode& key = tables_.attribute(all.children[i]);
      if (key.kind != AttributeNode::Kind::kString) reader.fail("the name of an attribute must be a string");
      bool is_inherent = false;
      if (row != nullptr) {
        std::string_view rest = row->attributes;
        bool is_optional = false;
        while (!rest.empty() && !is_inherent) is_inherent = next_property(rest, is_optional) == key.text;
      }
      (is_inherent ? out.inherent : out.discardable).emplace_back(key.text, all.children[i + 1]);
    }
  }
  if ((mask & kHasProperties) == 0) return;
  if (file_.version() < bytecode_version::kProperties) reader.fail("an op of this version has no properties");
  read_properties(reader, out, name);
}

void ModulePrinter::define(ByteReader& reader, Scope& scope, RegionValues& values, Value value) {
  if (values.next == values.end) reader.fail("a region defines more values than it says");
  scope.values[values.next++] = value;
}

void ModulePrinter::print_value(const Value& value) {
  out_ << (value.is_argument ? "%arg" : "%") << value.number;
  if (value.of_pack >= 0) out_ << "#" << value.of_pack;
}

void ModulePrinter::skip_use_lists(ByteReader& reader, size_t values) const {
  const size_t count = values > 1 ? reader.count("orders of uses") : 1;
  for (size_t i = 0; i < count; ++i) {
    if (values > 1) reader.varint();
    const auto [indices, is_pairs] = reader.flagged_varint();
    if (indices > reader.remaining()) reader.fail("an order of uses is longer than the bytes that there are");
    for (uint64_t k = 0; k < indices; ++k) reader.varint();
  }
}

bool ModulePrinter::takes_platform(const Operation& function) {
  if (!options_.platform_index) return false;
  const AttributeIndex* name = find_index(function.inherent, "sym_name");
  const AttributeIndex* arguments = find_index(function.inherent, "arg_attrs");
  if (name == nullptr || arguments == nullptr || tables_.attribute(*name).text != "main") return false;
  const AttributeNode& all = tables_.attribute(*arguments);
  if (all.kind != AttributeNode::Kind::kArray || all.children.empty()) return false;
  const AttributeNode& first = tables_.attribute(all.children[0]);
  for (size_t i = 0; i + 1 < first.children.size() && first.kind == AttributeNode::Kind::kDict; i += 2) {
    if (tables_.attribute(first.children[i]).text == "jax.global_constant")
      return tables_.attribute(first.children[i + 1]).text == kPlatformArgument;
  }
  return false;
}

void ModulePrinter::print_function_entry(std::string_view name, AttributeIndex value) {
  // An attribute of @main without what it says of the first argument.
  const AttributeNode& node = tables_.attribute(value);
  out_ << name << " = ";
  if (node.kind == AttributeNode::Kind::kArray) {
    out_ << "[";
    for (size_t i = 1; i < node.children.size(); ++i) {
      if (i > 1) out_ << ", ";
      tables_.print_attribute(node.children[i], out_);
    }
    out_ << "]";
    return;
  }
  const TypeNode& type = tables_.type(node.type);
  if (node.kind != AttributeNode::Kind::kType || type.kind != TypeNode::Kind::kFunction || type.input_count == 0)
    throw core::Error("program_syntax", "the type of @main in the bytecode is not a function of a platform");
  const auto inputs = type.elements.begin() + static_cast<std::ptrdiff_t>(type.input_count);
  tables_.print_types({type.elements.begin() + 1, inputs}, out_);
  out_ << " -> ";
  tables_.print_types({inputs, type.elements.end()}, out_);
}

void ModulePrinter::print_inherent(const Operation& op) {
  if (op.inherent.empty()) return;
  if (op.is_vhlo && !op.is_function) {
    print_vhlo_attributes(op.inherent, tables_, out_);
    return;
  }
  bool is_first = true;
  for (const auto& [name, value] : op.inherent) {
    const AttributeNode& node = tables_.attribute(value);
    // VHLO's functions write what they do not have as empty text.
    if (op.is_vhlo && node.kind == AttributeNode::Kind::kString && node.text.empty()) continue;
    if (op.is_vhlo && node.kind == AttributeNode::Kind::kArray && node.children.empty()) continue;
    out_ << (is_first ? " <{" : ", ");
    is_first = false;
    if (op.drops_argument && (name == "function_type" || name == "arg_attrs")) {
      print_function_entry(name, value);
    } else {
      tables_.print_entry(name, value, out_);
    }
  }
  if (!is_first) out_ << "}>";
}

void ModulePrinter::print_discardable(const Operation& op) {
  for (size_t i = 0; i < op.discardable.size(); ++i) {
    out_ << (i == 0 ? " {" : ", ");
    tables_.print_entry(op.discardable[i].first, op.discardable[i].second, out_);
  }
  if (!op.discardable.empty()) out_ << "}";
}

void ModulePrinter::op(ByteReader& reader, Scope& scope, RegionValues& values, int depth, bool in_function) {
  const BytecodeOpName& name = file_.ops()[reader.index(file_.ops().size(), "name of an op")];
  const uint8_t mask = reader.byte();
  const AttributeIndex location = tables_.read_attribute(reader);
  Operation op;
  op.is_vhlo = name.name.starts_with("vhlo.");
  op.name = todays_op_name(name.name, in_function);
  op.is_function = op.name == "func.func";
  read_attributes(reader, op, name, mask);
  if ((mask & kHasResults) != 0) {
    op.results.resize(reader.count("results"));
    for (TypeIndex& type : op.results) type = tables_.read_type(reader);
  }
  if ((mask & kHasOperands) != 0) {
    op.operands.resize(reader.count("operands"));
    for (size_t& operand : op.operands) {
      operand = reader.index(scope.values.size(), "value");
      if (scope.values[operand].number < 0)
        reader.fail("op '" + name.name + "' uses a value that is defined behind it");
    }
  }
  if ((mask & kHasSuccessors) != 0)
    reader.fail("ops with successor blocks are not supported ('" + name.name + "')", "unsupported_op");
  if ((mask & kHasUseLists) != 0) skip_use_lists(reader, op.results.size());
  if (name.name == kCast && op.operands.size() == op.results.size() && (mask & kHasRegions) == 0) {
    for (size_t i = 0; i < op.results.size(); ++i) {
      Value same = scope.values[op.operands[i]];
      same.type = op.results[i];
      define(reader, scope, values, same);
    }
    return;
  }
  indent(depth);
  std::vector<Value> defined;
  if (!op.results.empty()) {
    const int32_t number = result_count_++;
    const bool is_pack = op.results.size() > 1;
    out_ << "%" << number;
    if (is_pack) out_ << ":" << static_cast<int64_t>(op.results.size());
    out_ << " = ";
    for (size_t i = 0; i < op.results.size(); ++i)
      defined.push_back({op.results[i], number, is_pack ? static_cast<int32_t>(i) : -1, false});
  }
  out_ << quoted(op.name) << "(";
  for (size_t i = 0; i < op.operands.size(); ++i) {
    if (i) out_ << ", ";
    print_value(scope.values[op.operands[i]]);
  }
  out_ << ")";
  op.drops_argument = op.is_function && takes_platform(op);
  print_inherent(op);
  // Results have their places in front of those of the regions within.
  for (const Value& value : defined) define(reader, scope, values, value);
  if ((mask & kHasRegions) != 0) {
    if (depth >= kMaxRegionDepth) reader.fail(fmt::format("regions nest more than {} deep", kMaxRegionDepth));
    const auto [count, is_isolated] = reader.flagged_varint();
    if (count > reader.remaining()) reader.fail("there are fewer bytes than regions");
    Scope inner;
    ByteReader section = reader;
    const bool is_section = is_isolated && file_.version() >= bytecode_version::kRegionSections && count != 0;
    if (is_section) {
      constexpr uint8_t kIrSection = 4;
      const ByteReader::Section found = reader.section();
      if (found.id != kIrSection) reader.fail("the section of a region is expected");
      section = reader.within(found.bytes);
    }
    ByteReader& from = is_section ? section : reader;
    for (uint64_t i = 0; i < count; ++i) {
      out_ << (i == 0 ? " (" : ", ");
      region(from, is_isolated ? inner : scope, depth + 1, op);
    }
    if (count != 0) out_ << ")";
    if (is_section && !section.empty()) section.fail("bytes are left behind a region");
  }
  print_discardable(op);
  out_ << " : (";
  for (size_t i = 0; i < op.operands.size(); ++i) {
    if (i) out_ << ", ";
    tables_.print_type(scope.values[op.operands[i]].type, out_);
  }
  out_ << ") -> ";
  tables_.print_results(op.results, out_);
  if (const std::string place = tables_.location_name(location); !place.empty())
    out_ << " loc(" << quoted(place) << ")";
  out_ << "\n";
}

void ModulePrinter::region(ByteReader& reader, Scope& scope, int depth, const Operation& around) {
  const uint64_t blocks = reader.varint();
  if (blocks > 1)
    reader.fail("regions of more than one block are not supported ('" + around.name + "')", "unsupported_op");
  out_ << "{\n";
  if (blocks == 1) {
    const uint64_t count = reader.varint();
    // Each value takes a byte at least, of those that are not read yet or of those of a region around this one.
    const size_t before = scope.values.size();
    if (count > reader.remaining() || before + count > file_.ir().remaining())
      reader.fail(fmt::format("a region of '{}' says that it defines {} values", around.name, count));
    memory_.take(static_cast<size_t>(count) * sizeof(Value));
    scope.values.resize(before + static_cast<size_t>(count));
    RegionValues values{before, before + static_cast<size_t>(count)};
    block(reader, scope, values, depth, around);
    scope.values.resize(before);
  }
  indent(depth - 1);
  out_ << "}";
}

void ModulePrinter::block(ByteReader& reader, Scope& scope, RegionValues& values, int depth, const Operation& around) {
  const auto [ops, has_arguments] = reader.flagged_varint();
  if (ops > reader.remaining()) reader.fail("there are fewer bytes than ops");
  if (has_arguments) {
    const size_t count = reader.count("arguments");
    bool is_first = true;
    for (size_t i = 0; i < count; ++i) {
      Value value;
      if (file_.version() >= bytecode_version::kShortBlockArguments) {
        const auto [type, has_location] = reader.flagged_varint();
        if (type >= file_.types().size()) reader.fail(fmt::format("there is no type {}", type));
        value.type = static_cast<TypeIndex>(type);
        if (has_location) tables_.read_attribute(reader);
      } else {
        value.type = tables_.read_type(reader);
        tables_.read_attribute(reader);
      }
      const bool is_dropped = around.drops_argument && i == 0;
      value.is_argument = !is_dropped;
      value.number = is_dropped ? result_count_++ : argument_count_++;
      define(reader, scope, values, value);
      if (is_dropped) continue;
      if (is_first) indent(depth - 1);
      out_ << (is_first ? "^bb0(" : ", ");
      is_first = false;
      print_value(value);
      out_ << ": ";
      tables_.print_type(value.type, out_);
    }
    if (!is_first) out_ << "):\n";
    if (file_.version() >= bytecode_version::kUseListOrders && reader.byte() != 0) skip_use_lists(reader, count);
    if (around.drops_argument && count != 0) {
      const Value& platform = scope.values[values.next - count];
      indent(depth);
      print_value(platform);
      out_ << " = \"stablehlo.constant\"() <{value = dense<" << *options_.platform_index << "> : ";
      tables_.print_type(platform.type, out_);
      out_ << "}> : () -> ";
      tables_.print_type(platform.type, out_);
      out_ << "\n";
    }
  }
  for (uint64_t i = 0; i < ops; ++i) op(reader, scope, values, depth, around.is_function);
}

}  // namespace meshd::program
