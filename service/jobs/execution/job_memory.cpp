// What a job holds in memory while it waits, and for its answer, as the accounts `waiting` and `answers` of the memory
// ledger have room:
//   queued      its request and its program. Without room they leave memory, and are read again from its row in time
//   not next    its results, until the jobs before it in the session are over. Without room it does not begin before
//   answered    the text of its answer, or, in an account apart, results that are sent as they are. Without room a job
//               of a request is refused, one in the background waits
#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "service/compile/program_size.h"
#include "service/core/checked_math.h"
#include "service/core/error.h"
#include "service/jobs/job.h"
#include "service/jobs/stored/stored_job.h"

namespace meshd::jobs {
namespace {

// Smaller answers are not worth a reservation of their own: they are counted when they are sent.
constexpr int64_t kSmallAnswer = int64_t{64} << 10;
// Who gives memory back notifies nobody: answers leave with the packets of their clients.
constexpr std::chrono::milliseconds kLookAgain{20};
// Jobs that wait for the memory of a text have results in the memory that they wait for: one of them goes on after
// this.
constexpr std::chrono::seconds kPatience{10};

// The most that a value takes as text: digits, and the brackets of its lists.
int64_t text_bytes(const tensor::TensorType& type, bool base64) {
  const int64_t bytes = tensor::byte_count(type);
  if (base64) return core::checked_add(bytes, bytes / 3 + 4);
  constexpr int64_t kOfByte = 6, kOfList = 3;
  int64_t lists = 0, of_dim = 1;  // each of them as long as the dimension
  for (const int64_t dim : type.dims) {
    lists = core::checked_add(lists, of_dim);
    of_dim = core::checked_mul(of_dim, dim);
  }
  return core::checked_add(core::checked_mul(bytes, kOfByte), core::checked_mul(lists, kOfList));
}

int64_t answer_bytes(const JobRequest& request, const compile::Plan& plan, const JobResult& result) {
  int64_t bytes = 0;
  const auto add = [&](const tensor::TensorType& type, bool base64) {
    bytes = core::checked_add(bytes, text_bytes(type, base64));
  };
  if (request.results == ResultMode::kInline) {
    for (const compile::PlanParameter& one : plan.results) add(one.parameter.global_type, request.form.base64);
  }
  for (const JobEffect& one : result.effects) {
    for (const tensor::DenseValue& value : one.effect.values) add(value.type, request.form.base64);
  }
  return bytes;
}

int64_t result_bytes(const compile::Plan& plan) {
  int64_t bytes = 0;
  for (const compile::PlanParameter& one : plan.results)
    bytes = core::checked_add(bytes, tensor::byte_count(one.parameter.global_type));
  return bytes;
}

// In a file, or as outputs of a model.
bool are_sent_as_they_are(const JobRequest& request) {
  return request.form.is_file && request.results == ResultMode::kInline;
}

}  // namespace

int64_t JobRunner::program_bytes(const Job& job) {
  return compile::size_bytes(*job.request.program) + compile::size_bytes(*job.lowered);
}

bool JobRunner::hold_request(Job& job, int64_t stored_bytes) {
  job.waiting = {options_.memory, core::MemoryAccount::kWaiting};
  const int64_t bytes = stored_bytes + program_bytes(job);
  if (job.waiting.try_grow(bytes)) return true;
  // A copy of a stored array is the array as it was when the job was accepted: it is in no row.
  job.leaves_memory = recovery_.has_value() && job.request.fed_arrays.empty();
  return job.leaves_memory;
}

void JobRunner::unload_request(Job& job) {
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

void JobRunner::load_request(Job& job, core::Waiter& waiter) {
  if (!std::exchange(job.leaves_memory, false)) return;
  // Others may hold the memory that compiling takes: it was accepted, so that it waits.
  const auto patiently = [&](const auto& make) {
    for (;;) {
      try {
        return make();
      } catch (const core::Error& error) {
        if (error.code() != core::ErrorCode("memory_full")) throw;
      }
      if (auto end = end_of(job, waiter)) throw std::move(*end);
      waiter.wait(std::min(job.deadline, clock_.steady() + kLookAgain));
    }
  };
  const auto row =
      store_.catalog().read([&](storage::Reader& reader) { return reader.job(job.row.id, job.row.principal); });
  if (!row) throw core::Error("internal", "a job that waits has no row");
  JobRequest again = patiently([&] {
    return read_stored_job(*row,
                           {store_, arrays_, recovery_->programs, compiler_, *engine_.pool(), recovery_->processes});
  });
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

void JobRunner::wait_for_room(Job& job, core::Waiter& waiter) {
  const auto may_commit = [&] {
    return job.queue == nullptr || (!job.queue->is_held(job.row.number) && job.queue->may_update(job.row.number) &&
                                    job.queue->may_log(job.row.number));
  };
  if (!may_commit()) {
    if (!job.leaves_memory && try_hold_results(job)) return;
    wait_for_session(job, waiter, may_commit);
  }
  job.waiting = {};  // its arguments are among the bytes that the run plans
}

bool JobRunner::try_hold_results(Job& job) const {
  int64_t bytes = 0;
  for (const compile::PlanParameter& one : job.lowered->plan->results)
    bytes = core::checked_add(bytes, tensor::byte_count(one.parameter.global_type));
  if (job.waiting.bytes() == 0) {  // of a request that waits for it
    job.waiting = {options_.memory, core::MemoryAccount::kWaiting};
    bytes = core::checked_add(bytes, program_bytes(job));
  }
  return job.waiting.try_grow(bytes);
}

void JobRunner::hold_answer(Job& job, JobResult& result, core::Waiter& waiter) {
  if (job.encode == nullptr) return;
  const JobRequest& request = job.request;
  const compile::Plan& plan = *job.lowered->plan;
  const auto hold = [&](const core::MemoryLedgerRef& ledger, int64_t bytes) {
    auto memory = std::make_shared<core::MemoryReservation>(ledger, core::MemoryAccount::kAnswers);
    if (bytes <= kSmallAnswer) return std::shared_ptr<core::MemoryReservation>();
    const core::SteadyTime patience = clock_.steady() + kPatience;
    while (!(clock_.steady() < patience ? memory->try_borrow(bytes) : memory->try_grow_beyond(bytes))) {
      if (!job.in_background)
        throw core::Error("memory_full", "other answers hold the memory that this one needs").with_retry_after(1);
      if (auto end = end_of(job, waiter)) throw std::move(*end);
      waiter.wait(std::min(job.deadline, clock_.steady() + kLookAgain));
    }
    return memory;
  };
  // Clients may take long to read results that are sent as they are, which stay in the memory of jobs so long. They
  // have an account of their own, as large as that of other answers: who reads a large file slowly leaves to others
  // what is not in it.
  if (are_sent_as_they_are(request)) result.answer_memory = hold(unsent_, result_bytes(plan));
  if (request.form.is_file && !job.has_row) return;
  const int64_t bytes = answer_bytes(request, plan, result);
  // Most texts are shorter than they may be: one at a time may go beyond what all may have together.
  const int64_t limit = core::MemoryReservation(options_.memory, core::MemoryAccount::kAnswers).limit_bytes();
  const int64_t most = limit > INT64_MAX / 2 ? INT64_MAX : 2 * limit;
  if (bytes > std::max(most, kSmallAnswer)) {
    throw core::Error(
        "memory_exceeded",
        fmt::format("the answer may take {} bytes as text, more than the {} that this server has for one; send "
                    "\"results\": {{\"encoding\": \"array\"}} and read the arrays, or accept a file of results",
                    bytes, most));
  }
  (are_sent_as_they_are(request) ? job.text_memory : result.answer_memory) = hold(options_.memory, bytes);
}

void hold_results(const JobRequest& request, JobResult& result) {
  if (request.results != ResultMode::kInline) result.result_memory = nullptr;  // arrays have memory of their own
  if (!are_sent_as_they_are(request) || (result.answer_memory == nullptr && result.result_memory == nullptr)) return;
  struct Held {
    tensor::BufferRef buffer;
    std::shared_ptr<core::MemoryReservation> answer;
    std::shared_ptr<const void> result;
  };
  for (JobValue& one : result.results) {
    for (tensor::BufferRef& shard : one.shards) {
      if (shard == nullptr) continue;
      const auto held = std::make_shared<Held>(Held{shard, result.answer_memory, result.result_memory});
      shard = tensor::BufferRef(held, held->buffer.get());
    }
  }
}

}  // namespace meshd::jobs
