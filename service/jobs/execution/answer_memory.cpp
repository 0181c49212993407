#include "service/jobs/execution/answer_memory.h"

#include <fmt/core.h>

#include <algorithm>

#include "service/compile/program_size.h"
#include "service/core/checked_math.h"
#include "service/core/error.h"

namespace meshd::jobs {
namespace {

// Smaller answers are not worth a reservation of their own: they are counted when they are sent.
constexpr int64_t kSmallAnswer = int64_t{64} << 10;
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

// In a file, or as outputs of a model.
bool are_sent_as_they_are(const JobRequest& request) {
  return request.form.is_file && request.results == ResultMode::kInline;
}

}  // namespace

AnswerMemory::AnswerMemory(core::MemoryLedgerRef ledger, const core::Clock& clock, const JobWaits& waits)
    : ledger_(std::move(ledger)),
      unsent_(ledger_ != nullptr ? core::MemoryLedger::create(ledger_->limit_bytes()) : nullptr),
      clock_(clock),
      waits_(waits) {}

void AnswerMemory::hold(Job& job, JobResult& result, const core::WaiterRef& waiter) {
  if (job.encode == nullptr) return;
  const JobRequest& request = job.request;
  const compile::Plan& plan = *job.lowered->plan;
  // Clients may take long to read results that are sent as they are, which stay in the memory of jobs so long. They
  // have an account of their own, as large as that of other answers: who reads a large file slowly leaves to others
  // what is not in it.
  if (are_sent_as_they_are(request)) result.answer_memory = reserve(unsent_, compile::result_bytes(plan), job, waiter);
  if (request.form.is_file && !job.has_row) return;
  const int64_t bytes = answer_bytes(request, plan, result);
  // Most texts are shorter than they may be: one at a time may go beyond what all may have together.
  const int64_t limit = core::MemoryReservation(ledger_, core::MemoryAccount::kAnswers).limit_bytes();
  const int64_t most = limit > INT64_MAX / 2 ? INT64_MAX : 2 * limit;
  if (bytes > std::max(most, kSmallAnswer)) {
    throw core::Error(
        "memory_exceeded",
        fmt::format("the answer may take {} bytes as text, more than the {} that this server has for one; send "
                    "\"results\": {{\"encoding\": \"array\"}} and read the arrays, or accept a file of results",
                    bytes, most));
  }
  (are_sent_as_they_are(request) ? job.text_memory : result.answer_memory) = reserve(ledger_, bytes, job, waiter);
}

std::shared_ptr<core::MemoryReservation> AnswerMemory::reserve(const core::MemoryLedgerRef& ledger, int64_t bytes,
                                                               Job& job, const core::WaiterRef& waiter) const {
  if (bytes <= kSmallAnswer) return nullptr;
  auto memory = std::make_shared<core::MemoryReservation>(ledger, core::MemoryAccount::kAnswers);
  if (memory->try_borrow(bytes)) return memory;
  if (!job.in_background)
    throw core::Error("memory_full", "other answers hold the memory that this one needs").with_retry_after(1);
  const core::SteadyTime patience = clock_.steady() + kPatience;
  for (;;) {
    memory->notify_when_given(waiter);
    const core::SteadyTime now = clock_.steady();
    if (now < patience ? memory->try_borrow(bytes) : memory->try_grow_beyond(bytes)) return memory;
    waits_.throw_if_ended(job, *waiter);
    waiter->wait(std::min(job.deadline, now + core::MemoryReservation::kLongestWait));
  }
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

core::MemoryLedger::Stats AnswerMemory::files() const {
  core::MemoryLedger::Stats out;
  if (unsent_ != nullptr) out = unsent_->stats()[static_cast<size_t>(core::MemoryAccount::kAnswers)];
  out.name = "files";
  return out;
}

}  // namespace meshd::jobs
