// Results of a run of several ranks that the ranks still hold, as rank 0 sees them: they are stored on the ranks'
// disks, become entries of their memory (residents.h), or are dropped.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "service/device/held_results.h"
#include "service/hosts/coordinator.h"
#include "service/hosts/holders.h"

namespace meshd::hosts {

/// Memory that a run plans at other ranks, from its beginning until this ends. The coordinator outlives it.
class RankLoan {
 public:
  /// `bytes`: by rank; each is lent by lend() alone.
  RankLoan(Coordinator& owner, std::vector<std::pair<int, int64_t>> bytes) : owner_(owner), bytes_(std::move(bytes)) {}
  ~RankLoan();
  RankLoan(const RankLoan&) = delete;
  RankLoan& operator=(const RankLoan&) = delete;

  [[nodiscard]] size_t count() const { return bytes_.size(); }
  /// The next one; returns whose it is. The coordinator's `order_` is held. What throws has lent nothing.
  int lend();

 private:
  Coordinator& owner_;
  const std::vector<std::pair<int, int64_t>> bytes_;
  size_t lent_ = 0;  ///< so many of them
};

class RankResults final : public device::HeldResults {
 public:
  /// The run has been begun on `ranks`.
  RankResults(Coordinator& owner, uint64_t run, compile::PlanRef plan, Holders holders, std::vector<int> ranks,
              std::shared_ptr<RankLoan> loan);
  ~RankResults() override;
  RankResults(const RankResults&) = delete;
  RankResults& operator=(const RankResults&) = delete;

  [[nodiscard]] int rank_of(size_t result, int64_t shard) const override;
  std::vector<device::ShardFile> store(const std::vector<ToStore>& shards) override;
  void became(size_t result, const std::string& version) override;

 private:
  Coordinator& owner_;
  const uint64_t run_;
  const compile::PlanRef plan_;
  const Holders holders_;
  const std::vector<int> ranks_;
  const std::shared_ptr<RankLoan> loan_;
};

/// The name of a shard of a version of an array, and what it takes; nothing where it is padding alone.
std::optional<Residents::Shard> shard_of(const std::string& version, const compile::PlanParameter& parameter,
                                         int64_t shard);

}  // namespace meshd::hosts
