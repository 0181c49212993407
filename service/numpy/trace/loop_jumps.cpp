#include "service/numpy/trace/loop_jumps.h"

#include <fmt/core.h>

#include <algorithm>

namespace meshd::numpy {
namespace {

bool is_jump(const Statement& statement) {
  return statement.kind == StatementKind::kBreak || statement.kind == StatementKind::kContinue;
}

ExpressionRef name_of(const std::string& name, Place place) {
  auto out = std::make_shared<Expression>();
  out->kind = ExpressionKind::kName;
  out->place = place;
  out->text = name;
  return out;
}

Statement assignment(const std::string& name, bool value, Place place) {
  auto constant = std::make_shared<Expression>();
  constant->kind = ExpressionKind::kConstant;
  constant->place = place;
  constant->text = value ? "True" : "False";
  Statement out;
  out.kind = StatementKind::kAssign;
  out.place = place;
  out.targets = {name_of(name, place)};
  out.value = std::move(constant);
  return out;
}

class JumpRewriter {
 public:
  JumpRewriter(std::string broken, std::string skipped) : broken_(std::move(broken)), skipped_(std::move(skipped)) {}

  Block run(Block::const_iterator at, Block::const_iterator end) const {
    Block out;
    for (; at != end; ++at) {
      if (is_jump(*at)) {
        if (at->kind == StatementKind::kBreak) out.push_back(assignment(broken_, true, at->place));
        out.push_back(assignment(skipped_, true, at->place));
        return out;
      }
      if (at->kind != StatementKind::kIf || !(has_jumps(at->body) || has_jumps(at->otherwise))) {
        out.push_back(*at);
        continue;
      }
      Statement branch = *at;
      branch.body = run(at->body.begin(), at->body.end());
      branch.otherwise = run(at->otherwise.begin(), at->otherwise.end());
      out.push_back(std::move(branch));
      if (at + 1 != end) out.push_back(where_not_skipped(run(at + 1, end), (at + 1)->place));
      return out;
    }
    return out;
  }

 private:
  [[nodiscard]] Statement where_not_skipped(Block rest, Place place) const {
    Statement out;
    out.kind = StatementKind::kIf;
    out.place = place;
    out.value = name_of(skipped_, place);
    out.otherwise = std::move(rest);
    return out;
  }

  std::string broken_;
  std::string skipped_;
};

}  // namespace

bool has_jumps(const Block& body) {
  return std::any_of(body.begin(), body.end(), [](const Statement& statement) {
    if (is_jump(statement)) return true;
    return statement.kind == StatementKind::kIf && (has_jumps(statement.body) || has_jumps(statement.otherwise));
  });
}

JumpFreeBody without_jumps(const Statement& loop) {
  const std::string where = fmt::format(" of line {}, {}", loop.place.line, loop.place.column);
  const std::string skipped = "continue" + where;
  JumpFreeBody out{{}, "break" + where};
  out.body = JumpRewriter(out.broken, skipped).run(loop.body.begin(), loop.body.end());
  out.body.insert(out.body.begin(), assignment(skipped, false, loop.place));
  return out;
}

}  // namespace meshd::numpy
