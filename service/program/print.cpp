#include "service/program/print.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>

#include "service/ir/float_text.h"
#include "service/ops/op_def.h"
#include "service/program/literals/hex.h"

namespace meshd::program {
namespace {

/// Constants of at most so many integers are printed as a list, others in hex.
constexpr int64_t kMaxListed = 64;

bool is_plain_word(std::string_view text, bool is_symbol) {
  if (text.empty() || (text[0] >= '0' && text[0] <= '9')) return false;
  return std::all_of(text.begin(), text.end(),
                     [&](char c) {
                       return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
                              c == '.' || c == '$' || (is_symbol && c == '-');
                     }) &&
         text[0] != '.' && text[0] != '$' && text[0] != '-';
}

std::string joined(const std::vector<int64_t>& values) {
  std::string out;
  for (size_t i = 0; i < values.size(); ++i) out += fmt::format("{}{}", i ? ", " : "", values[i]);
  return out;
}

/// 1.5 and 1.0e-03, always with a point; bits in hex where there is no decimal.
std::string float_text(double value, std::string_view type) {
  if (!std::isfinite(value)) {
    char bits[24];
    const uint64_t raw =
        type == "f32" ? std::bit_cast<uint32_t>(static_cast<float>(value)) : std::bit_cast<uint64_t>(value);
    const auto end = std::to_chars(bits, bits + sizeof(bits), raw, 16).ptr;
    return "0x" + std::string(bits, end);
  }
  return type == "f64" ? ir::float_text(value) : ir::float_text(static_cast<float>(value));
}

std::string list_text(const std::vector<int64_t>& values, const tensor::Dims& dims, size_t depth, size_t& next,
                      bool as_bool) {
  if (depth == dims.size()) {
    const int64_t value = values[next++];
    return as_bool ? (value != 0 ? "true" : "false") : std::to_string(value);
  }
  std::string out = "[";
  for (int64_t i = 0; i < dims[depth]; ++i) out += (i ? ", " : "") + list_text(values, dims, depth + 1, next, as_bool);
  return out + "]";
}

std::string dense_text(const ir::DenseAttr& dense) {
  const std::string element(tensor::row(dense.type.dtype).stablehlo);
  std::string type = tensor::to_string(dense.type);
  if (dense.is_index) type.replace(type.size() - element.size(), element.size(), "index");
  const std::string tail = "> : tensor<" + type + ">";
  if (dense.bytes->empty()) return "dense<" + tail;
  const int64_t stored = dense.splat ? 1 : tensor::element_count(dense.type);
  const bool is_bool = dense.type.dtype == tensor::DType::kBool;
  // ui64 beyond 63 bits has no int64 to be printed from.
  const bool listed =
      (is_bool || (tensor::is_integer(dense.type.dtype) && dense.type.dtype != tensor::DType::kUint64)) &&
      stored <= kMaxListed;
  if (!listed) return "dense<\"" + encode_hex(*dense.bytes) + "\"" + tail;
  ir::DenseAttr one = dense;
  if (dense.splat) one.type.dims.clear();
  one.splat = false;
  const std::vector<int64_t> values = ir::dense_ints(one);
  size_t next = 0;
  return "dense<" + list_text(values, one.type.dims, 0, next, is_bool) + tail;
}

std::string field_text(const ir::Attribute& attribute) {
  if (const auto* integer = attribute.as<ir::IntegerAttr>(); integer != nullptr && integer->type == "i64") {
    return std::to_string(integer->value);
  }
  if (const auto* array = attribute.as<ir::IntArrayAttr>()) return "[" + joined(array->values) + "]";
  return print(attribute);
}

// #sdy<list_of_axis_ref_lists[{"x"}, {}]> and similar.
std::string axis_lists_text(const ir::DictAttr& dict) {
  const bool is_one = dict.name == "sdy.axis_ref_list";
  std::string out = "#sdy<" + dict.name.substr(dict.name.find('.') + 1) + (is_one ? "" : "[");
  for (size_t i = 0; i < dict.entries.size(); ++i) {
    const auto& [dims, axes] = dict.entries[i];
    out += i ? ", {" : "{";
    const auto& names = axes.as<ir::ArrayAttr>()->values;
    for (size_t a = 0; a < names.size(); ++a) out += (a ? ", " : "") + names[a].as<ir::StringAttr>()->value;
    out += dims.empty() ? "}" : "}: " + dims;
  }
  return out + (is_one ? ">" : "]>");
}

std::string dict_text(const ir::DictAttr& dict) {
  if (dict.name.starts_with("sdy.")) return axis_lists_text(dict);
  if (dict.name.empty()) return dict.entries.empty() ? "{}" : print(dict.entries);
  std::string out = "#" + dict.name + "<";
  for (size_t i = 0; i < dict.entries.size(); ++i) {
    if (i == 0 && dict.name == "stablehlo.conv") out += "raw ";
    out += (i ? ", " : "") + dict.entries[i].name + " = " + field_text(dict.entries[i].value);
  }
  return out + ">";
}

std::string enum_text(const ir::EnumAttr& word) {
  if (word.kind.empty()) return word.value;
  const size_t dot = word.kind.find('.');
  if (dot == std::string::npos) return "#stablehlo<" + word.kind + " " + word.value + ">";
  return "#" + word.kind.substr(0, dot) + "<" + word.kind.substr(dot + 1) + " " + word.value + ">";
}

std::string types_text(const std::vector<ir::Type>& types) {
  std::string out = "(";
  for (size_t i = 0; i < types.size(); ++i) out += fmt::format("{}{}", i ? ", " : "", to_string(types[i]));
  return out + ")";
}

std::string results_text(const std::vector<ir::Type>& types) {
  return types.size() == 1 ? to_string(types[0]) : types_text(types);
}

std::string sharding_attribute_text(const ir::ShardingAttr& attribute) {
  if (!attribute.per_value) return print(attribute.shardings[0]);
  std::string out = "#sdy.sharding_per_value<[";
  for (size_t i = 0; i < attribute.shardings.size(); ++i)
    out += (i ? ", <" : "<") + to_sdy(attribute.shardings[i]) + ">";
  return out + "]>";
}

struct AttributePrinter {
  std::string operator()(const ir::Unit&) const { return "unit"; }
  std::string operator()(const ir::IntegerAttr& a) const {
    if (a.type == "i1") return a.value != 0 ? "true" : "false";
    if (a.type == "ui64") return fmt::format("{} : ui64", static_cast<uint64_t>(a.value));
    return fmt::format("{} : {}", a.value, a.type);
  }
  std::string operator()(const ir::FloatAttr& a) const { return float_text(a.value, a.type) + " : " + a.type; }
  std::string operator()(const ir::StringAttr& a) const { return quoted(a.value); }
  std::string operator()(const ir::DenseAttr& a) const { return dense_text(a); }
  std::string operator()(const ir::IntArrayAttr& a) const {
    if (a.values.empty()) return "array<" + a.element_type + ">";
    std::string out = "array<" + a.element_type + ": ";
    for (size_t i = 0; i < a.values.size(); ++i) {
      out += i ? ", " : "";
      out += a.element_type == "i1" ? (a.values[i] != 0 ? "true" : "false") : std::to_string(a.values[i]);
    }
    return out + ">";
  }
  std::string operator()(const ir::ArrayAttr& a) const {
    std::string out = "[";
    for (size_t i = 0; i < a.values.size(); ++i) out += (i ? ", " : "") + print(a.values[i]);
    return out + "]";
  }
  std::string operator()(const ir::DictAttr& a) const { return dict_text(a); }
  std::string operator()(const ir::EnumAttr& a) const { return enum_text(a); }
  std::string operator()(const ir::SymbolAttr& a) const { return symbol(a.name); }
  std::string operator()(const ir::TypeAttr& a) const {
    if (!a.is_function) return to_string(a.results.at(0));
    return types_text(a.inputs) + " -> " + results_text(a.results);
  }
  std::string operator()(const ir::ShardingAttr& a) const { return sharding_attribute_text(a); }
  std::string operator()(const ir::ShardingRuleAttr& a) const {
    return "#sdy.op_sharding_rule<" + to_sdy(a.rule) + ">";
  }
  std::string operator()(const ir::OpaqueAttr& a) const { return a.text; }
};

/// Prints one function; values are numbered in the order of the text, so that the text is deterministic.
class FunctionPrinter {
 public:
  FunctionPrinter(const ir::Function& function, std::string& out)
      : function_(function), out_(out), names_(function.values.size()) {}

  void print_function() {
    std::vector<ir::Type> inputs;
    std::vector<ir::Type> results;
    for (const ir::Parameter& argument : function_.arguments) inputs.push_back(argument.type);
    for (const ir::Parameter& result : function_.results) results.push_back(result.type);
    out_ += "  \"func.func\"() <{arg_attrs = " + parameters_text(function_.arguments) +
            ", function_type = " + types_text(inputs) + " -> " + results_text(results) +
            ", res_attrs = " + parameters_text(function_.results) + ", sym_name = " + quoted(function_.name) +
            ", sym_visibility = " + (function_.is_public ? "\"public\"" : "\"private\"") + "}> (";
    print_region(function_.body, 2);
    out_ += ")" + (function_.attributes.empty() ? "" : " " + print(function_.attributes)) + " : () -> ()\n";
  }

 private:
  static std::string parameters_text(const std::vector<ir::Parameter>& parameters) {
    std::string out = "[";
    for (size_t i = 0; i < parameters.size(); ++i) {
      out += i ? ", " : "";
      out += parameters[i].attributes.empty() ? "{}" : print(parameters[i].attributes);
    }
    return out + "]";
  }

  void indent(int depth) { out_.append(static_cast<size_t>(depth) * 2, ' '); }

  void print_region(const ir::Region& region, int depth) {
    out_ += "{\n";
    if (!region.arguments.empty()) {
      indent(depth - 1);
      out_ += "^bb0(";
      for (size_t i = 0; i < region.arguments.size(); ++i) {
        std::string& name = names_[static_cast<size_t>(region.arguments[i])];
        name = fmt::format("%arg{}", argument_count_++);
        out_ += fmt::format("{}{}: {}", i ? ", " : "", name, to_string(function_.type_of(region.arguments[i])));
      }
      out_ += "):\n";
    }
    for (const ir::Op& op : region.ops) print_op(op, depth);
    indent(depth - 1);
    out_ += "}";
  }

  void print_op(const ir::Op& op, int depth) {
    indent(depth);
    if (!op.results.empty()) {
      const std::string name = fmt::format("%{}", result_count_++);
      const bool several = op.results.size() > 1;
      for (size_t i = 0; i < op.results.size(); ++i) {
        names_[static_cast<size_t>(op.results[i])] = several ? fmt::format("{}#{}", name, i) : name;
      }
      out_ += name + (several ? fmt::format(":{}", op.results.size()) : "") + " = ";
    }
    out_ += quoted(op.name) + "(";
    for (size_t i = 0; i < op.operands.size(); ++i)
      out_ += (i ? ", " : "") + names_[static_cast<size_t>(op.operands[i])];
    out_ += ")";
    const auto [inherent, discardable] = attributes_text(op);
    out_ += inherent;
    if (!op.regions.empty()) {
      out_ += " (";
      for (size_t i = 0; i < op.regions.size(); ++i) {
        if (i) out_ += ", ";
        print_region(op.regions[i], depth + 1);
      }
      out_ += ")";
    }
    out_ += discardable;
    out_ += " : " + types_text(function_.types_of(op.operands)) + " -> " +
            results_text(function_.types_of(op.results)) + "\n";
  }

  /// Attributes that the op's row names go into <{...}>, all others into the dictionary behind the regions.
  static std::pair<std::string, std::string> attributes_text(const ir::Op& op) {
    const auto& known = ops::op(op.code).signature.attributes;
    std::string inherent;
    std::string discardable;
    for (const auto& [name, value] : op.attributes) {
      const auto is_known = [&](const auto& spec) { return spec.name == name; };
      const auto is_kept = [&](const auto& spec) { return spec.kept_as == "sharding" && name == "sharding"; };
      std::string& side = std::any_of(known.begin(), known.end(), is_known) ? inherent : discardable;
      const auto written = std::find_if(known.begin(), known.end(), is_kept);
      side +=
          (side.empty() ? "" : ", ") + entry_text(written == known.end() ? name : std::string(written->name), value);
    }
    return {inherent.empty() ? "" : " <{" + inherent + "}>", discardable.empty() ? "" : " {" + discardable + "}"};
  }

  static std::string entry_text(const std::string& name, const ir::Attribute& value) {
    std::string key = attribute_name(name);
    if (value.as<ir::Unit>() != nullptr) return key;
    if (const auto* axes = value.as<ir::ArrayAttr>(); axes != nullptr && name == "manual_axes") {
      std::string text;
      for (const ir::Attribute& axis : axes->values) text += (text.empty() ? "" : ", ") + print(axis);
      return key + " = #sdy<manual_axes{" + text + "}>";
    }
    return key + " = " + print(value);
  }

  const ir::Function& function_;
  std::string& out_;
  std::vector<std::string> names_;
  int64_t argument_count_ = 0;
  int64_t result_count_ = 0;
};

}  // namespace

std::string quoted(std::string_view text) {
  constexpr std::string_view kUpper = "0123456789ABCDEF";
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\\') {
      out += "\\\\";
    } else if (byte < 0x20 || byte >= 0x7F || c == '"') {
      out += '\\';
      out += kUpper[byte >> 4];
      out += kUpper[byte & 0xF];
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string attribute_name(std::string_view name) {
  return is_plain_word(name, false) ? std::string(name) : quoted(name);
}

std::string symbol(std::string_view name) {
  std::string out;
  size_t begin = 0;
  while (true) {
    const size_t end = name.find("::", begin);
    const std::string_view part = name.substr(begin, end == std::string_view::npos ? end : end - begin);
    out += "@" + (is_plain_word(part, true) ? std::string(part) : quoted(part));
    if (end == std::string_view::npos) return out;
    out += "::";
    begin = end + 2;
  }
}

std::string print(const ir::Attribute& attribute) { return std::visit(AttributePrinter{}, attribute.value); }

std::string print(const ir::AttributeList& attributes) {
  if (attributes.empty()) return {};
  std::string out = "{";
  for (size_t i = 0; i < attributes.size(); ++i) {
    const auto& [name, value] = attributes[i];
    out += (i ? ", " : "") + attribute_name(name);
    if (value.as<ir::Unit>() == nullptr) out += " = " + print(value);
  }
  return out + "}";
}

std::string print(const ir::Type& type) { return to_string(type); }

std::string print(const sharding::TensorSharding& sharding) { return "#sdy.sharding<" + to_sdy(sharding) + ">"; }

std::string print_generic(const ir::Module& module) {
  std::string out = "\"builtin.module\"() ";
  if (!module.name.empty()) out += "<{sym_name = " + quoted(module.name) + "}> ";
  out += "({\n";
  for (const ir::NamedMesh& mesh : module.meshes) {
    out += "  \"sdy.mesh\"() <{mesh = #sdy.mesh" + mesh::to_sdy(*mesh.mesh) + ", sym_name = " + quoted(mesh.name) +
           "}> : () -> ()\n";
  }
  for (const ir::Function& function : module.functions) FunctionPrinter(function, out).print_function();
  return out + "})" + (module.attributes.empty() ? "" : " " + print(module.attributes)) + " : () -> ()\n";
}

}  // namespace meshd::program
