// Runs the requests of one version of a model: joins those that wait into batches (batch_queue.h), runs each batch as a
// job of the model's principal, and divides the results.
//
// A batch is padded with zeros to one of batch_sizes(): so that the sizes that traffic happens to make are compiled a
// bounded number of times, and none of them while clients wait, once the model is warm. Rows do not see each other,
// which is what a batch dimension means; where a program's rows do, max_batch_size is 0.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "service/compile/pipeline.h"
#include "service/core/clock.h"
#include "service/core/error.h"
#include "service/core/lru_cache.h"
#include "service/core/memory_ledger.h"
#include "service/core/waits/waiter.h"
#include "service/jobs/job_runner.h"
#include "service/jobs/queue/fiber_pool.h"
#include "service/models/batch_queue.h"
#include "service/models/model_spec.h"
#include "service/models/statistics.h"
#include "service/tensor/buffer.h"

namespace meshd::models {

/// A request for a model. Inputs are those of the model, in its order, with the batch; their types fit (check_inputs).
struct InferRequest {
  std::string principal;
  std::vector<tensor::DenseValue> inputs;
  std::optional<int64_t> priority;
  std::optional<std::chrono::microseconds> timeout;  ///< in the queue; longer ones than the model's do not count
  core::MemoryReservation memory;                    ///< of the inputs, which a batch may use after the client has left
};

/// An output of a request: some rows of what a batch gave.
struct InferOutput {
  tensor::TensorType type;
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> keep;
};

/// Rows of a request. Throws invalid_argument for inputs whose types or batch sizes are not the model's.
int64_t check_inputs(const ModelSpec& spec, const std::vector<tensor::TensorType>& inputs);

/// What batches run on.
struct BatchServices {
  jobs::JobRunner& runner;
  compile::Compiler& compiler;
  tensor::BufferPool& pool;
  jobs::FiberPool& fibers;
  const core::Clock& clock;
  core::MemoryLedgerRef memory;  ///< batches count as requests
};

/// Any thread. Held by shared_ptr: what it has begun ends even if nobody else holds it. A run ends early when the
/// clients of all its requests have left.
class Batcher : public std::enable_shared_from_this<Batcher> {
 public:
  Batcher(std::shared_ptr<const ModelSpec> spec, const BatchServices& services);

  /// Waits for a batch and its run. Throws queue_full (429) when too many requests of the principal wait, queue_timeout
  /// (503) when its time in the queue is up, cancelled when the client has left, memory_full (503), invalid_argument,
  /// and what the run throws.
  std::vector<InferOutput> infer(InferRequest request, const core::WaiterRef& waiter);
  /// Runs every batch size once with zeros. Inputs with free dimensions have no sizes to run. Throws memory_full when
  /// others hold the memory of a batch, body_too_large when there is not so much, and what the runs throw.
  void warm_up(const core::WaiterRef& waiter);
  [[nodiscard]] ModelStatistics statistics() const;

 private:
  struct Call;
  struct Running;
  using CallRef = std::shared_ptr<Call>;
  using Queue = BatchQueue<CallRef>;

  CallRef enqueue(InferRequest request, int64_t rows, const core::WaiterRef& waiter);
  /// Waits until the call has run. Throws what ended it.
  void wait_for(const CallRef& call, core::Waiter& waiter);
  /// The client of a call has left; what it waited for may end. Returns whose wait that is, if it does.
  static core::WaiterRef leave(Call& call);
  // What follows until look_again() throws nothing: an instance that is taken is freed, and calls that wait are run, by
  // nobody else. Where there is no memory they try until there is some.

  /// Under the lock: batches for the instances that are free; sets the timer for what is to wait.
  std::vector<std::vector<CallRef>> take_batches();
  /// On fibers of their own.
  void start(const std::vector<std::vector<CallRef>>& batches);
  /// Runs a batch and frees its instance. Returns the batches that may start then.
  std::vector<std::vector<CallRef>> run_batch(const std::vector<CallRef>& calls, const core::WaiterRef& waiter);
  /// Runs the calls of a batch from the `next` one on by themselves, one after the other, and frees its instance. Each
  /// has a fiber of its own: its run may end because its client has left.
  void run_alone(const std::shared_ptr<const std::vector<CallRef>>& calls, size_t next);
  std::vector<std::vector<CallRef>> free_instance();
  /// What ended the run; nothing when it has given each call its outputs. The caller may wait again: it is in no catch
  /// block.
  std::optional<core::Error> try_run(const std::vector<CallRef>& calls, const core::WaiterRef& waiter);
  void fail(const CallRef& call, core::Error error);
  void look_again();

  void run_together(const std::vector<CallRef>& calls, const core::WaiterRef& waiter);
  void end(const std::vector<CallRef>& calls, std::vector<std::vector<InferOutput>> outputs, const BatchTimes& times);
  compile::ParsedRef program_of(const std::vector<tensor::DenseValue>& inputs);
  /// `memory` holds the buffers that it makes: it is to live as long as they do.
  std::vector<tensor::DenseValue> join(const std::vector<CallRef>& calls, int64_t size,
                                       core::MemoryReservation& memory);
  std::vector<InferOutput> run(std::vector<tensor::DenseValue> inputs, const core::WaiterRef& waiter);

  const std::shared_ptr<const ModelSpec> spec_;
  const BatchServices services_;
  const std::vector<int64_t> sizes_;

  mutable std::mutex mutex_;
  Queue queue_;
  int64_t running_ = 0;
  std::optional<core::SteadyTime> timer_;  ///< the time that a timer is set for
  ModelStatistics statistics_;
  core::LruCache<compile::ParsedRef> programs_;  ///< by types of the inputs
  core::MemoryReservation programs_memory_;      ///< of these, though the compiler's caches may have them, too
};

}  // namespace meshd::models
