#include "service/partition/local_program.h"

#include <fmt/core.h>

namespace meshd::partition {
namespace {

std::string_view kind_name(LocalKind kind) {
  switch (kind) {
    case LocalKind::kOp:
      return "op";
    case LocalKind::kConstant:
      return "constant";
    case LocalKind::kPosition:
      return "position";
    case LocalKind::kMask:
      return "mask";
    case LocalKind::kReshard:
      return "reshard";
    case LocalKind::kHalo:
      return "halo";
    case LocalKind::kView:
      return "view";
    case LocalKind::kReduceShards:
      return "reduce_shards";
    case LocalKind::kGroup:
      return "group";
    case LocalKind::kWhile:
      return "while";
    case LocalKind::kCase:
      return "case";
    case LocalKind::kEffect:
      return "effect";
  }
  return "";
}

std::string value_text(const LocalProgram& program, LocalId id) {
  const ShardedType& type = program.type(id);
  std::string out = fmt::format("%{}:{}{{", id, ir::to_string(ir::Type::of(type.local)));
  for (size_t d = 0; d < type.rank(); ++d) {
    out += d ? ";" : "";
    for (size_t a = 0; a < type.sub_axes(d).size(); ++a) out += fmt::format("{}{}", a ? "," : "", type.sub_axes(d)[a]);
  }
  out += "}";
  if (type.varies != 0) out += fmt::format("~{}", type.varies);
  if (type.layout.view != 0) out += fmt::format("@{}", type.layout.view);
  return out;
}

void block_text(const LocalProgram& program, const LocalBlock& block, const std::string& indent, std::string& out) {
  for (const LocalOp& op : block.ops) {
    out += indent;
    for (size_t i = 0; i < op.results.size(); ++i) out += (i ? ", " : "") + value_text(program, op.results[i]);
    out += (op.results.empty() ? "" : " = ") + std::string(kind_name(op.kind)) + " " + op.name + "(";
    for (size_t i = 0; i < op.operands.size(); ++i) out += fmt::format("{}{}", i ? ", %" : "%", op.operands[i]);
    out += ")";
    if (op.reduced != 0) out += fmt::format(" over ~{}", op.reduced);
    if (!op.reason.empty()) out += " for " + op.reason;
    if (op.location.line > 0) out += fmt::format(" line {}", op.location.line);
    out += "\n";
    for (const LocalBlock& inner : op.blocks) {
      out += indent + "{\n";
      block_text(program, inner, indent + "  ", out);
      out += indent + "  gives";
      for (const LocalId id : inner.results) out += fmt::format(" %{}", id);
      out += "\n" + indent + "}\n";
    }
  }
}

}  // namespace

std::string to_text(const LocalProgram& program) {
  std::string out = "local(";
  for (size_t i = 0; i < program.body.arguments.size(); ++i)
    out += (i ? ", " : "") + value_text(program, program.body.arguments[i]);
  out += ")\n";
  block_text(program, program.body, "  ", out);
  out += "gives";
  for (const LocalId id : program.body.results) out += fmt::format(" %{}", id);
  return out + "\n";
}

}  // namespace meshd::partition
