#include "service/program/bytecode/vhlo_ops.h"

#include <fmt/core.h>

#include <algorithm>

#include "service/program/bytecode/dialect_encodings.h"
#include "service/program/bytecode/vhlo_forms.h"
#include "service/program/print.h"

namespace meshd::program {
namespace {

using Kind = AttributeNode::Kind;

/// One op's attributes on their way into text.
class VhloAttributes {
 public:
  VhloAttributes(const NamedIndices& all, IrTables& tables, TextWriter& out) : all_(all), tables_(tables), out_(out) {}

  void print() {
    const bool is_cholesky = all_.size() == 1 && all_[0].first == "lower";
    done_.resize(all_.size());
    for (const VhloStruct& row : kVhloStructs) print_assembled(row);
    print_channel();
    print_algorithm();
    for (size_t i = 0; i < all_.size(); ++i) {
      const auto& [name, index] = all_[i];
      if (done_[i] || is_default(name, index) || (is_cholesky && tables_.attribute(index).bits == 0)) continue;
      begin_entry();
      if (std::find(kVhloSymbols.begin(), kVhloSymbols.end(), name) != kVhloSymbols.end()) {
        print_symbols(name, index);
      } else if (name == "use_global_device_ids") {
        out_ << name;
      } else {
        print_plain(name, index);
      }
    }
    if (!is_first_) out_ << "}>";
  }

 private:
  [[noreturn]] static void wrong_kind_of(std::string_view name, std::string_view expected) {
    throw core::Error("program_syntax",
                      fmt::format("attribute '{}' of a VHLO op in the bytecode must be {}", name, expected));
  }

  void begin_entry() {
    out_ << (is_first_ ? " <{" : ", ");
    is_first_ = false;
  }

  /// The attribute of that name, which is printed with it; null where there is none.
  const AttributeNode* take(std::string_view name) {
    for (size_t i = 0; i < all_.size(); ++i) {
      if (all_[i].first != name) continue;
      done_[i] = true;
      taken_ = all_[i].second;
      return &tables_.attribute(taken_);
    }
    return nullptr;
  }

  [[nodiscard]] bool has(std::string_view name) const {
    return std::any_of(all_.begin(), all_.end(), [&](const auto& entry) { return entry.first == name; });
  }

  void print_assembled(const VhloStruct& row) {
    if (!has(row.fields[0])) return;
    StructText text(row.kind, row.before);
    for (const std::string_view name : row.fields) {
      const AttributeNode* node = name.empty() ? nullptr : take(name);
      if (node == nullptr) continue;
      if (node->kind == Kind::kInteger) {
        const auto value = static_cast<int64_t>(node->bits);
        row.writes_empty ? text.number(name, value) : text.unless_zero(name, value);
        continue;
      }
      const auto values = tables_.dense_integers(taken_);
      if (!values) wrong_kind_of(name, "an integer or a tensor of integers");
      row.writes_empty ? text.any_list(name, *values) : text.list(name, *values);
    }
    begin_entry();
    out_ << row.name << " = " << std::move(text).text();
  }

  void print_channel() {
    const AttributeNode* id = take("channel_id");
    if (id == nullptr) return;
    const AttributeNode* type = take("channel_type");
    if (id->kind != Kind::kInteger || (type != nullptr && type->kind != Kind::kInteger))
      wrong_kind_of("channel_id", "an integer");
    if (type == nullptr && id->bits == 0) return;
    StructText text("channel_handle");
    text.number("handle", static_cast<int64_t>(id->bits));
    text.number("type", type == nullptr ? 0 : static_cast<int64_t>(type->bits));
    begin_entry();
    out_ << "channel_handle = " << std::move(text).text();
  }

  void print_algorithm() {
    if (!has(kVhloAlgorithm[0])) return;
    StructText text("dot_algorithm");
    bool is_none = false;
    for (const std::string_view name : kVhloAlgorithm) {
      const AttributeNode* node = take(name);
      if (node == nullptr) continue;
      if (node->kind == Kind::kType) {
        const TypeNode& type = tables_.type(node->type);
        is_none |= type.kind == TypeNode::Kind::kNone;
        text.field(name, type.text);
      } else if (node->kind == Kind::kInteger) {
        text.number(name, static_cast<int64_t>(node->bits));
      } else if (node->kind == Kind::kBool) {
        text.field(name, node->bits != 0 ? "true" : "false");
      } else {
        wrong_kind_of(name, "a type, an integer or a boolean");
      }
    }
    if (is_none) return;
    begin_entry();
    out_ << "algorithm = " << std::move(text).text();
  }

  void print_symbols(std::string_view name, AttributeIndex index) {
    const AttributeNode& node = tables_.attribute(index);
    out_ << name << " = ";
    if (node.kind == Kind::kString) {
      out_ << symbol(node.text);
      return;
    }
    if (node.kind != Kind::kArray) wrong_kind_of(name, "a name or a list of names");
    out_ << "[";
    for (size_t i = 0; i < node.children.size(); ++i)
      out_ << (i ? ", " : "") << symbol(tables_.attribute(node.children[i]).text);
    out_ << "]";
  }

  void print_plain(std::string_view name, AttributeIndex index) {
    const AttributeNode& node = tables_.attribute(index);
    const bool is_array =
        node.kind == Kind::kDense && std::find(kVhloTensors.begin(), kVhloTensors.end(), name) == kVhloTensors.end();
    const auto values = is_array ? tables_.dense_integers(index) : std::nullopt;
    if (!values) {
      tables_.print_entry(name, index, out_);
      return;
    }
    const TypeNode& element = tables_.type(tables_.type(node.type).elements[0]);
    ir::IntArrayAttr array{*values, element.width == 1 ? "i1" : "i64"};
    out_ << name << " = " << meshd::program::print(ir::Attribute{std::move(array)});
  }

  [[nodiscard]] bool is_default(std::string_view name, AttributeIndex index) {
    const AttributeNode& node = tables_.attribute(index);
    if (name == "result_accuracy") return is_default_accuracy(node);
    if (name == "operand_layouts" || name == "result_layouts") return has_no_layouts();
    if (name == "source_target_pairs" || name == "dimension") return is_empty_default(name, node, index);
    for (const VhloDefaultValue& row : kVhloDefaults) {
      if (row.name != name) continue;
      switch (row.kind) {
        case VhloDefault::kFalse:
          return node.kind == Kind::kBool && node.bits == 0;
        case VhloDefault::kEmpty:
          return is_empty(node);
        case VhloDefault::kNumber:
          return node.kind == Kind::kInteger && static_cast<int64_t>(node.bits) == row.number;
        case VhloDefault::kText:
          return node.kind == Kind::kText && node.text == row.text;
        case VhloDefault::kAll:
          return is_all(node, index, row);
      }
    }
    return false;
  }

  static bool is_empty(const AttributeNode& node) {
    if (node.kind == Kind::kString) return node.text.empty();
    if (node.kind == Kind::kArray || node.kind == Kind::kDict) return node.children.empty();
    return node.kind == Kind::kDense && node.data.empty();
  }

  /// Layouts of operands and results come together.
  [[nodiscard]] bool has_no_layouts() {
    return std::all_of(all_.begin(), all_.end(), [&](const auto& entry) {
      return !entry.first.ends_with("_layouts") || is_empty(tables_.attribute(entry.second));
    });
  }

  /// An empty list of pairs of a send or receive, and the dimension -1 of a sort.
  [[nodiscard]] bool is_empty_default(std::string_view name, const AttributeNode& node, AttributeIndex index) {
    if (name == "dimension") return node.kind == Kind::kInteger && static_cast<int64_t>(node.bits) == -1;
    const auto values = tables_.dense_integers(index);
    return has("is_host_transfer") && values && values->empty();
  }

  [[nodiscard]] bool is_all(const AttributeNode& node, AttributeIndex index, const VhloDefaultValue& row) {
    if (node.kind == Kind::kArray) {
      return std::all_of(node.children.begin(), node.children.end(),
                         [&](AttributeIndex child) { return tables_.attribute(child).text == row.text; });
    }
    const auto values = tables_.dense_integers(index);
    return values && row.text.empty() &&
           std::all_of(values->begin(), values->end(), [&](int64_t value) { return value == row.number; });
  }

  [[nodiscard]] bool is_default_accuracy(const AttributeNode& node) {
    return node.kind == Kind::kText && node.text == "#stablehlo.result_accuracy<mode = " && node.children.size() == 1 &&
           tables_.attribute(node.children[0]).text == "#stablehlo.result_accuracy_mode<DEFAULT>";
  }

  const NamedIndices& all_;
  IrTables& tables_;
  TextWriter& out_;
  std::vector<bool> done_;
  AttributeIndex taken_ = 0;
  bool is_first_ = true;
};

}  // namespace

void print_vhlo_attributes(const NamedIndices& attributes, IrTables& tables, TextWriter& out) {
  VhloAttributes(attributes, tables, out).print();
}

}  // namespace meshd::program
