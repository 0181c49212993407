// What a run of a plan sends from process to process, by which process has which of its devices. Read from the plan's
// collectives, by the rule that runs have (device/transport.h): a block goes from the first device that holds it to
// each process that needs it and has none.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "service/compile/plan/plan.h"

namespace meshd::compile {

/// Bytes, of all devices together.
struct Traffic {
  int64_t steps = 0;             ///< each executed once, by all devices
  int64_t arguments = 0;         ///< from process 0, which has them, to those whose devices hold them
  int64_t results = 0;           ///< back to process 0
  std::vector<int64_t> of_step;  ///< by Step::number
  std::map<std::pair<partition::LocalId, partition::LocalId>, int64_t> of_move;  ///< from operand to result
};

/// `process_of_device`: by flat device. Pure, but for collectives that are made at their first use.
Traffic find_traffic(const Plan& plan, std::span<const int> process_of_device);

}  // namespace meshd::compile
