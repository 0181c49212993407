#include <fmt/core.h>

#include <cstring>

#include "service/device/run_impl.h"

namespace meshd::device {

EffectKey RunImpl::effect_key(int64_t shard) const {
  EffectKey key;
  for (const Frame& frame : frames_) {
    if (frame.control != nullptr) {
      // The condition of an iteration precedes its body; the number of a branch has no order in time, but is part of
      // the path.
      const bool is_loop = frame.control->kind == compile::StepKind::kWhile;
      key.path.push_back(is_loop ? 2 * frame.iteration + (frame.is_condition ? 0 : 1) : frame.branch);
    }
    key.path.push_back(static_cast<int64_t>(frame.index));
  }
  key.shard = shard;
  return key;
}

// Emits one effect. False: its reply has not arrived.
bool RunImpl::emit(const compile::Step& step, int64_t shard) {
  const compile::PlanEffect& effect = plan().effects[static_cast<size_t>(step.effect)];
  if (request_.effects == nullptr) {
    fail_at(step, "effects_not_supported", "the program has effects, but nobody takes them");
  }
  const int64_t device = plan().table(step.table).device_of_shard[static_cast<size_t>(shard)];
  std::vector<EffectValue> values;
  for (size_t i = 0; i < step.operands.size(); ++i) {
    const auto bytes = static_cast<size_t>(tensor::byte_count(effect.operands[i]));
    values.push_back({effect.operands[i], {pointer(step.operands[i], shard), bytes}});
  }
  const EffectKey key = effect_key(effect.point.every_device ? device : 0);
  EffectCall call;
  call.program_point = effect.point.program_point;
  call.callback = effect.point.callback;
  call.ordered = effect.point.ordered;
  call.has_side_effect = effect.point.has_side_effect;
  call.every_device = effect.point.every_device;
  call.shard = key.shard;
  call.device = request_.devices[static_cast<size_t>(device)];
  call.visit = effect_visit_;
  call.key = &key;
  call.location = &effect.location;
  call.name = effect.name;
  call.effect = &effect;
  call.devices = request_.devices;
  call.operands = values;
  call.results = effect.results;
  const EffectResult result = request_.effects->emit(call);
  // Other ranks count on the order of runs on each device; alone, others may use the devices meanwhile.
  waits_outside_ = !result.is_done && owners_.is_alone;
  if (!result.is_done) return false;
  ++effect_visit_;
  if (result.results.size() != effect.results.size()) {
    fail_at(step, "program_failed",
            fmt::format("it has {} results, the reply {}", effect.results.size(), result.results.size()));
  }
  for (size_t i = 0; i < result.results.size(); ++i) {
    const auto bytes = static_cast<size_t>(tensor::byte_count(effect.results[i]));
    if (result.results[i].size() != bytes) {
      fail_at(step, "program_failed",
              fmt::format("result {} of the callback has {} bytes, the reply {}", i, bytes, result.results[i].size()));
    }
    if (bytes > 0) std::memcpy(pointer(step.results[i], shard), result.results[i].data(), bytes);
  }
  return true;
}

RunImpl::Next RunImpl::execute_effect(const compile::Step& step) {
  ActiveSet& active = *frames_.back().active;
  const compile::PlanEffect& effect = plan().effects[static_cast<size_t>(step.effect)];
  if (!effect.point.every_device) {
    const int64_t holder = active.holder(step.table, 0);
    if (effect_cursor_ == 0 && (owners_.is_alone || rank_of(holder) == owners_.rank)) {
      if (!emit(step, 0)) return Next::kSuspended;
      effect_cursor_ = 1;
    } else if (effect_cursor_ == 0) {
      ++effect_visit_;  // another rank emits it
      effect_cursor_ = 1;
    }
    if (!owners_.is_alone && !step.results.empty() && !exchange_results(step, holder)) return Next::kSuspended;
    effect_cursor_ = 0;
    return step_done(step);
  }
  // Shards are numbered by position; the log has them by device number, which is ascending in flat order.
  // Those of other ranks are counted, so that all ranks number effects alike.
  const std::span<const int32_t> shards =
      owners_.is_alone ? active_shards(active, step.table) : active.shards_everywhere(step.table);
  for (; effect_cursor_ < shards.size(); ++effect_cursor_) {
    const int32_t shard = shards[effect_cursor_];
    if (!owners_.is_alone && rank_of(active.holder(step.table, shard)) != owners_.rank) {
      ++effect_visit_;
      continue;
    }
    if (!emit(step, shard)) return Next::kSuspended;
  }
  effect_cursor_ = 0;
  return step_done(step);
}

}  // namespace meshd::device
