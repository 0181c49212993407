#include "service/jobs/queue/waiting_memory.h"

#include <algorithm>
#include <utility>

#include "service/compile/program_size.h"
#include "service/core/checked_math.h"
#include "service/core/error.h"

namespace meshd::jobs {
namespace {

// What an attempt held it gives back when it is refused, which notifies others that wait as it does: they would wake
// each other without end.
constexpr std::chrono::milliseconds kLeastPause{20};

// Of its program and plan, though others may have the same.
int64_t program_bytes(const Job& job) {
  return compile::size_bytes(*job.request.program) + compile::size_bytes(*job.lowered);
}

}  // namespace

bool WaitingMemory::hold_request(Job& job, int64_t stored_bytes) {
  job.waiting = {ledger_, core::MemoryAccount::kWaiting};
  const int64_t bytes = stored_bytes + program_bytes(job);
  if (job.waiting.try_grow(bytes)) return true;
  // A copy of a stored array is the array as it was when the job was accepted: it is in no row.
  job.leaves_memory = sources_.has_value() && job.request.fed_arrays.empty();
  return job.leaves_memory;
}

void WaitingMemory::unload_request(Job& job) {
  if (!job.leaves_memory) return;
  JobRequest& request = job.request;
  for (Argument& argument : request.arguments) {
    if (auto* value = std::get_if<tensor::DenseValue>(&argument)) value->buffer = nullptr;
  }
  request.program = nullptr;
  request.statics.clear();
  request.infeeds.clear();
  request.callbacks.clear();
  job.bindings.clear();
  job.lowered = nullptr;
}

void WaitingMemory::load_request(Job& job, const core::WaiterRef& waiter) {
  if (!std::exchange(job.leaves_memory, false)) return;
  // Others may hold the memory that compiling takes: it was accepted, so that it waits.
  const auto patiently = [&](const auto& make) {
    for (;;) {
      try {
        return make();
      } catch (const core::Error& error) {
        if (error.code() != core::ErrorCode("memory_full")) throw;
      }
      wait_for_memory(job, waiter);
    }
  };
  const auto row = catalog_.read([&](storage::Reader& reader) { return reader.job(job.row.id, job.row.principal); });
  if (!row) throw core::Error("internal", "a job that waits has no row");
  JobRequest again = patiently([&] { return read_stored_job(*row, *sources_); });
  JobRequest& request = job.request;
  for (size_t i = 0; i < request.arguments.size(); ++i) {
    if (std::holds_alternative<tensor::DenseValue>(request.arguments[i]))
      request.arguments[i] = std::move(again.arguments.at(i));
  }
  request.program = std::move(again.program);
  request.infeeds = std::move(again.infeeds);
  job.lowered = patiently(
      [&] { return compiler_.lower(compiler_.specialise(request.program, job.argument_types), job.assignment.lower); });
  job.bindings = effects::check_bindings(std::move(again.callbacks), *job.lowered->plan, !request.session.empty());
}

void WaitingMemory::wait_for_memory(Job& job, const core::WaiterRef& waiter) const {
  core::MemoryReservation(ledger_, core::MemoryAccount::kRequests).notify_when_given(waiter);
  const core::SteadyTime now = clock_.steady();
  const core::SteadyTime least = now + kLeastPause;
  for (auto until = now + core::MemoryReservation::kLongestWait; clock_.steady() < until; until = least) {
    waits_.throw_if_ended(job, *waiter);
    waiter->wait(std::min(job.deadline, until));
  }
}

void WaitingMemory::wait_for_room(Job& job, core::Waiter& waiter) {
  const auto may_commit = [&] {
    return job.queue == nullptr || (!job.queue->is_held(job.row.number) && job.queue->may_update(job.row.number) &&
                                    job.queue->may_log(job.row.number));
  };
  if (!may_commit()) {
    if (!job.leaves_memory && try_hold_results(job)) return;
    waits_.wait_for_session(job, waiter, may_commit);
  }
  job.waiting = {};  // its arguments are among the bytes that the run plans
}

bool WaitingMemory::try_hold_results(Job& job) const {
  int64_t bytes = compile::result_bytes(*job.lowered->plan);
  if (job.waiting.bytes() == 0) {  // of a request that waits for it
    job.waiting = {ledger_, core::MemoryAccount::kWaiting};
    bytes = core::checked_add(bytes, program_bytes(job));
  }
  return job.waiting.try_grow(bytes);
}

}  // namespace meshd::jobs
