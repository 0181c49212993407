#include "service/effects/recorder.h"

#include <algorithm>

#include "service/core/error.h"

namespace meshd::effects {
namespace {

// A kind at a place of the program.
struct Use {
  const EffectKind* kind;
  const compile::PlanEffect* effect;
};

// `log`, `print`: the kinds that `is_wrong` finds, each once, in order of the program.
template <typename IsWrong>
std::string listed(const std::vector<Use>& uses, IsWrong&& is_wrong) {
  std::vector<std::string_view> names;
  for (const Use& use : uses) {
    if (is_wrong(use) && std::find(names.begin(), names.end(), use.kind->name) == names.end())
      names.push_back(use.kind->name);
  }
  std::string out;
  for (const std::string_view name : names) out += (out.empty() ? "`" : ", `") + std::string(name) + "`";
  return out;
}

bool stands_in_control_flow(const compile::Plan& plan, const compile::PlanEffect& effect) {
  for (size_t block = 1; block < plan.blocks.size(); ++block) {
    for (const compile::Step& step : plan.blocks[block].steps) {
      if (step.kind == compile::StepKind::kEffect && &plan.effects[static_cast<size_t>(step.effect)] == &effect)
        return true;
    }
  }
  return false;
}

void check_kinds(const std::vector<Use>& uses, const compile::Plan& plan) {
  const auto refuse = [](const std::string& names, const std::string& message) {
    if (!names.empty()) throw core::Error("effects_not_supported", message + names);
  };
  refuse(listed(uses, [](const Use& use) { return !use.kind->lowerable; }), "Cannot lower program with effects: ");
  refuse(listed(uses,
                [&](const Use& use) { return !use.kind->control_flow && stands_in_control_flow(plan, *use.effect); }),
         "Effects not supported in control flow: ");
  refuse(listed(uses,
                [&](const Use& use) {
                  return !use.kind->shardable && use.effect->point.ordered && plan.device_count > 1;
                }),
         "Ordered effects are not supported for more than 1 device: ");
}

}  // namespace

Bindings check_bindings(Bindings given, const compile::Plan& plan) {
  core::Diagnostics wrong;
  std::vector<Use> kinds_used;
  for (const auto& [index, binding] : given) {
    const bool known =
        std::any_of(plan.effects.begin(), plan.effects.end(),
                    [&, n = index](const compile::PlanEffect& effect) { return effect.point.callback == n; });
    if (!known)
      wrong.add("/callbacks/" + std::to_string(index),
                "the program has no callback with index " + std::to_string(index));
  }
  for (const compile::PlanEffect& effect : plan.effects) {
    const std::string pointer = "/callbacks/" + std::to_string(effect.point.callback);
    auto found = given.find(effect.point.callback);
    if (found == given.end()) {
      if (!effect.results.empty()) {
        wrong.add(pointer, "callback " + std::to_string(effect.point.callback) +
                               " gives values back and needs an entry of effect \"callback\" with answers");
        continue;
      }
      found = given
                  .emplace(effect.point.callback,
                           Binding{find_effect_kind("log"), "callback_" + std::to_string(effect.point.callback), {}})
                  .first;
    }
    const Binding& binding = found->second;
    kinds_used.push_back({binding.kind, &effect});
    if (!effect.results.empty() && !binding.kind->answers) {
      wrong.add(pointer, "callback " + std::to_string(effect.point.callback) + " gives values back, effect \"" +
                             std::string(binding.kind->name) + "\" does not");
    }
    if (effect.results.empty()) continue;
    if (binding.kind->answers && binding.answers.empty()) {
      throw core::Error("unsupported_effect",
                        "callback " + std::to_string(effect.point.callback) +
                            ": answers that come while the program runs are not supported yet; give \"answers\"");
    }
    for (size_t call = 0; call < binding.answers.size(); ++call) {
      const auto& answer = binding.answers[call];
      bool fits = answer.size() == effect.results.size();
      for (size_t r = 0; fits && r < answer.size(); ++r) fits = answer[r].type == effect.results[r];
      if (!fits) {
        std::string expected;
        for (const tensor::TensorType& type : effect.results)
          expected += (expected.empty() ? "" : ", ") + tensor::to_string(type);
        wrong.add(pointer + "/answers/" + std::to_string(call), "expected values of types " + expected);
      }
    }
  }
  wrong.throw_if_any("invalid_request");
  check_kinds(kinds_used, plan);
  return given;
}

device::EffectResult Recorder::emit(const device::EffectCall& call) {
  const auto found = bindings_.find(call.callback);
  if (found == bindings_.end()) {
    throw core::Error("effects_not_supported", "callback " + std::to_string(call.callback) + " has nothing behind it");
  }
  const Binding& binding = found->second;
  if (call.has_side_effect) {
    RecordedEffect made;
    made.kind = binding.kind;
    made.name = binding.name;
    made.ordered = call.ordered;
    made.shard_index = call.shard;
    made.point = call.program_point;
    made.device = call.device;
    for (const device::EffectValue& value : call.operands) {
      made.values.push_back({value.type, std::vector<std::byte>(value.bytes.begin(), value.bytes.end())});
    }
    effects_.with([&](std::vector<RecordedEffect>& list) { list.push_back(std::move(made)); });
  }
  if (call.results.empty()) return device::EffectResult::done();
  const size_t number = calls_[call.callback]++;
  std::vector<std::vector<std::byte>> answers;
  for (const OwnedValue& value : binding.answers[std::min(number, binding.answers.size() - 1)])
    answers.push_back(value.bytes);
  return device::EffectResult::done(std::move(answers));
}

std::vector<RecordedEffect> Recorder::take() {
  return effects_.with([](std::vector<RecordedEffect>& list) { return std::exchange(list, {}); });
}

}  // namespace meshd::effects
