// One run of several ranks, as rank 0 has it (coordinator.h has the steps).
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

#include "service/device/engine.h"
#include "service/hosts/coordinator.h"
#include "service/hosts/holders.h"
#include "service/hosts/ordered_effects.h"
#include "service/hosts/plans.h"
#include "service/hosts/rank_results.h"
#include "service/hosts/run_outcome.h"

namespace meshd::hosts {

/// Any thread.
class MultiRankRun final : public device::Run, public std::enable_shared_from_this<MultiRankRun> {
 public:
  /// `holders`: of its plan and devices.
  MultiRankRun(Coordinator& owner, uint64_t key, Holders holders, device::RunRequest request,
               std::function<void(device::RunOutcome)> done);

  void resume() override;
  void cancel(core::Error reason) override;
  [[nodiscard]] device::RunProgress progress() const override;

  /// Has the ranks make the plan, and submits it to the engine of rank 0.
  void start();
  [[nodiscard]] uint64_t key() const { return key_; }
  void effect(int rank, Effect effect);
  void ended(int rank, Ended message);

 private:
  /// Gives the engine of rank 0 its part. What that throws ends the run.
  void submit_own(bool is_lent);
  void give_to_engine(bool is_lent);
  /// Tells the others to begin, and sends them the arguments that they have not; shards that rank 0 has not are taken
  /// away. Throws what the run was cancelled with meanwhile.
  void begin_elsewhere(std::vector<device::RunArgument>& arguments, core::Checkpoint& checkpoint);
  void expect_results();
  /// A block that a rank is sent.
  struct Send {
    int rank = 0;
    size_t argument = 0;
    int64_t shard = 0;
    uint64_t entry = 0;  // 0: it is for this run alone
  };
  /// Reads shards that rank 0 needs, for itself or for a rank that neither has them in memory nor on its disk.
  void load(std::vector<device::RunArgument>& arguments, core::Checkpoint& checkpoint);
  /// How the rank gets its shards; what it is to be sent is added to `sends`.
  std::vector<ArgumentShard> place(int rank, const std::vector<device::RunArgument>& arguments,
                                   std::vector<Send>& sends);
  /// Throws what reading it throws, and nothing of what is in memory.
  void send(const Send& what, std::vector<device::RunArgument>& arguments);
  [[nodiscard]] bool stays(size_t result) const {
    return !request_.apart.results.empty() && request_.apart.results[result] == device::ResultPlace::kThere;
  }
  void own_ended(device::RunOutcome outcome);
  /// The same where it has not begun.
  void own_failed(const core::Error& error);
  /// Ends it on all ranks that have begun it and not ended.
  void cancel_ranks(const core::Error& reason);
  [[nodiscard]] bool is_over_elsewhere();
  /// Its last step, once all ranks have ended it.
  void finish_if_over();
  void finish();

  Coordinator& owner_;
  const uint64_t key_;
  const compile::PlanRef plan_;
  device::RunRequest request_;
  std::function<void(device::RunOutcome)> done_;
  const Holders holders_;
  const bool is_member_;  // rank 0 owns a device of the run
  PlanNumberRef number_;
  std::optional<OrderedEffects> effects_;

  mutable std::mutex mutex_;  // of what follows
  std::weak_ptr<device::Run> own_;
  std::optional<core::Error> reason_;  // of the first cancel
  std::set<int> begun_;                // ranks other than 0
  std::shared_ptr<RankLoan> loan_;
  std::shared_ptr<RankResults> held_;    // where the request asks for it
  int64_t sent_bytes_ = 0;               // of arguments
  std::map<int, RankOutcome> outcomes_;  // of ranks that have ended it
  std::map<int, core::Error> told_;      // what ranks were cancelled with
  device::RunOutcome own_outcome_;
  bool is_finishing_ = false;
  std::vector<std::vector<tensor::BufferRef>> received_;  // results' shards of other ranks
};

}  // namespace meshd::hosts
