#include "service/compile/explain/declared_effects.h"

#include "service/ir/walk.h"

namespace meshd::compile {

std::vector<ProgramCallback> find_callbacks(const ParsedProgram& parsed) {
  const ir::Function& main = parsed.flat->main();
  std::vector<ProgramCallback> out;
  ir::walk<ir::WalkOrder::kPostOrder>(main.body, [&](const ir::Op& op) {
    if (ops::role_of(ops::op(op.code).body) != ops::Structural::kCustomCall) return;
    const ops::OpInstance instance(main, op);
    const auto* row = ops::find_custom_call(ops::target_of(instance.view));
    if (row == nullptr || row->kind != ops::CustomCallKind::kCallback) return;
    out.push_back({ops::effect_of(instance.view), op.location.line});
  });
  return out;
}

std::vector<ArgumentEffect> find_argument_effects(const ParsedProgram& parsed) {
  const ir::Function& main = parsed.flat->main();
  std::vector<bool> is_read(main.values.size());
  ir::walk(main.body, [&](const ir::Op& op) {
    for (const ir::ValueId id : op.operands) is_read[static_cast<size_t>(id)] = true;
  });
  std::vector<ArgumentEffect> out;
  for (size_t i = 0; i < parsed.arguments.size(); ++i) {
    const size_t position = parsed.arguments[i];
    if (is_read[static_cast<size_t>(main.body.arguments[position])]) out.push_back({i, false});
    const ir::Parameter& parameter = main.arguments[position];
    if (parameter.aliases_output || parameter.is_donor) out.push_back({i, true});
  }
  return out;
}

}  // namespace meshd::compile
