// Admission of jobs: from a request to a job that can run, with its number in the session, its reservations and its
// row.
#pragma once

#include <cstdint>
#include <string>

#include "service/arrays/array_store.h"
#include "service/compile/pipeline.h"
#include "service/core/clock.h"
#include "service/jobs/job.h"
#include "service/jobs/live_jobs.h"
#include "service/jobs/queue/waiting_memory.h"
#include "service/jobs/runner_options.h"
#include "service/sessions/session_store.h"
#include "storage/store.h"

namespace meshd::jobs {

/// Any thread.
class Admission {
 public:
  /// What it knows of the server beside what it uses.
  struct Server {
    int64_t device_count = 0;
    int64_t environment = 0;  ///< of this process, for the rows of its jobs
  };
  Admission(storage::Store& store, arrays::ArrayStore& arrays, compile::Compiler& compiler,
            sessions::SessionStore& sessions, LiveJobs& live, WaitingMemory& memory, const core::Clock& clock,
            const RunnerOptions& options, Server server)
      : store_(store),
        arrays_(arrays),
        compiler_(compiler),
        sessions_(sessions),
        live_(live),
        memory_(memory),
        clock_(clock),
        options_(options),
        server_(server) {}

  /// Checks shapes and types, chooses devices and shardings, lowers the program. Nothing is written. Throws what is
  /// wrong with the request.
  JobRef prepare(JobRequest request);
  /// The job has its number and its row, if it is to have one, and holds what it donates and reads; it is live and in
  /// its session's queue. Where it throws nothing of that is so.
  void accept(const JobRef& accepted, bool background);
  /// A job of before a restart, as accept() left it: prepared, with its promised results, reservations and arguments.
  /// Throws what prepare() throws, and for arrays that are lost.
  JobRef restore(const storage::JobRow& row, JobRequest request, ResultEncoder encode);
  /// Times and session of a job whose row there is.
  void begin_again(Job& job, const storage::JobRow& row);

 private:
  void check_arguments(Job& job);
  void lower(Job& job);
  void note_donations(Job& job);
  void name_row(Job& job, bool background);
  /// Puts the request into the job's row in its stored form. The blobs are to be kept once the row is durable.
  storage::PendingBlobs keep_request(Job& job, bool background);
  void write_row(const JobRef& accepted, bool& has_entered);
  void refuse(Job& job, bool has_entered);
  void keep_arguments(Job& job);
  /// Gives the arrays that the job is to make their ids, those of its row where that has them.
  void promise_results(Job& job);

  storage::Store& store_;
  arrays::ArrayStore& arrays_;
  compile::Compiler& compiler_;
  sessions::SessionStore& sessions_;
  LiveJobs& live_;
  WaitingMemory& memory_;
  const core::Clock& clock_;
  const RunnerOptions& options_;
  const Server server_;
};

}  // namespace meshd::jobs
