#include "service/hosts/ordered_effects.h"

#include <optional>
#include <utility>

#include "service/core/error_of.h"
#include "service/core/keep_trying.h"

namespace meshd::hosts {

OrderedEffects::OrderedEffects(device::EffectSink& sink, const compile::Plan& plan, std::vector<int64_t> devices,
                               Hooks hooks)
    : sink_(sink), plan_(plan), devices_(std::move(devices)), hooks_(std::move(hooks)) {}

device::EffectResult OrderedEffects::emit(const device::EffectCall& call) {
  {
    const std::lock_guard held(mutex_);
    if (call.visit != next_) {
      own_waits_ = true;
      return device::EffectResult::pending();
    }
  }
  device::EffectResult result = sink_.emit(call);
  if (result.is_done) {
    next();
    hooks_.pump_soon();
  }
  return result;
}

void OrderedEffects::next() {
  bool is_own_turn = false;
  {
    const std::lock_guard held(mutex_);
    ++next_;
    is_own_turn = own_waits_;
    own_waits_ = false;  // too early, it waits again
  }
  if (is_own_turn) hooks_.resume_own();
}

void OrderedEffects::take(int rank, Effect effect) {
  {
    const std::lock_guard held(mutex_);
    const int64_t visit = effect.visit;
    others_.emplace(visit, std::pair(rank, std::move(effect)));
    if (visit != next_) return;
  }
  hooks_.pump_soon();
}

void OrderedEffects::resume() {
  {
    const std::lock_guard held(mutex_);
    if (others_.empty() || others_.begin()->first != next_) return;
  }
  hooks_.pump_soon();
}

bool OrderedEffects::has_waiting() {
  const std::lock_guard held(mutex_);
  return !others_.empty();
}

void OrderedEffects::close() {
  const std::lock_guard held(mutex_);
  is_closed_ = true;
}

void OrderedEffects::pump() {
  while (true) {
    std::optional<std::pair<int, Effect>> head;
    {
      const std::lock_guard held(mutex_);
      const auto found = others_.find(next_);
      if (is_closed_ || found == others_.end()) return;
      core::keep_trying([&] { head = found->second; });
    }
    const auto& [rank, effect] = *head;
    Reply reply{.run = effect.run, .visit = effect.visit, .results = {}, .error = {}};
    device::EffectResult result;
    try {
      result = emit_for(effect);
    } catch (...) {
      close();
      hooks_.fail(core::keep_trying([] {
        return core::error_of(std::current_exception(), "the server has no memory for an effect of this run",
                              "an effect of this run failed");
      }));
      return;
    }
    if (!result.is_done) return;  // until resume()
    // The sink has it: it must not get it again.
    core::keep_trying([&] {
      reply.results.clear();
      for (const std::vector<std::byte>& bytes : result.results)
        reply.results.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    });
    {
      const std::lock_guard held(mutex_);
      others_.erase(effect.visit);
    }
    hooks_.reply(rank, reply);
    next();
  }
}

device::EffectResult OrderedEffects::emit_for(const Effect& effect) {
  const compile::PlanEffect& described = plan_.effects.at(static_cast<size_t>(effect.effect));
  device::EffectKey key;
  key.path = effect.path;
  key.shard = effect.shard;
  std::vector<device::EffectValue> values;
  for (size_t i = 0; i < effect.operands.size(); ++i) {
    const std::string& bytes = effect.operands[i];
    values.push_back({described.operands.at(i), std::as_bytes(std::span(bytes.data(), bytes.size()))});
  }
  device::EffectCall call;
  call.program_point = described.point.program_point;
  call.callback = described.point.callback;
  call.ordered = described.point.ordered;
  call.has_side_effect = described.point.has_side_effect;
  call.every_device = described.point.every_device;
  call.shard = effect.shard;
  call.device = effect.device;
  call.visit = effect.visit;
  call.key = &key;
  call.location = &described.location;
  call.name = described.name;
  call.effect = &described;
  call.devices = devices_;
  call.operands = values;
  call.results = described.results;
  return sink_.emit(call);
}

}  // namespace meshd::hosts
