#include "service/core/planted_bugs.h"

#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

namespace meshd::core {
namespace {

PlantedBug chosen() {
  const char* name = std::getenv("PLANTED_BUG");
  if (name == nullptr) return PlantedBug::kNone;
  static const std::map<std::string, PlantedBug> kBugs{
      {"acknowledge_before_commit", PlantedBug::kAcknowledgeBeforeCommit},
      {"skip_sequence_number", PlantedBug::kSkipSequenceNumber},
      {"deliver_to_wrong_session", PlantedBug::kDeliverToWrongSession},
      {"lose_idempotency_on_restart", PlantedBug::kLoseIdempotency},
      {"swap_two_jobs", PlantedBug::kSwapTwoJobs},
      {"order_by_completion", PlantedBug::kOrderByCompletion},
      {"reuse_donated_store_early", PlantedBug::kReuseDonatedStoreEarly},
      {"stream_before_commit", PlantedBug::kStreamBeforeCommit},
      {"append_twice_on_retry", PlantedBug::kAppendTwiceOnRetry}};
  const auto found = kBugs.find(name);
  if (found == kBugs.end()) {
    std::fprintf(stderr, "PLANTED_BUG: there is no bug '%s'\n", name);
    std::exit(2);
  }
  return found->second;
}

}  // namespace

bool is_planted(PlantedBug bug) {
  static const PlantedBug kChosen = chosen();
  return bug == kChosen;
}

}  // namespace meshd::core
