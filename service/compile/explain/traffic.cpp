#include "service/compile/explain/traffic.h"

#include <algorithm>

#include "service/compile/plan/collective_parts.h"

namespace meshd::compile {
namespace {

class TrafficFinder {
 public:
  TrafficFinder(const Plan& plan, std::span<const int> process_of_device) : plan_(plan) {
    for (const ShardTable& table : plan.tables) {
      std::vector<std::vector<int>>& holders = holders_.emplace_back(static_cast<size_t>(table.count()));
      for (size_t device = 0; device < process_of_device.size(); ++device) {
        if (table.shard_of_device[device] >= 0)
          holders[static_cast<size_t>(table.shard_of_device[device])].push_back(process_of_device[device]);
      }
      for (std::vector<int>& of_shard : holders) {
        std::sort(of_shard.begin(), of_shard.end());
        of_shard.erase(std::unique(of_shard.begin(), of_shard.end()), of_shard.end());
      }
    }
  }

  Traffic run() {
    out_.of_step.assign(static_cast<size_t>(plan_.step_count), 0);
    for (const Block& block : plan_.blocks) {
      for (const Step& step : block.steps) {
        if (step.collective != nullptr) add(step);
      }
    }
    for (const PlanParameter& argument : plan_.arguments) {
      for (const std::vector<int>& processes : holders_[static_cast<size_t>(argument.table)]) {
        const auto others = static_cast<int64_t>(processes.size()) - (holds(processes, 0) ? 1 : 0);
        out_.arguments += others * argument.shard_bytes;
      }
    }
    for (const PlanParameter& result : plan_.results) {
      for (const std::vector<int>& processes : holders_[static_cast<size_t>(result.table)]) {
        if (!holds(processes, 0)) out_.results += result.shard_bytes;
      }
    }
    return std::move(out_);
  }

 private:
  static bool holds(const std::vector<int>& processes, int process) {
    return std::binary_search(processes.begin(), processes.end(), process);
  }

  [[nodiscard]] const std::vector<int>& holders_of(const CollectiveSource& source) const {
    return holders_[static_cast<size_t>(source.table)][static_cast<size_t>(source.shard)];
  }

  void add(const Step& step) {
    const Collective& collective = step.collective->get(plan_);
    std::vector<int64_t> of_operand(step.operands.size(), 0);
    for (size_t shard = 0; shard < collective.sources.size(); ++shard) {
      const auto number = static_cast<int64_t>(shard);
      const std::vector<int>& wanting = holders_[static_cast<size_t>(step.table)][shard];
      const auto count = static_cast<int64_t>(wanting.size());
      int64_t lacking = 0;
      for (const CollectiveSource& source : collective.sources[shard]) {
        for (const int process : wanting) lacking += holds(holders_of(source), process) ? 0 : 1;
      }
      const bool in_parts = is_made_in_parts(collective, number, count, lacking);
      for (const CollectiveSource& source : collective.sources[shard]) {
        for (int64_t i = 0; i < count; ++i) {
          if (holds(holders_of(source), wanting[static_cast<size_t>(i)])) continue;
          const CollectivePart part = in_parts ? part_of(collective, number, i, count) : CollectivePart();
          of_operand[static_cast<size_t>(source.operand)] += in_parts ? part.end_byte - part.begin_byte : source.bytes;
        }
      }
      if (in_parts) of_operand.front() += (count - 1) * collective.sources[shard].front().bytes;
    }
    for (size_t operand = 0; operand < of_operand.size(); ++operand) {
      out_.steps += of_operand[operand];
      out_.of_step[static_cast<size_t>(step.number)] += of_operand[operand];
      for (const SlotRef& result : step.results)
        out_.of_move[{step.operands[operand].value, result.value}] = of_operand[operand];
    }
  }

  const Plan& plan_;
  std::vector<std::vector<std::vector<int>>> holders_;  // by table and shard: processes, ascending
  Traffic out_;
};

}  // namespace

Traffic find_traffic(const Plan& plan, std::span<const int> process_of_device) {
  return TrafficFinder(plan, process_of_device).run();
}

}  // namespace meshd::compile
