#include "service/program/bytecode/sharding_printer.h"

#include <fmt/core.h>

#include "service/core/error.h"
#include "service/program/print.h"

namespace meshd::program {
namespace {

/// Factors are i to z, then z_1, z_2, ...
std::string factor_name(int64_t factor) {
  constexpr int64_t kLetters = 'z' - 'i' + 1;
  if (factor < kLetters) return {static_cast<char>('i' + factor)};
  return fmt::format("z_{}", factor - kLetters + 1);
}

[[noreturn]] void fail_sharding(const std::string& message) {
  throw core::Error("program_syntax", "a sharding in the bytecode is malformed: " + message);
}

}  // namespace

const AttributeNode& ShardingPrinter::child(const AttributeNode& node, size_t number, SdyCode code) {
  const AttributeNode& out = tables_.attribute(node.children[number]);
  if (out.kind != AttributeNode::Kind::kSharding || static_cast<SdyCode>(out.bits) != code) {
    fail_sharding(fmt::format("attribute {} is not of kind {}", node.children[number], static_cast<uint64_t>(code)));
  }
  return out;
}

void ShardingPrinter::list(const AttributeNode& node, size_t first, size_t count, std::string_view brackets,
                           SdyCode code, void (ShardingPrinter::*item)(const AttributeNode&)) {
  out_ << brackets[0];
  for (size_t i = 0; i < count; ++i) {
    if (i) out_ << ", ";
    (this->*item)(child(node, first + i, code));
  }
  out_ << brackets[1];
}

void ShardingPrinter::name(std::string_view text) { out_ << quoted(text); }

void ShardingPrinter::axes(const AttributeNode& node, size_t first, size_t count) {
  list(node, first, count, "{}", SdyCode::kAxis, &ShardingPrinter::axis);
}

void ShardingPrinter::axis(const AttributeNode& node) {
  name(node.text);
  if (node.children.empty()) return;
  const AttributeNode& part = child(node, 0, SdyCode::kSubAxis);
  out_ << ":(" << part.numbers[0] << ")" << part.numbers[1];
}

void ShardingPrinter::dim(const AttributeNode& node) {
  out_ << "{";
  for (size_t i = 0; i < node.children.size(); ++i) {
    if (i) out_ << ", ";
    axis(child(node, i, SdyCode::kAxis));
  }
  const bool is_closed = node.numbers[0] != 0;
  if (!is_closed) out_ << (node.children.empty() ? "?" : ", ?");
  out_ << "}";
  if (node.numbers.size() > 1) out_ << "p" << node.numbers[1];
}

void ShardingPrinter::mesh(const AttributeNode& node) {
  out_ << "<[";
  for (size_t i = 0; i < node.children.size(); ++i) {
    const AttributeNode& each = child(node, i, SdyCode::kMeshAxis);
    if (i) out_ << ", ";
    name(each.text);
    out_ << "=" << each.numbers[0];
  }
  out_ << "]";
  if (!node.numbers.empty()) {
    out_ << ", device_ids=[";
    for (size_t i = 0; i < node.numbers.size(); ++i) out_ << (i ? ", " : "") << node.numbers[i];
    out_ << "]";
  }
  out_ << ">";
}

void ShardingPrinter::sharding(const AttributeNode& node) {
  out_ << "<";
  const AttributeNode& over = tables_.attribute(node.children[0]);
  if (over.kind == AttributeNode::Kind::kSharding) {
    out_ << "mesh";
    mesh(child(node, 0, SdyCode::kMesh));
  } else if (over.kind == AttributeNode::Kind::kSymbol) {
    tables_.print_attribute(node.children[0], out_);
  } else {
    fail_sharding("it needs a mesh or the name of one");
  }
  const auto dims = static_cast<size_t>(node.numbers[0]);
  const auto replicated = static_cast<size_t>(node.numbers[1]);
  out_ << ", ";
  list(node, 1, dims, "[]", SdyCode::kDim, &ShardingPrinter::dim);
  if (replicated != 0) {
    out_ << ", replicated=";
    axes(node, 1 + dims, replicated);
  }
  if (node.numbers.size() > 2 && node.numbers[2] != 0) {
    out_ << ", unreduced=";
    axes(node, 1 + dims + replicated, static_cast<size_t>(node.numbers[2]));
  }
  out_ << ">";
}

void ShardingPrinter::factors(const AttributeNode& node) {
  out_ << "[";
  for (size_t i = 0; i < node.children.size(); ++i) {
    if (i) out_ << ", ";
    for (const int64_t factor : child(node, i, SdyCode::kDimFactors).numbers) out_ << factor_name(factor);
  }
  out_ << "]";
}

void ShardingPrinter::factor_list(std::string_view name, std::span<const int64_t> list) {
  if (list.empty()) return;
  out_ << " " << name << "={";
  for (size_t i = 0; i < list.size(); ++i) out_ << (i ? ", " : "") << factor_name(list[i]);
  out_ << "}";
}

void ShardingPrinter::rule(const AttributeNode& node) {
  std::span<const int64_t> rest(node.numbers);
  const auto next_list = [&rest] {
    const auto count = static_cast<size_t>(rest[0]);
    const std::span<const int64_t> out = rest.subspan(1, count);
    rest = rest.subspan(1 + count);
    return out;
  };
  const auto operands = static_cast<size_t>(rest[0]);
  const auto results = static_cast<size_t>(rest[1]);
  rest = rest.subspan(2);
  out_ << "#sdy.op_sharding_rule<";
  list(node, 0, operands, "()", SdyCode::kTensorFactors, &ShardingPrinter::factors);
  out_ << "->";
  list(node, operands, results, "()", SdyCode::kTensorFactors, &ShardingPrinter::factors);
  const std::span<const int64_t> sizes = next_list();
  out_ << " {";
  for (size_t i = 0; i < sizes.size(); ++i)
    out_ << (i ? ", " : "") << factor_name(static_cast<int64_t>(i)) << "=" << sizes[i];
  out_ << "}";
  for (const std::string_view kind : {"reduction", "need_replication", "permutation", "blocked_propagation"})
    factor_list(kind, next_list());
  out_ << (rest[0] != 0 ? ", custom>" : ">");
}

void ShardingPrinter::all_to_all(const AttributeNode& node) {
  axes(node, 0, node.children.size());
  out_ << ": " << node.numbers[0] << "->" << node.numbers[1];
}

void ShardingPrinter::print(const AttributeNode& node) {
  const size_t count = node.children.size();
  switch (static_cast<SdyCode>(node.bits)) {
    case SdyCode::kManualAxes:
      out_ << "#sdy<manual_axes{";
      for (size_t i = 0; i < count; ++i) {
        if (i) out_ << ", ";
        tables_.print_attribute(node.children[i], out_);
      }
      out_ << "}>";
      return;
    case SdyCode::kMesh:
      out_ << "#sdy.mesh";
      return mesh(node);
    case SdyCode::kSharding:
    case SdyCode::kUnreduced:
      out_ << "#sdy.sharding";
      return sharding(node);
    case SdyCode::kPerValue:
    case SdyCode::kUnreducedPerValue:
      out_ << "#sdy.sharding_per_value<[";
      for (size_t i = 0; i < count; ++i) {
        if (i) out_ << ", ";
        const AttributeNode& each = tables_.attribute(node.children[i]);
        const bool is_unreduced =
            each.kind == AttributeNode::Kind::kSharding && static_cast<SdyCode>(each.bits) == SdyCode::kUnreduced;
        sharding(child(node, i, is_unreduced ? SdyCode::kUnreduced : SdyCode::kSharding));
      }
      out_ << "]>";
      return;
    case SdyCode::kRule:
      return rule(node);
    case SdyCode::kAxisList:
      out_ << "#sdy<axis_ref_list";
      axes(node, 0, count);
      out_ << ">";
      return;
    case SdyCode::kAxisLists:
      out_ << "#sdy<list_of_axis_ref_lists[";
      for (size_t i = 0; i < count; ++i) {
        if (i) out_ << ", ";
        const AttributeNode& each = child(node, i, SdyCode::kAxisList);
        axes(each, 0, each.children.size());
      }
      out_ << "]>";
      return;
    case SdyCode::kAllToAllParams:
      out_ << "#sdy<all_to_all_param_list";
      list(node, 0, count, "[]", SdyCode::kAllToAllParam, &ShardingPrinter::all_to_all);
      out_ << ">";
      return;
    default:
      fail_sharding(fmt::format("an attribute of kind {} is no attribute by itself", node.bits));
  }
}

}  // namespace meshd::program
