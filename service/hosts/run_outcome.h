// The outcome of a run of several ranks, of what each of them gives.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "service/device/engine.h"

namespace meshd::hosts {

/// How one rank ended a run.
struct RankOutcome {
  std::optional<core::Error> error;
  std::optional<core::Error> told;  ///< what it was cancelled with, if it was
  device::RunStats stats;
};

/// The error of the run: of those that ranks made themselves, that of the earliest step, then of the lowest rank; else
/// what it was cancelled with. Nothing: it did not fail. Pure.
std::optional<core::Error> first_error(const std::map<int, RankOutcome>& ranks);

/// Steps, operations and bytes are the same on every rank; calls, messages and times of threads are added; of peaks,
/// the times of steps and of the run the greatest counts. Events of a profile are those of the lowest member. Pure.
device::RunStats stats_of(const compile::Plan& plan, const std::map<int, RankOutcome>& ranks, bool has_rank_0_devices);

}  // namespace meshd::hosts
