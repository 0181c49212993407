#include "service/jobs/live_jobs.h"

#include "service/jobs/job.h"

namespace meshd::jobs {

void LiveJobs::add(const JobRef& job) {
  const std::lock_guard held(mutex_);
  jobs_.emplace(JobName(job->row.principal, job->row.id), job);
}

void LiveJobs::remove(const Job& job) {
  JobRef last;  // destroyed without the lock
  const std::lock_guard held(mutex_);
  const auto found = jobs_.find({job.row.principal, job.row.id});
  if (found == jobs_.end() || found->second.get() != &job) return;
  last = std::move(found->second);
  jobs_.erase(found);
}

JobRef LiveJobs::find(const std::string& id, std::string_view principal) const {
  const std::lock_guard held(mutex_);
  const auto found = jobs_.find({std::string(principal), id});
  return found == jobs_.end() ? nullptr : found->second;
}

std::vector<JobRef> LiveJobs::all() const {
  std::vector<JobRef> out;
  const std::lock_guard held(mutex_);
  out.reserve(jobs_.size());
  for (const auto& [name, job] : jobs_) out.push_back(job);
  return out;
}

std::vector<JobRef> LiveJobs::of_session(std::string_view session) const {
  std::vector<JobRef> out;
  const std::lock_guard held(mutex_);
  for (const auto& [name, job] : jobs_) {
    if (job->row.session == session) out.push_back(job);
  }
  return out;
}

LiveJobs::Claim::Claim(LiveJobs& live, std::string principal, std::string id)
    : live_(live), name_(std::move(principal), std::move(id)) {
  if (name_.second.empty()) return;
  const std::lock_guard held(live_.mutex_);
  if (live_.jobs_.contains(name_) || !live_.claimed_.insert(name_).second) throw id_taken(name_.second);
}

LiveJobs::Claim::~Claim() {
  if (name_.second.empty()) return;
  const std::lock_guard held(live_.mutex_);
  live_.claimed_.erase(name_);
}

core::Error id_taken(const std::string& id) {
  return {"precondition_failed", "there is a job '" + id + "' already; read it, or choose another id for another job"};
}

}  // namespace meshd::jobs
