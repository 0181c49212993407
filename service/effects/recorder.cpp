#include "service/effects/recorder.h"

#include <algorithm>

#include "service/core/error.h"

namespace meshd::effects {

Bindings check_bindings(Bindings given, const compile::Plan& plan) {
  core::Diagnostics wrong;
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
