// The states of a job and the transitions between them: the one table that the SQL of transitions is made of
// (Transaction::update_job, what a start does), and that service/jobs/README.md shows.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace meshd::storage {

enum class JobState { kQueued, kRunning, kDone, kFailed, kCancelled };

/// Done, failed or cancelled.
[[nodiscard]] constexpr bool is_over(JobState state) {
  return state != JobState::kQueued && state != JobState::kRunning;
}

/// One transition, which is one transaction. A state that is not there: no row.
struct JobTransition {
  std::optional<JobState> from;
  std::optional<JobState> to;
  std::string_view cause;
};

inline constexpr JobTransition kJobTransitions[] = {
    {std::nullopt, JobState::kQueued, "a background job is accepted"},
    {std::nullopt, JobState::kRunning, "a job of a waiting request is accepted"},
    {JobState::kQueued, JobState::kRunning, "it is ready and has a slot (written without waiting for the disk)"},
    {JobState::kQueued, JobState::kDone, "its results are durable, and its start was not written or was put back"},
    {JobState::kQueued, JobState::kFailed, "its time is up, its halted session is closed, or it cannot run again"},
    {JobState::kQueued, JobState::kCancelled, "DELETE; a start finds it marked by that"},
    {JobState::kRunning, JobState::kDone, "its results are durable"},
    {JobState::kRunning, JobState::kFailed, "anything it throws; a start finds it running the third time (`crashed`)"},
    {JobState::kRunning, JobState::kCancelled, "DELETE; a start finds it marked by that"},
    {JobState::kRunning, JobState::kQueued,
     "the server stops before it is over; a start finds it running (attempt + 1)"},
    {JobState::kDone, std::nullopt, "DELETE, age, count, its session was deleted"},
    {JobState::kFailed, std::nullopt, "DELETE, age, count, its session was deleted"},
    {JobState::kCancelled, std::nullopt, "DELETE, age, count, its session was deleted"},
};

/// The table has this transition. From a state to itself there is none.
[[nodiscard]] constexpr bool may_change(JobState from, JobState to) {
  for (const JobTransition& one : kJobTransitions) {
    if (one.from == from && one.to == to) return true;
  }
  return false;
}

}  // namespace meshd::storage
