// The registry of jobs that are not over: whoever looks for a job by its name finds it here, from before its row is
// visible until its last step.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "service/core/error.h"

namespace meshd::jobs {

struct Job;
using JobRef = std::shared_ptr<Job>;
using JobName = std::pair<std::string, std::string>;  ///< principal and id

/// Any thread. Nothing is called under its lock.
class LiveJobs {
 public:
  /// Clients find the job from here on, and the end of the server ends it.
  void add(const JobRef& job);
  /// Nothing where another job has the name by now.
  void remove(const Job& job);
  /// Null: it is over, or never was.
  [[nodiscard]] JobRef find(const std::string& id, std::string_view principal) const;
  /// All, by name.
  [[nodiscard]] std::vector<JobRef> all() const;
  /// Those of a session.
  [[nodiscard]] std::vector<JobRef> of_session(std::string_view session) const;

  /// The id that a client chose, unique for its principal, claimed from the check for an equal id until the job's row
  /// exists, so that of two requests with one id one is refused before it reserves anything. Nothing for requests
  /// without an id.
  class Claim {
   public:
    /// Throws precondition_failed: a live job has the id, or another request claims it.
    Claim(LiveJobs& live, std::string principal, std::string id);
    ~Claim();
    Claim(const Claim&) = delete;
    Claim& operator=(const Claim&) = delete;

   private:
    LiveJobs& live_;
    const JobName name_;
  };

 private:
  mutable std::mutex mutex_;  ///< a leaf
  std::map<JobName, JobRef> jobs_;
  std::set<JobName> claimed_;
};

/// What a request is told whose chosen id another job has.
core::Error id_taken(const std::string& id);

}  // namespace meshd::jobs
