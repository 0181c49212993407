#include "service/program/verify/verify_tokens.h"

#include <algorithm>
#include <vector>

#include "service/ir/walk.h"
#include "service/ops/linalg/custom_calls.h"

namespace meshd::program {
namespace {

class TokenCheck {
 public:
  explicit TokenCheck(const ir::Function& main)
      : main_(main), uses_(main.values.size()), used_up_(main.values.size()) {}

  void run() {
    ir::walk(main_.body, [&](const ir::Op& op) { count(op); });
    ir::walk<ir::WalkOrder::kPostOrder>(main_.body, [&](const ir::Op& op) { check(op); });
    const ir::Op& last = main_.body.ops.back();
    for (const ir::ValueId id : last.operands) {
      if (main_.type_of(id).is_token() && used_up_[static_cast<size_t>(id)]) {
        ir::fail("invalid_program", last.location,
                 "@main gives back token " + main_.values[static_cast<size_t>(id)].name +
                     ", which an ordered effect has used; give back the token that the effect gave");
      }
    }
  }

 private:
  static bool is_callback(const ir::Op& op) {
    const ops::CustomCallDef* row = ops::find_custom_call(op);
    return row != nullptr && row->kind == ops::CustomCallKind::kCallback;
  }

  void count(const ir::Op& op) {
    for (const ir::ValueId id : op.operands) {
      ++uses_[static_cast<size_t>(id)];
      if (main_.type_of(id).is_token() && is_callback(op)) used_up_[static_cast<size_t>(id)] = true;
    }
  }

  void check(const ir::Op& op) const {
    if (!is_callback(op)) return;
    for (const ir::ValueId id : op.results) {
      if (main_.type_of(id).is_token() && uses_[static_cast<size_t>(id)] == 0) {
        ir::fail("invalid_program", op.location,
                 "the token of this ordered effect goes nowhere; give it to the next effect or to the results");
      }
    }
  }

  const ir::Function& main_;
  std::vector<int> uses_;
  std::vector<bool> used_up_;
};

}  // namespace

void verify_tokens(const ir::Module& flat) {
  const ir::Function& main = flat.main();
  const auto is_token = [](const ir::Parameter& parameter) { return parameter.is_token; };
  if (main.body.ops.empty() || std::none_of(main.arguments.begin(), main.arguments.end(), is_token) ||
      std::none_of(main.results.begin(), main.results.end(), is_token))
    return;
  TokenCheck(main).run();
}

}  // namespace meshd::program
