// Admission of a job: places in the queues, its number in the session, reservations of what it donates and its row, all
// in one transaction.
#include <limits>

#include "service/core/error.h"
#include "service/core/ids.h"
#include "service/jobs/job.h"
#include "service/jobs/stored/stored_job.h"

namespace meshd::jobs {
namespace {

using storage::JobState;

constexpr int64_t kNewest = std::numeric_limits<int64_t>::max();  // a number behind those of all jobs

}  // namespace

void JobRunner::accept(const JobRef& accepted, bool background) {
  Job& job = *accepted;
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
  // Nobody could see a request that waits for the session to go on; a job in the background is there to be read.
  if (!background && job.queue != nullptr && job.queue->is_held(kNewest)) throw session_halted(request.session);
  arrays_.reserve(job.donated, job.row.id);
  if (!job.has_row) return list_live(accepted);
  job.row.program = request.program_id;
  if (request.deadline) job.row.deadline = job.row.created + *request.deadline;
  bool entered = false;
  try {
    storage::PendingBlobs bytes = keep_request(job, background);
    if (background) promise_results(job);
    store_.catalog().write([&](storage::Transaction& transaction) {
      if (!request.session.empty()) job.row.number = transaction.next_job_number(request.session);
      // From here on the job keeps the program; it may have been deleted before.
      if (!job.row.program.empty() && !transaction.has_program_content(job.row.program))
        throw core::Error("not_found", "there is no program '" + job.row.program + "'");
      // The log tells effects of one job from those of another by the job's id alone.
      if (!request.id.empty() && transaction.has_effects_of_job(request.session, request.id)) {
        throw core::Error("precondition_failed", "the log of the session has effects of a deleted job '" + request.id +
                                                     "'; choose another id");
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
      list_live(accepted);
      // The writer's thread sees jobs in the order of their numbers: so does its session queue.
      if (job.queue != nullptr) {
        job.queue->enter(job.row.number, job.effect_order, job.uses);
        entered = true;
      }
    });
    bytes.keep();
    job.row.request = {};  // it is in the row
    unload_request(job);
  } catch (...) {
    {
      const std::lock_guard held(mutex_);
      const auto found = live_.find({job.row.principal, job.row.id});
      if (found != live_.end() && found->second == accepted) live_.erase(found);
    }
    if (entered) job.queue->leave(job.row.number);
    free_arguments(job);
    arrays_.release(job.donated, job.row.id);
    if (!job.donated.empty()) {
      // A promised array may have got its row, reserved, in the meantime.
      store_.catalog().write_async(
          [id = job.row.id, principal = job.row.principal](storage::Transaction& transaction) {
            transaction.release_arrays(id, principal);
          },
          [](const std::exception_ptr&) {});
    }
    withdraw_results(job, "was refused");
    throw;
  }
}

// Large values of the request are durable before the row that names their blob.
storage::PendingBlobs JobRunner::keep_request(Job& job, bool background) {
  const StoredJob stored = to_stored_job(job.request);
  if (background && !hold_request(job, stored.byte_count))
    throw core::Error("memory_full", "other jobs that wait hold the memory that this one needs").with_retry_after(1);
  if (stored.byte_count > kMostInRow)
    job.charge = arrays_.ledger().charge_bytes(job.row.principal, stored.byte_count, kWhatIsKept);
  job.row.environment = environment_;
  return keep_stored_job(stored, job.row, store_, clock_);
}

void JobRunner::list_live(const JobRef& job) {
  const std::lock_guard held(mutex_);
  live_.emplace(JobName(job->row.principal, job->row.id), job);
}

// Runs on storage's writer thread, with the job's row.
void JobRunner::keep_arguments(Job& job) {
  std::vector<arrays::ArrayRef> read;
  for (const FedArray& fed : job.request.fed_arrays) read.push_back(fed.array);
  for (const Argument& argument : job.request.arguments) {
    if (const auto* stored = std::get_if<ArrayArgument>(&argument)) read.push_back(stored->array);
  }
  arrays_.keep_for_job(read, job.request.session);
  job.to_read = std::move(read);
}

void JobRunner::free_arguments(Job& job) { arrays_.job_has_read(std::exchange(job.to_read, {}), job.request.session); }

/// The id that a client chose, unique for its principal, claimed from the check for an equal id until the job's row
/// exists, so that of two requests with one id one is refused before it reserves anything. Nothing for requests without
/// an id.
class JobRunner::Claim {
 public:
  Claim(JobRunner& runner, std::string principal, std::string id)
      : runner_(runner), name_(std::move(principal), std::move(id)) {
    if (name_.second.empty()) return;
    {
      const std::lock_guard held(runner_.mutex_);
      if (runner_.live_.contains(name_) || !runner_.claimed_.insert(name_).second) throw taken();
    }
    const auto row =
        runner_.store_.catalog().read([&](storage::Reader& reader) { return reader.job(name_.second, name_.first); });
    if (!row) return;
    release();
    throw taken();
  }
  ~Claim() {
    if (!name_.second.empty()) release();
  }
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;

 private:
  [[nodiscard]] core::Error taken() const {
    return core::Error("precondition_failed",
                       "there is a job '" + name_.second + "' already; read it, or choose another id for another job");
  }
  void release() {
    const std::lock_guard held(runner_.mutex_);
    runner_.claimed_.erase(name_);
  }

  JobRunner& runner_;
  const JobName name_;
};

std::string JobRunner::start(JobRequest request, ResultEncoder encode) {
  const std::string principal = request.principal;
  const std::string session = request.session;
  const Claim claim(*this, principal, request.id);
  {
    const std::lock_guard held(mutex_);
    if (stopping_) throw draining();
    places_.take(principal, session);
  }
  JobRef job;
  try {
    job = prepare(std::move(request));
    job->encode = std::move(encode);
    accept(job, true);
  } catch (...) {
    const std::lock_guard held(mutex_);
    places_.give_back(principal, session);
    throw;
  }
  enqueue(job);
  return job->row.id;
}

}  // namespace meshd::jobs
