#include "service/hosts/run_outcome.h"

#include <algorithm>
#include <tuple>

namespace meshd::hosts {
namespace {

bool is_same(const core::Error& a, const std::optional<core::Error>& b) {
  return b && a.code() == b->code() && a.detail() == b->detail();
}

const compile::Step* find_step(const compile::Plan& plan, int32_t number) {
  for (const compile::Block& block : plan.blocks) {
    for (const compile::Step& step : block.steps) {
      if (step.number == number) return &step;
    }
  }
  return nullptr;
}

void add_profile(device::RunProfile& to, const device::RunProfile& from) {
  for (size_t i = 0; i < std::min(to.steps.size(), from.steps.size()); ++i) {
    to.steps[i].count = std::max(to.steps[i].count, from.steps[i].count);
    to.steps[i].time = std::max(to.steps[i].time, from.steps[i].time);
  }
  to.page_faults += from.page_faults;
  to.wake_ups += from.wake_ups;
}

}  // namespace

std::optional<core::Error> first_error(const std::map<int, RankOutcome>& ranks) {
  std::optional<core::Error> own, told;
  int64_t earliest = 0;
  for (const auto& [rank, outcome] : ranks) {
    if (!outcome.error) continue;
    if (is_same(*outcome.error, outcome.told)) {
      if (!told) told = outcome.error;
      continue;
    }
    if (own && outcome.stats.steps >= earliest) continue;
    own = outcome.error;
    earliest = outcome.stats.steps;
  }
  return own ? own : told;
}

device::RunStats stats_of(const compile::Plan& plan, const std::map<int, RankOutcome>& ranks, bool has_rank_0_devices) {
  device::RunStats out;
  bool is_first = true;
  for (const auto& [rank, outcome] : ranks) {
    const device::RunStats& stats = outcome.stats;
    if (rank == 0) out.queue_time = stats.queue_time;
    out.run_time = std::max(out.run_time, stats.run_time);
    if (rank == 0 && !has_rank_0_devices) continue;
    out.steps = std::max(out.steps, stats.steps);
    out.operations = std::max(out.operations, stats.operations);
    out.bytes = std::max(out.bytes, stats.bytes);
    out.kernel_calls += stats.kernel_calls;
    out.handoffs += stats.handoffs;
    out.messages += stats.messages;
    out.peak_bytes = std::max(out.peak_bytes, stats.peak_bytes);
    out.allocated_bytes = std::max(out.allocated_bytes, stats.allocated_bytes);
    out.busy_time += stats.busy_time;
    out.device_busy.resize(std::max(out.device_busy.size(), stats.device_busy.size()));
    for (size_t i = 0; i < stats.device_busy.size(); ++i) out.device_busy[i] += stats.device_busy[i];
    if (stats.profile) {
      if (is_first || !out.profile) {
        out.profile = stats.profile;
      } else {
        add_profile(*out.profile, *stats.profile);
      }
    }
    is_first = false;
    if (!stats.first_nonfinite) continue;
    const auto order = [](const device::FirstNonfinite& found) { return std::tuple(found.executed, found.device); };
    if (out.first_nonfinite && order(*out.first_nonfinite) <= order(*stats.first_nonfinite)) continue;
    out.first_nonfinite = stats.first_nonfinite;
    if (const compile::Step* step = find_step(plan, out.first_nonfinite->step)) {
      out.first_nonfinite->op = step->name;
      out.first_nonfinite->location = step->location;
    }
  }
  return out;
}

}  // namespace meshd::hosts
