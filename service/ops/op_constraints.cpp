#include "service/ops/op_constraints.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>
#include <variant>

namespace meshd::ops {
namespace {

/// What the checks of the op are labelled with, inputs first: "I1: ...", "C2: ...".
std::vector<std::string> labelled_constraints(const OpDef& def) {
  const bool is_pointwise = std::holds_alternative<ScalarMath>(def.body);
  const std::string_view name = def.name.substr(def.name.find('.') + 1);
  std::vector<const OpConstraint*> found;
  bool has_type_check = false;
  for (const OpConstraint& constraint : op_constraints()) {
    if (constraint.op != name) continue;
    found.push_back(&constraint);
    has_type_check = has_type_check || constraint.label == "C1";
  }
  for (const OpConstraint& constraint : op_constraints()) {
    if (is_pointwise && !has_type_check && constraint.op == "pointwise") found.push_back(&constraint);
  }
  const auto rank = [](const OpConstraint* constraint) {
    return std::pair(constraint->label[0] == 'C', std::stoi(std::string(constraint->label.substr(1))));
  };
  std::stable_sort(found.begin(), found.end(), [&](const auto* a, const auto* b) { return rank(a) < rank(b); });
  std::vector<std::string> out;
  for (const OpConstraint* constraint : found)
    out.push_back(std::string(constraint->label) + ": " + std::string(constraint->text));
  return out;
}

}  // namespace

std::vector<std::string> constraints_of(const OpDef& def) {
  const Signature& signature = def.signature;
  const auto count = [](int number, const std::string& what) {
    return fmt::format("{} {}{}", number, what, number == 1 ? "" : "s");
  };
  std::vector<std::string> out;
  std::string operands = "takes " + count(signature.operand_min, "operand");
  if (signature.operand_max < 0) {
    operands += " or more";
  } else if (signature.operand_max != signature.operand_min) {
    operands = fmt::format("takes {} to {}", signature.operand_min, count(signature.operand_max, "operand"));
  }
  out.push_back(operands);
  if (signature.region_count < 0) out.emplace_back("has any number of regions");
  if (signature.region_count > 0) out.push_back("has " + count(signature.region_count, "region"));
  for (const AttributeSpec& attribute : signature.attributes) {
    out.push_back("attribute '" + std::string(attribute.name) + "'" + (attribute.required ? "" : ", optional") + ": " +
                  std::string(attribute.doc));
  }
  for (std::string& constraint : labelled_constraints(def)) out.push_back(std::move(constraint));
  return out;
}

}  // namespace meshd::ops
