#include "service/models/batcher.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "service/arrays/regions/region.h"
#include "service/compile/program_size.h"
#include "service/core/error_of.h"
#include "service/core/keep_trying.h"

namespace meshd::models {
namespace {

using tensor::DenseValue;
using tensor::kDynamicDim;
using tensor::TensorType;

constexpr std::chrono::minutes kLongWait{10};  // of a wait that something ends: looked at again
constexpr size_t kPrograms = 64;

std::string key_of(const std::vector<DenseValue>& inputs, bool with_batch) {
  std::string out;
  for (const DenseValue& input : inputs) {
    for (size_t i = with_batch ? 0 : 1; i < input.type.dims.size(); ++i) out += fmt::format("{},", input.type.dims[i]);
    out += ";";
  }
  return out;
}

DenseValue held_buffer(const TensorType& type, tensor::BufferPool& pool, core::MemoryReservation& memory) {
  memory.grow(tensor::byte_count(type));
  return tensor::new_dense(type, pool);
}

core::Error left() { return {"cancelled", "the client has left"}; }

// Row-major bytes of a result.
InferOutput output_of(jobs::JobValue& value, tensor::BufferPool& pool) {
  InferOutput out{value.type, {}, nullptr};
  arrays::GatherReader reader(value.layout, tensor::size_bytes(value.type.dtype), value.shards,
                              arrays::full_slices(value.type.dims));
  const auto pieces = reader.pieces(1);
  if (pieces && pieces->size() == 1) {
    out.bytes = pieces->front();
    out.keep = std::make_shared<const arrays::ShardBuffers>(std::move(value.shards));
    return out;
  }
  const tensor::BufferRef gathered = pool.allocate(reader.total_bytes());
  reader.read(gathered->bytes());
  out.bytes = std::as_const(*gathered).bytes();
  out.keep = gathered;
  return out;
}

}  // namespace

/// A run of calls, as its batcher's lock has it.
struct Batcher::Running {
  core::WaiterRef waiter;
  size_t wanted = 0;  ///< calls whose clients are there
};

struct Batcher::Call {
  InferRequest request;
  int64_t rows = 1;
  core::WaiterRef waiter;
  core::SteadyTime arrived, expires, taken;
  // Under the batcher's lock from here on.
  enum class State : uint8_t { kWaiting, kRunning, kDone } state = State::kWaiting;
  bool has_left = false;             ///< its client
  std::shared_ptr<Running> running;  ///< null: it does not run
  std::vector<InferOutput> outputs;
  std::optional<core::Error> error;
};

int64_t check_inputs(const ModelSpec& spec, const std::vector<TensorType>& inputs) {
  core::Diagnostics wrong;
  const bool has_batch = spec.max_batch_size > 0;
  int64_t rows = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TensorSpec& expected = spec.inputs[i];
    const std::string pointer = fmt::format("/inputs/{}", i);
    if (inputs[i].dtype != expected.dtype) {
      wrong.add(pointer + "/datatype",
                fmt::format("inference input data-type is '{}', model expects '{}' for '{}'",
                            tensor::row(inputs[i].dtype).oip, tensor::row(expected.dtype).oip, spec.name));
    }
    tensor::Dims dims = inputs[i].dims;
    bool fits = dims.size() == expected.dims.size() + (has_batch ? 1 : 0);
    if (fits && has_batch) {
      if (i == 0) rows = dims.front();
      if (dims.front() != rows)
        wrong.add(pointer + "/shape/0",
                  fmt::format("the first input has a batch of {}, '{}' one of {}", rows, expected.name, dims.front()));
      dims.erase(dims.begin());
    }
    for (size_t d = 0; fits && d < dims.size(); ++d)
      fits = expected.dims[d] == kDynamicDim || expected.dims[d] == dims[d];
    if (fits) continue;
    wrong.add(pointer + "/shape",
              fmt::format("unexpected shape for input '{}' for model '{}'. Expected {}, got {}", expected.name,
                          spec.name, tensor::to_string(shown_dims(expected.dims, has_batch)),
                          tensor::to_string(std::span<const int64_t>(inputs[i].dims))));
  }
  wrong.throw_if_any("invalid_argument");
  if (!has_batch) return 1;
  if (rows >= 1 && rows <= spec.max_batch_size) return rows;
  const std::string detail = fmt::format("inference request batch-size must be 1 to {} for '{}', got {}",
                                         spec.max_batch_size, spec.name, rows);
  throw core::Error("invalid_argument", detail, {{"/inputs/0/shape/0", detail}});
}

Batcher::Batcher(std::shared_ptr<const ModelSpec> spec, const BatchServices& services)
    : spec_(std::move(spec)),
      services_(services),
      sizes_(batch_sizes(*spec_)),
      queue_({std::max<int64_t>(spec_->max_batch_size, 1), spec_->batching.preferred_sizes,
              spec_->max_batch_size > 0 ? spec_->batching.queue_delay : std::chrono::microseconds(0)}),
      programs_(kPrograms),
      programs_memory_(services_.memory, core::MemoryAccount::kPrograms) {}

ModelStatistics Batcher::statistics() const {
  const std::lock_guard held(mutex_);
  return statistics_;
}

std::vector<InferOutput> Batcher::infer(InferRequest request, const core::WaiterRef& waiter) {
  std::vector<TensorType> types;
  for (const DenseValue& input : request.inputs) types.push_back(input.type);
  const int64_t rows = check_inputs(*spec_, types);
  const CallRef call = enqueue(std::move(request), rows, waiter);
  std::vector<std::vector<CallRef>> batches;
  {
    const std::lock_guard held(mutex_);
    batches = take_batches();
  }
  const auto own = std::find_if(batches.begin(), batches.end(), [&](const std::vector<CallRef>& batch) {
    return batch.size() == 1 && batch.front() == call;
  });
  if (own == batches.end()) {
    start(batches);
    wait_for(call, *waiter);
  } else {
    // Alone in its batch: it runs here, and ends when its client leaves.
    const std::vector<CallRef> alone = std::move(*own);
    batches.erase(own);
    start(batches);
    start(run_batch(alone, waiter));
  }
  const std::lock_guard held(mutex_);
  if (call->error) throw core::Error(*call->error);
  return std::move(call->outputs);
}

Batcher::CallRef Batcher::enqueue(InferRequest request, int64_t rows, const core::WaiterRef& waiter) {
  const Batching& batching = spec_->batching;
  const int64_t priority = request.priority.value_or(batching.default_priority);
  if (priority < 1 || priority > batching.priority_levels) {
    const std::string detail =
        fmt::format("'{}' has priority levels 1 to {}, got {}", spec_->name, batching.priority_levels, priority);
    throw core::Error("invalid_argument", detail, {{"/parameters/priority", detail}});
  }
  auto call = std::make_shared<Call>();
  call->request = std::move(request);
  call->rows = rows;
  call->waiter = waiter;
  call->arrived = services_.clock.steady();
  call->expires = call->arrived + std::min(batching.timeout, call->request.timeout.value_or(batching.timeout));
  const std::string& principal = call->request.principal;
  const std::lock_guard held(mutex_);
  if (queue_.size_of(principal) >= batching.most_waiting) {
    statistics_.fail.add(std::chrono::nanoseconds(0));
    throw core::Error("queue_full", fmt::format("Exceeds maximum queue size: {} requests of yours wait for '{}'",
                                                batching.most_waiting, spec_->name))
        .with_retry_after(1);
  }
  queue_.push(
      {call, principal, key_of(call->request.inputs, spec_->max_batch_size == 0), rows, priority, call->arrived});
  return call;
}

std::vector<std::vector<Batcher::CallRef>> Batcher::take_batches() {
  std::vector<std::vector<CallRef>> out;
  while (running_ < spec_->batching.instances) {
    const core::SteadyTime now = services_.clock.steady();
    Queue::Decision next = core::keep_trying([&] {
      out.reserve(out.size() + 1);
      return queue_.take(now);
    });
    if (next.batch) {
      ++running_;
      for (const CallRef& call : next.batch->handles) {
        call->state = Call::State::kRunning;
        call->taken = now;
      }
      out.push_back(std::move(next.batch->handles));
      continue;
    }
    if (next.look_again && (!timer_ || *timer_ > *next.look_again)) {
      core::keep_trying([&] {
        services_.fibers.timers().at(*next.look_again, [weak = weak_from_this()] {
          if (const auto self = weak.lock()) self->look_again();
        });
      });
      timer_ = next.look_again;
    }
    break;
  }
  return out;
}

void Batcher::look_again() {
  std::vector<std::vector<CallRef>> batches;
  {
    const std::lock_guard held(mutex_);
    timer_.reset();
    batches = take_batches();
  }
  start(batches);
}

void Batcher::start(const std::vector<std::vector<CallRef>>& batches) {
  for (const std::vector<CallRef>& batch : batches) {
    core::keep_trying([&] {
      services_.fibers.start([self = shared_from_this(), calls = batch](const core::WaiterRef& waiter) {
        self->start(self->run_batch(calls, waiter));
      });
    });
  }
}

core::WaiterRef Batcher::leave(Call& call) {
  call.has_left = true;
  return call.running != nullptr && --call.running->wanted == 0 ? call.running->waiter : nullptr;
}

void Batcher::wait_for(const CallRef& call, core::Waiter& waiter) {
  for (;;) {
    core::SteadyTime until;
    core::WaiterRef unwanted;
    const bool has_left = waiter.is_abandoned();
    {
      const std::lock_guard held(mutex_);
      if (call->state == Call::State::kDone) return;
      const core::SteadyTime now = services_.clock.steady();
      const bool waits = call->state == Call::State::kWaiting;
      if (waits && now >= call->expires) {
        queue_.remove(call);
        statistics_.fail.add(now - call->arrived);
        throw core::Error(
            "queue_timeout",
            fmt::format("Request timeout expired: '{}' did not start it in {} us", spec_->name,
                        std::chrono::duration_cast<std::chrono::microseconds>(call->expires - call->arrived).count()))
            .with_retry_after(1);
      }
      if (has_left && waits) queue_.remove(call);
      if (has_left) unwanted = leave(*call);
      until = waits ? call->expires : now + kLongWait;
    }
    if (unwanted != nullptr) unwanted->abandon();
    if (has_left) throw left();
    waiter.wait(until);
  }
}

std::vector<std::vector<Batcher::CallRef>> Batcher::run_batch(const std::vector<CallRef>& calls,
                                                              const core::WaiterRef& waiter) {
  if (auto error = try_run(calls, waiter)) {
    if (calls.size() > 1) {
      // What is wrong with one of them, or with their number, does not end the others.
      run_alone(core::keep_trying([&] { return std::make_shared<const std::vector<CallRef>>(calls); }), 0);
      return {};
    }
    fail(calls.front(), std::move(*error));
  }
  return free_instance();
}

void Batcher::run_alone(const std::shared_ptr<const std::vector<CallRef>>& calls, size_t next) {
  core::keep_trying([&] {
    services_.fibers.start([self = shared_from_this(), calls, next](const core::WaiterRef& waiter) {
      const std::vector<CallRef> alone = core::keep_trying([&] { return std::vector{(*calls)[next]}; });
      if (auto error = self->try_run(alone, waiter)) self->fail(alone.front(), std::move(*error));
      next + 1 < calls->size() ? self->run_alone(calls, next + 1) : self->start(self->free_instance());
    });
  });
}

std::vector<std::vector<Batcher::CallRef>> Batcher::free_instance() {
  const std::lock_guard held(mutex_);
  --running_;
  return take_batches();
}

std::optional<core::Error> Batcher::try_run(const std::vector<CallRef>& calls, const core::WaiterRef& waiter) {
  try {
    const auto running = std::make_shared<Running>(Running{waiter, 0});
    {
      const std::lock_guard held(mutex_);
      for (const CallRef& call : calls) {
        call->running = running;
        running->wanted += call->has_left ? 0 : 1;
      }
    }
    if (running->wanted == 0) return left();
    run_together(calls, waiter);
    return std::nullopt;
  } catch (...) {
    return core::keep_trying([] {
      return core::error_of(std::current_exception(), "there is no memory for the run", "the run failed on our side");
    });
  }
}

void Batcher::run_together(const std::vector<CallRef>& calls, const core::WaiterRef& waiter) {
  BatchTimes times;
  int64_t rows = 0;
  for (const CallRef& call : calls) rows += call->rows;
  const int64_t size = sizes_.empty() ? rows : *std::lower_bound(sizes_.begin(), sizes_.end(), rows);
  const core::SteadyTime begun = services_.clock.steady();
  core::MemoryReservation memory(services_.memory, core::MemoryAccount::kRequests);
  std::vector<DenseValue> inputs = join(calls, size, memory);
  const core::SteadyTime joined = services_.clock.steady();
  std::vector<InferOutput> whole = run(std::move(inputs), waiter);
  const core::SteadyTime ran = services_.clock.steady();
  std::vector<std::vector<InferOutput>> outputs(calls.size());
  for (InferOutput& output : whole) {
    if (sizes_.empty()) {
      outputs.front().push_back(std::move(output));
      continue;
    }
    const size_t row_bytes = output.bytes.size() / static_cast<size_t>(size);
    size_t at = 0;
    for (size_t i = 0; i < calls.size(); ++i) {
      const size_t bytes = row_bytes * static_cast<size_t>(calls[i]->rows);
      TensorType type = output.type;
      type.dims.front() = calls[i]->rows;
      outputs[i].push_back({std::move(type), output.bytes.subspan(at, bytes), output.keep});
      at += bytes;
    }
  }
  times.input = joined - begun;
  times.infer = ran - joined;
  times.output = services_.clock.steady() - ran;
  end(calls, std::move(outputs), times);
}

std::vector<DenseValue> Batcher::join(const std::vector<CallRef>& calls, int64_t size,
                                      core::MemoryReservation& memory) {
  const CallRef& first = calls.front();
  if (calls.size() == 1 && first->rows == size) return first->request.inputs;
  std::vector<DenseValue> out;
  for (size_t i = 0; i < spec_->inputs.size(); ++i) {
    TensorType type = first->request.inputs[i].type;
    type.dims.front() = size;
    DenseValue joined = held_buffer(type, services_.pool, memory);
    std::byte* to = joined.buffer->data();
    for (const CallRef& call : calls) {
      const std::span<const std::byte> bytes = call->request.inputs[i].bytes();
      if (!bytes.empty()) std::memcpy(to, bytes.data(), bytes.size());
      to += bytes.size();
    }
    std::fill(to, joined.buffer->data() + joined.buffer->size(), std::byte{0});
    out.push_back(std::move(joined));
  }
  return out;
}

compile::ParsedRef Batcher::program_of(const std::vector<DenseValue>& inputs) {
  const std::string key = key_of(inputs, true);
  {
    const std::lock_guard held(mutex_);
    if (const compile::ParsedRef* known = programs_.find(key)) return *known;
  }
  std::vector<TensorType> types;
  for (const DenseValue& input : inputs) types.push_back(input.type);
  compile::ParsedRef program = program_for(*spec_, types, services_.compiler);
  check_results(*spec_, *program, types);  // the results are divided by rows, and sent by the number of the output
  const std::lock_guard held(mutex_);
  const int64_t bytes = compile::size_bytes(*program) + static_cast<int64_t>(key.size());
  program = programs_.insert(key, std::move(program), bytes);
  programs_memory_.hold(programs_.bytes());
  return program;
}

std::vector<InferOutput> Batcher::run(std::vector<DenseValue> inputs, const core::WaiterRef& waiter) {
  jobs::JobRequest request;
  request.principal = spec_->principal;
  request.program = program_of(inputs);
  for (const ArgumentSource& source : spec_->arguments) {
    if (const auto* input = std::get_if<InputSource>(&source)) {
      request.arguments.emplace_back(std::move(inputs[input->input]));
    } else if (const auto* value = std::get_if<DenseValue>(&source)) {
      request.arguments.emplace_back(*value);
    } else {
      request.arguments.emplace_back(jobs::ArrayArgument{std::get<arrays::ArrayRef>(source), std::nullopt});
    }
  }
  request.donate.emplace();
  request.form.is_file = true;  // outputs are sent as they are: they hold the memory that they take until then
  jobs::JobResult result = services_.runner.run(
      std::move(request), [](const jobs::JobResult&) { return std::string(); }, waiter);
  std::vector<InferOutput> out;
  for (jobs::JobValue& value : result.results) out.push_back(output_of(value, services_.pool));
  return out;
}

void Batcher::end(const std::vector<CallRef>& calls, std::vector<std::vector<InferOutput>> outputs,
                  const BatchTimes& times) {
  {
    const std::lock_guard held(mutex_);
    const core::SteadyTime now = services_.clock.steady();
    int64_t rows = 0;
    for (const CallRef& call : calls) rows += call->rows;
    statistics_.add_batch(rows, times);  // may throw: no call is done yet
    for (size_t i = 0; i < calls.size(); ++i) {
      Call& call = *calls[i];
      call.outputs = std::move(outputs[i]);
      call.state = Call::State::kDone;
      statistics_.add_success(call.rows, now - call.arrived, call.taken - call.arrived, times);
    }
    statistics_.last_inference = services_.clock.wall();
  }
  for (const CallRef& call : calls) call->waiter->notify();
}

void Batcher::fail(const CallRef& call, core::Error error) {
  {
    const std::lock_guard held(mutex_);
    call->error.emplace(std::move(error));
    call->state = Call::State::kDone;
    statistics_.fail.add(services_.clock.steady() - call->arrived);
  }
  call->waiter->notify();
}

void Batcher::warm_up(const core::WaiterRef& waiter) {
  const std::vector<int64_t> sizes = sizes_.empty() ? std::vector<int64_t>{1} : sizes_;
  for (const int64_t size : sizes) {
    core::MemoryReservation memory(services_.memory, core::MemoryAccount::kRequests);
    std::vector<DenseValue> inputs;
    for (const TensorSpec& spec : spec_->inputs) {
      if (std::find(spec.dims.begin(), spec.dims.end(), kDynamicDim) != spec.dims.end()) return;
      TensorType type{spec.dtype, spec.dims};
      if (!sizes_.empty()) type.dims.insert(type.dims.begin(), size);
      DenseValue& value = inputs.emplace_back(held_buffer(type, services_.pool, memory));
      std::fill(value.buffer->bytes().begin(), value.buffer->bytes().end(), std::byte{0});
    }
    run(std::move(inputs), waiter);
  }
}

}  // namespace meshd::models
