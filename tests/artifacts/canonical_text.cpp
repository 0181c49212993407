#include "tests/artifacts/canonical_text.h"

#include <algorithm>

#include "service/ir/walk.h"
#include "service/program/parse/parse.h"
#include "service/program/print.h"

namespace meshd::test {
namespace {

void sort_attributes(ir::AttributeList& list) {
  std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
}

}  // namespace

std::string canonical_text(std::string_view text) {
  ir::Module module = program::parse_unverified(text);
  sort_attributes(module.attributes);
  for (ir::Function& function : module.functions) {
    sort_attributes(function.attributes);
    for (auto* parameters : {&function.arguments, &function.results}) {
      for (ir::Parameter& parameter : *parameters) sort_attributes(parameter.attributes);
    }
    ir::walk(function.body, [](ir::Op& op) { sort_attributes(op.attributes); });
  }
  return program::print_generic(module);
}

}  // namespace meshd::test
