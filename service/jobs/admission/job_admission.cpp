// Admission of a job: its reservations, its number in the session and its row, all in one transaction.
#include <algorithm>
#include <limits>
#include <utility>

#include "service/core/error.h"
#include "service/core/ids.h"
#include "service/jobs/admission/admission.h"
#include "service/jobs/admission/job_arrays.h"

namespace meshd::jobs {
namespace {

using storage::JobState;

constexpr int64_t kNewest = std::numeric_limits<int64_t>::max();  // a number behind those of all jobs

}  // namespace

void Admission::accept(const JobRef& accepted, bool background) {
  Job& job = *accepted;
  name_row(job, background);
  // Nobody could see a request that waits for the session to go on; a job in the background is there to be read.
  if (!background && job.queue != nullptr && job.queue->is_held(kNewest)) throw session_halted(job.row.session);
  arrays_.reserve(job.donated, job.row.id);
  if (!job.has_row) return live_.add(accepted);
  bool has_entered = false;
  try {
    storage::PendingBlobs bytes = keep_request(job, background);
    if (background) promise_results(job);
    write_row(accepted, has_entered);
    bytes.keep();
    job.row.request = {};  // it is in the row
    WaitingMemory::unload_request(job);
  } catch (...) {
    refuse(job, has_entered);
    throw;
  }
}

// What its row is to say of it, and whether it has one.
void Admission::name_row(Job& job, bool background) {
  const JobRequest& request = job.request;
  job.accepted = clock_.steady();
  job.deadline = job.accepted + request.deadline.value_or(options_.longest);
  job.row.id = request.id.empty() ? core::new_id("job", clock_) : request.id;
  job.row.session = request.session;
  job.row.principal = request.principal;
  job.row.state = background ? JobState::kQueued : JobState::kRunning;
  job.row.created = clock_.wall();
  if (!background) job.row.started = job.row.created;
  job.has_row = background || !request.session.empty() || !request.idempotency_key.empty();
  if (!request.session.empty()) job.queue = sessions_.queue(request.session);
  if (!job.has_row) return;
  job.row.program = request.program_id;
  if (request.deadline) job.row.deadline = job.row.created + *request.deadline;
}

// Large values of the request are durable before the row that names their blob.
storage::PendingBlobs Admission::keep_request(Job& job, bool background) {
  const StoredJob stored = to_stored_job(job.request);
  if (background && !memory_.hold_request(job, stored.byte_count))
    throw core::Error("memory_full", "other jobs that wait hold the memory that this one needs").with_retry_after(1);
  if (stored.byte_count > kMostInRow)
    job.charge = arrays_.ledger().charge_bytes(job.row.principal, stored.byte_count, kWhatIsKept);
  job.row.environment = server_.environment;
  return keep_stored_job(stored, job.row, store_, clock_);
}

void Admission::write_row(const JobRef& accepted, bool& has_entered) {
  Job& job = *accepted;
  const JobRequest& request = job.request;
  store_.catalog().write([&](storage::Transaction& transaction) {
    if (!request.session.empty()) job.row.number = transaction.next_job_number(request.session);
    // From here on the job keeps the program; it may have been deleted before.
    if (!job.row.program.empty() && !transaction.has_program_content(job.row.program))
      throw core::Error("not_found", "there is no program '" + job.row.program + "'");
    // The log tells effects of one job from those of another by the job's id alone.
    if (!request.id.empty() && transaction.has_effects_of_job(request.session, request.id)) {
      throw core::Error("precondition_failed",
                        "the log of the session has effects of a deleted job '" + request.id + "'; choose another id");
    }
    transaction.insert_job(job.row);
    keep_arguments(job);
    for (const arrays::ArrayRef& array : job.donated) {
      // One that is promised has no row yet: it is reserved when it gets that.
      if (array->info().durability == storage::Durability::kDurable && transaction.array(array->info().id))
        transaction.reserve_array(array->info().id, job.row.id);
    }
    if (!request.idempotency_key.empty()) {
      transaction.claim_key(storage::IdempotencyRow{request.principal, request.idempotency_route,
                                                    request.idempotency_key, request.idempotency_fingerprint,
                                                    job.row.id, job.row.created});
    }
    // Whoever reads the row finds the job, to cancel it.
    live_.add(accepted);
    // The writer's thread sees jobs in the order of their numbers: so does its session queue.
    if (job.queue != nullptr) {
      job.queue->enter(job.row.number, job.effect_order, job.uses);
      has_entered = true;
    }
  });
}

// Takes back what was done for a job that is not accepted.
void Admission::refuse(Job& job, bool has_entered) {
  live_.remove(job);
  if (has_entered) job.queue->leave(job.row.number);
  free_arguments(job, arrays_);
  arrays_.release(job.donated, job.row.id);
  if (!job.donated.empty()) {
    // A promised array may have got its row, reserved, in the meantime.
    store_.catalog().write_async([id = job.row.id, principal = job.row.principal](
                                     storage::Transaction& transaction) { transaction.release_arrays(id, principal); },
                                 [](const std::exception_ptr&) {});
  }
  withdraw_results(job, arrays_, "was refused");
}

// Runs on storage's writer thread, with the job's row.
void Admission::keep_arguments(Job& job) {
  std::vector<arrays::ArrayRef> read;
  for (const FedArray& fed : job.request.fed_arrays) read.push_back(fed.array);
  for (const Argument& argument : job.request.arguments) {
    if (const auto* stored = std::get_if<ArrayArgument>(&argument)) read.push_back(stored->array);
  }
  arrays_.keep_for_job(read, job.request.session);
  job.to_read = std::move(read);
}

void Admission::begin_again(Job& job, const storage::JobRow& row) {
  job.row = row;
  job.row.request = {};  // it stays in the row
  job.has_row = true;
  job.accepted = clock_.steady();
  job.deadline = job.accepted + options_.longest;
  if (row.deadline) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(*row.deadline - clock_.wall());
    job.deadline = job.accepted + std::max(left, std::chrono::milliseconds(0));
  }
  if (!row.session.empty()) job.queue = sessions_.queue(row.session);
}

JobRef Admission::restore(const storage::JobRow& row, JobRequest request, ResultEncoder encode) {
  const JobRef job = prepare(std::move(request));
  begin_again(*job, row);
  job->encode = std::move(encode);
  try {
    promise_results(*job);
    arrays_.release(job->donated, row.id);
    arrays_.reserve(job->donated, row.id);
    keep_arguments(*job);
    if (row.request_version != 0) {
      const auto in_row = static_cast<int64_t>(row.request.size());
      memory_.hold_request(*job, row.bytes ? row.bytes->length : in_row);
      WaitingMemory::unload_request(*job);
    }
    if (row.bytes) {
      job->charge = arrays_.ledger().charge_bytes(row.principal, row.bytes->length, kWhatIsKept,
                                                  quotas::ArrayLedger::Fit::kAnyway);
    }
  } catch (const core::Error&) {
    withdraw_results(*job, arrays_, "cannot run again");
    throw;
  }
  return job;
}

}  // namespace meshd::jobs
