// Limits of queued jobs: in all, of one principal, of one session.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "service/core/error.h"

namespace meshd::jobs {

struct QueueLimits {
  int64_t all = 1024;
  int64_t principal = 256;  ///< so that one principal cannot fill the queue
  int64_t session = 64;
};

/// One owner at a time (JobQueue holds its lock).
class QueuePlaces {
 public:
  explicit QueuePlaces(QueueLimits limits) : limits_(limits) {}

  /// A job that is accepted takes a place before anything is done for it. Throws queue_full with the limit that is
  /// reached. An empty session is none.
  void take(const std::string& principal, const std::string& session) {
    if (all_ >= limits_.all) throw full("jobs of all principals", all_, limits_.all);
    if (of_principal(principal) >= limits_.principal)
      throw full("jobs of this principal", of_principal(principal), limits_.principal);
    const auto found = sessions_.find(session);
    if (!session.empty() && found != sessions_.end() && found->second >= limits_.session)
      throw full("jobs of this session", found->second, limits_.session);
    add(principal, session);
  }
  /// The same for a job that was accepted before a restart: whatever the limits are.
  void add(const std::string& principal, const std::string& session) {
    ++all_;
    ++principals_[principal];
    if (!session.empty()) ++sessions_[session];
  }
  /// The job starts or ends.
  void give_back(const std::string& principal, const std::string& session) {
    --all_;
    if (--principals_[principal] == 0) principals_.erase(principal);
    if (!session.empty() && --sessions_[session] == 0) sessions_.erase(session);
  }

  [[nodiscard]] int64_t of_principal(const std::string& principal) const {
    const auto found = principals_.find(principal);
    return found == principals_.end() ? 0 : found->second;
  }
  /// How many more jobs of the principal may wait.
  [[nodiscard]] int64_t left(const std::string& principal) const {
    return std::max<int64_t>(0, std::min(limits_.all - all_, limits_.principal - of_principal(principal)));
  }
  [[nodiscard]] const QueueLimits& limits() const { return limits_; }

 private:
  static core::Error full(std::string_view whose, int64_t count, int64_t limit);

  const QueueLimits limits_;
  int64_t all_ = 0;
  std::map<std::string, int64_t> principals_;
  std::map<std::string, int64_t> sessions_;
};

}  // namespace meshd::jobs
