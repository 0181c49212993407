#include "service/hosts/residents.h"

#include <algorithm>
#include <utility>

namespace meshd::hosts {
namespace {

constexpr size_t kMostEntries = 16384;  // of a rank

}  // namespace

void Residents::set_room(int rank, int64_t array_bytes, int64_t with_runs_bytes) {
  of(rank).array_bytes = array_bytes;
  of(rank).with_runs_bytes = with_runs_bytes;
}

int64_t Residents::room(const Rank& rank) {
  return std::clamp<int64_t>(rank.with_runs_bytes - rank.lent_bytes, 0, rank.array_bytes);
}

Residents::At Residents::erase(Rank& rank, At at) {
  rank.bytes -= at->second.bytes;
  rank.by_use.erase(at->second.used);
  rank.by_number.erase(at->second.number);
  return rank.entries.erase(at);
}

void Residents::make_room(Rank& rank, int64_t coming) {
  while (!rank.by_use.empty() && (rank.bytes + coming > room(rank) || rank.entries.size() >= kMostEntries)) {
    const At oldest = rank.entries.find(rank.by_use.begin()->second);
    rank.drops.push_back(oldest->second.number);
    erase(rank, oldest);
  }
}

uint64_t Residents::find(int rank, const Shard& shard) {
  Rank& there = of(rank);
  const At at = there.entries.find({shard.version, shard.block});
  if (at == there.entries.end()) return 0;
  auto use = there.by_use.extract(at->second.used);
  at->second.used = use.key() = ++uses_;
  there.by_use.insert(std::move(use));
  return at->second.number;
}

uint64_t Residents::add(int rank, const Shard& shard) {
  Rank& there = of(rank);
  if (shard.bytes > room(there)) return 0;
  make_room(there, shard.bytes);
  const Entry entry{++last_number_, shard.bytes, ++uses_};
  const Name name{shard.version, shard.block};
  std::map<uint64_t, Name> use{{entry.used, name}}, number{{entry.number, name}};
  if (!there.entries.try_emplace(name, entry).second) return 0;
  there.by_use.merge(use);  // nothing below allocates
  there.by_number.merge(number);
  there.bytes += shard.bytes;
  return entry.number;
}

uint64_t Residents::take(int rank, const Shard& shard) {
  Rank& there = of(rank);
  const At at = there.entries.find({shard.version, shard.block});
  if (at == there.entries.end()) return 0;
  const uint64_t number = at->second.number;
  erase(there, at);
  return number;
}

void Residents::lost(int rank, uint64_t entry) {
  Rank& there = of(rank);
  const auto named = there.by_number.find(entry);
  if (named == there.by_number.end()) return;
  there.drops.push_back(entry);  // runs that were told of it before find there why
  erase(there, there.entries.find(named->second));
}

void Residents::lend(int rank, int64_t bytes) {
  Rank& there = of(rank);
  there.lent_bytes += bytes;
  try {
    make_room(there, 0);
  } catch (...) {
    there.lent_bytes -= bytes;
    throw;
  }
}

void Residents::give_back(int rank, int64_t bytes) { of(rank).lent_bytes -= bytes; }

void Residents::forget(std::string_view array) {
  const std::string prefix = std::string(array) + ".v";
  for (Rank& rank : ranks_) {
    At at = rank.entries.lower_bound({prefix, ""});
    while (at != rank.entries.end() && at->first.first.starts_with(prefix)) {
      rank.drops.push_back(at->second.number);
      at = erase(rank, at);
    }
  }
}

std::vector<uint64_t> Residents::take_drops(int rank) { return std::exchange(of(rank).drops, {}); }

Residents::Held Residents::held(int rank) const {
  const Rank& there = ranks_.at(static_cast<size_t>(rank));
  return {static_cast<int64_t>(there.entries.size()), there.bytes};
}

}  // namespace meshd::hosts
