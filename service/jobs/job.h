// One job while this process knows it. Private to service/jobs.
#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "service/jobs/job_runner.h"
#include "service/jobs/placement.h"

namespace meshd::jobs {

/// Where the thread of a job sits while its run goes on: whoever has something for it rings.
struct JobRunner::Desk : std::enable_shared_from_this<JobRunner::Desk> {
  std::mutex mutex;
  std::condition_variable there;
  bool rung = false;
  std::optional<device::RunOutcome> outcome;

  void ring() {
    {
      const std::lock_guard held(mutex);
      rung = true;
    }
    there.notify_all();
  }
};

struct JobRunner::Job {
  JobRequest request;
  JobPlacement placement;
  compile::LoweredRef lowered;
  effects::Bindings bindings;
  storage::JobRow row;  ///< row.id is always set; written only when has_row
  bool has_row = false;
  bool is_ordered = false;  ///< has ordered effects
  std::shared_ptr<sessions::Line> line;
  std::vector<arrays::ArrayRef> donated;
  std::vector<arrays::ArrayRef>
      to_read;  ///< arguments that keep their data until this job has committed; jobs with a row
  sessions::ArrayUses uses;
  std::map<size_t, int64_t> read_versions;                               ///< of arrays that are updated, by argument
  std::vector<std::pair<arrays::ArrayRef, arrays::ShardBuffers>> taken;  ///< donated arrays' shards while it runs
  storage::IdempotencyRow key;                                           ///< empty key: none
  ResultEncoder encode;                                                  ///< makes the document that the row keeps
  JobTimings timings;
  core::SteadyTime accepted;
  bool in_background = false;
  std::vector<std::pair<int64_t, int64_t>> committed;  ///< sequence and number of effects that are committed already

  std::mutex mutex;  ///< for what follows
  std::shared_ptr<device::Run> run;
  std::shared_ptr<effects::Recorder> recorder;
  bool cancelled = false;
  bool stopped = false;  ///< the server is going down: its row stays as it is
  bool over = false;
  std::optional<ClientWait> waits;  ///< for what its client has to bring
};

}  // namespace meshd::jobs
