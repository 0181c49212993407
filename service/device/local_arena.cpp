#include "service/device/local_arena.h"

#include <algorithm>
#include <numeric>

#include "service/ops/kernel_interface.h"

namespace meshd::device {
namespace {

struct Range {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t to = 0;  // where it begins in this rank's arena
};

// By table, and then shard: whether a device of the rank holds it.
std::vector<std::vector<char>> held_shards(const compile::Plan& plan, const Ownership& owners) {
  std::vector<std::vector<char>> out;
  for (const compile::ShardTable& table : plan.tables) {
    std::vector<char>& held = out.emplace_back(static_cast<size_t>(table.count()), 0);
    for (size_t device = 0; device < owners.rank_of_device.size(); ++device) {
      const int32_t shard = table.shard_of_device[device];
      if (shard >= 0 && owners.rank_of_device[device] == owners.rank) held[static_cast<size_t>(shard)] = 1;
    }
  }
  return out;
}

template <typename F>
void each_held(const compile::Plan& plan, const std::vector<std::vector<char>>& held, const F& f) {
  for (const compile::Slot& slot : plan.slots) {
    if (slot.storage != compile::Storage::kArena) continue;
    const std::vector<char>& ours = held[static_cast<size_t>(slot.table)];
    for (size_t shard = 0; shard < ours.size(); ++shard) {
      const auto number = static_cast<int64_t>(shard);
      if (ours[shard] != 0) f(slot.first_pointer + number, slot.offset + number * slot.stride, slot.stride);
    }
  }
}

// `run_bytes`: arena and scratch of the rank's own devices.
int64_t planned_bytes_of(const compile::Plan& plan, const Ownership& owners, const std::vector<std::vector<char>>& held,
                         int64_t run_bytes, const ApartShards& apart) {
  const bool has_all = owners.rank == 0;
  const auto count_of = [&](compile::TableId table, bool is_apart) {
    const std::vector<char>& ours = held[static_cast<size_t>(table)];
    return has_all && !is_apart ? plan.table(table).count() : std::count(ours.begin(), ours.end(), 1);
  };
  int64_t bytes = owners.is_member ? run_bytes : 0;
  for (size_t i = 0; i < plan.arguments.size(); ++i) {
    const compile::PlanParameter& argument = plan.arguments[i];
    bytes += argument.shard_bytes * count_of(argument.table, !apart.arguments.empty() && apart.arguments[i] != 0);
  }
  // A buffer may be several results.
  std::vector<char> comes_here(plan.slots.size(), apart.results.empty() ? 1 : 0);
  for (size_t i = 0; i < plan.results.size() && !apart.results.empty(); ++i) {
    const compile::SlotId slot = plan.results[i].slot_ref.slot;
    if (slot >= 0 && apart.results[i] != ResultPlace::kThere) comes_here[static_cast<size_t>(slot)] = 1;
  }
  for (size_t i = 0; i < plan.slots.size(); ++i) {
    const compile::Slot& slot = plan.slots[i];
    if (slot.storage == compile::Storage::kOwn) bytes += slot.bytes * count_of(slot.table, comes_here[i] == 0);
  }
  return bytes;
}

void place_workspaces(const compile::Plan& plan, const std::vector<std::vector<char>>& held, LocalArena& out) {
  out.workspace_places.resize(plan.tables.size());
  int64_t most = 0;
  for (const compile::Block& block : plan.blocks) {
    for (const compile::Step& step : block.steps) {
      if (step.kernel == nullptr || step.kernel->workspace_bytes == 0) continue;
      const std::vector<char>& ours = held[static_cast<size_t>(step.table)];
      std::vector<int32_t>& places = out.workspace_places[static_cast<size_t>(step.table)];
      if (places.empty()) {
        places.resize(ours.size());
        std::exclusive_scan(ours.begin(), ours.end(), places.begin(), int32_t{0});
      }
      most = std::max<int64_t>(most, step.kernel->workspace_bytes * std::count(ours.begin(), ours.end(), 1));
    }
  }
  out.scratch_bytes = plan.shared_scratch_bytes + most;
}

}  // namespace

LocalArena local_arena(const compile::Plan& plan, const Ownership& owners, const ApartShards& apart) {
  const std::vector<std::vector<char>> held = held_shards(plan, owners);
  std::vector<Range> ranges;
  each_held(plan, held, [&](int64_t /*pointer*/, int64_t begin, int64_t bytes) {
    ranges.push_back({begin, begin + bytes, 0});
  });
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
  std::vector<Range> united;
  for (const Range& range : ranges) {
    if (united.empty() || range.begin > united.back().end) {
      united.push_back(range);
    } else {
      united.back().end = std::max(united.back().end, range.end);
    }
  }
  LocalArena out;
  for (Range& range : united) {
    range.to = out.bytes;
    out.bytes += range.end - range.begin;
  }
  out.offsets.assign(static_cast<size_t>(plan.pointer_count), -1);
  each_held(plan, held, [&](int64_t pointer, int64_t begin, int64_t /*bytes*/) {
    const auto behind = std::upper_bound(united.begin(), united.end(), begin,
                                         [](int64_t at, const Range& range) { return at < range.begin; });
    const Range& range = *(behind - 1);
    out.offsets[static_cast<size_t>(pointer)] = range.to + begin - range.begin;
  });
  place_workspaces(plan, held, out);
  out.planned_bytes = planned_bytes_of(plan, owners, held, out.bytes + out.scratch_bytes, apart);
  return out;
}

Ownership ownership_of(const EngineOptions& options, std::span<const int64_t> devices) {
  Ownership out;
  out.rank = options.rank;
  out.rank_of_device.assign(devices.size(), options.rank);
  if (options.transport == nullptr) return out;
  for (size_t i = 0; i < devices.size(); ++i) {
    const auto device = static_cast<size_t>(devices[i]);
    out.rank_of_device[i] = options.process_of_device.empty() ? 0 : options.process_of_device.at(device);
  }
  const auto ours = std::count(out.rank_of_device.begin(), out.rank_of_device.end(), options.rank);
  out.is_alone = ours == static_cast<std::ptrdiff_t>(devices.size());
  out.is_member = ours > 0;
  return out;
}

}  // namespace meshd::device
