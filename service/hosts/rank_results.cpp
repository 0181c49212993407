#include "service/hosts/rank_results.h"

#include <algorithm>
#include <map>
#include <utility>

namespace meshd::hosts {

std::optional<Residents::Shard> shard_of(const std::string& version, const compile::PlanParameter& parameter,
                                         int64_t shard) {
  if (version.empty() || parameter.shard_bytes == 0) return std::nullopt;
  const tensor::Dims real = parameter.shard_dims(shard);
  if (std::any_of(real.begin(), real.end(), [](int64_t size) { return size == 0; })) return std::nullopt;
  std::string block;
  for (const int64_t size : parameter.type.local.dims) block += std::to_string(size) + "x";
  for (const int64_t start : parameter.shard_start(shard)) block += "@" + std::to_string(start);
  return Residents::Shard{version, std::move(block), parameter.shard_bytes};
}

RankLoan::~RankLoan() {
  const std::lock_guard ordered(owner_.order_);
  for (size_t i = 0; i < lent_; ++i) owner_.residents_.give_back(bytes_[i].first, bytes_[i].second);
}

int RankLoan::lend() {
  const auto& [rank, bytes] = bytes_[lent_];
  owner_.residents_.lend(rank, bytes);
  ++lent_;
  return rank;
}

RankResults::RankResults(Coordinator& owner, uint64_t run, compile::PlanRef plan, Holders holders,
                         std::vector<int> ranks, std::shared_ptr<RankLoan> loan)
    : owner_(owner),
      run_(run),
      plan_(std::move(plan)),
      holders_(std::move(holders)),
      ranks_(std::move(ranks)),
      loan_(std::move(loan)) {}

RankResults::~RankResults() {
  for (const int rank : ranks_) owner_.messages_->send_surely(rank, Control::kRelease, Number{run_});
}

int RankResults::rank_of(size_t result, int64_t shard) const {
  return holders_.sender(plan_->results.at(result).table, shard).value_or(0);
}

std::vector<device::ShardFile> RankResults::store(const std::vector<ToStore>& shards) {
  std::map<int, DiskRequest> by_rank;
  std::map<int, std::vector<size_t>> places;
  for (size_t i = 0; i < shards.size(); ++i) {
    const int rank = rank_of(shards[i].result, shards[i].shard);
    DiskRequest& request = by_rank[rank];
    request.what = DiskRequest::What::kWrite;
    request.run = run_;
    request.names.push_back(shards[i].name);
    request.results.push_back(shards[i].result);
    request.shards.push_back(shards[i].shard);
    places[rank].push_back(i);
  }
  std::vector<std::pair<int, DiskRequest>> requests;
  for (auto& [rank, request] : by_rank) requests.emplace_back(rank, std::move(request));
  std::vector<DiskAnswer> answers = owner_.disks_->ask(std::move(requests));
  std::vector<device::ShardFile> out(shards.size());
  auto answer = answers.begin();
  for (const auto& [rank, wanted] : places) {
    for (size_t i = 0; i < wanted.size(); ++i) out[wanted[i]] = std::move(answer->files.at(i));
    ++answer;
  }
  return out;
}

void RankResults::became(size_t result, const std::string& version) {
  const compile::PlanParameter& parameter = plan_->results.at(result);
  const std::lock_guard ordered(owner_.order_);
  for (const int rank : ranks_) {
    Became message{.run = run_, .shards = {}, .drops = {}};
    message.shards.reserve(static_cast<size_t>(plan_->table(parameter.table).count()));
    for (int64_t shard = 0; shard < plan_->table(parameter.table).count(); ++shard) {
      if (!holders_.holds(rank, parameter.table, shard)) continue;
      // What is in the directory the rank is told, whether there is memory or not.
      const uint64_t entry = core::keep_trying([&] {
        const auto name = shard_of(version, parameter, shard);
        return name ? owner_.residents_.add(rank, *name) : 0;
      });
      if (entry != 0) message.shards.push_back({result, shard, entry});
    }
    message.drops = owner_.residents_.take_drops(rank);
    if (!message.shards.empty() || !message.drops.empty())
      owner_.messages_->send_surely(rank, Control::kBecame, message);
  }
}

}  // namespace meshd::hosts
