// A real JobRunner on a store of its own, over an executor and a clock that the test moves.
#pragma once

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "service/jobs/job_runner.h"
#include "tests/support/eventually.h"
#include "tests/support/manual_clock.h"
#include "tests/support/storage_fixture.h"
#include "tests/unit/jobs/fake_executor.h"

namespace meshd::testing {

// float32[2] -> float32[2]; what it computes nobody asks.
inline constexpr const char* kPlain =
    "func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> { %0 = stablehlo.negate %a : tensor<2xf32> "
    "return %0 : tensor<2xf32> }";
// Logs a scalar, in the order of the session.
inline constexpr const char* kLogs =
    "func.func @main(%a: tensor<f32>) -> tensor<f32> { %t = stablehlo.create_token : !stablehlo.token "
    "%u = stablehlo.custom_call @xla_ffi_python_cpu_callback(%t, %a) {backend_config = \"\", has_side_effect = true, "
    "mhlo.backend_config = {index = 0 : ui64}} : (!stablehlo.token, tensor<f32>) -> !stablehlo.token "
    "return %a : tensor<f32> }";
// Takes a scalar from the queue `in`.
inline constexpr const char* kTakes =
    "func.func @main() -> tensor<f32> { %t = stablehlo.create_token : !stablehlo.token "
    "%x:2 = \"stablehlo.infeed\"(%t) <{infeed_config = \"in\"}> : (!stablehlo.token) -> (tensor<f32>, "
    "!stablehlo.token) return %x#0 : tensor<f32> }";

inline tensor::DenseValue floats(tensor::Dims dims, const std::vector<float>& values) {
  return tensor::dense_copy({tensor::DType::kFloat32, std::move(dims)}, std::as_bytes(std::span(values)));
}

class RunnerBench : public ::testing::Test {
 protected:
  using State = storage::JobState;

  /// All of a server that jobs need, built and taken down in the order in which api/app does.
  struct Server {
    Server(const std::string& folder, const core::Clock& clock, FakeExecutor& engine, jobs::RunnerOptions options)
        : store(folder),
          arrays(*store, engine.pool(), clock, {int64_t{1} << 30, INT64_MAX}, int64_t{1} << 30),
          programs(store->catalog(), compiler, clock),
          sessions(store->catalog(), clock),
          log(store->catalog()),
          infeeds(store->catalog(), clock),
          callbacks(store->catalog(), clock),
          runner(*store, arrays, compiler, engine, sessions, log, infeeds, callbacks, clock, std::move(options)) {}
    OpenStore store;
    compile::Compiler compiler{1, 16};
    arrays::ArrayStore arrays;
    registry::ProgramRegistry programs;
    sessions::SessionStore sessions;
    effects::EffectLog log;
    effects::InfeedQueues infeeds;
    effects::CallbackStore callbacks;
    jobs::JobRunner runner;
  };

  RunnerBench() { open(); }
  void open() {
    server_ = std::make_unique<Server>(folder_.path(), clock_, engine_, options_);
    const auto encoder = [](const jobs::ResultForm&) { return encode; };
    server_->runner.recover({server_->programs, {8, 1}, encoder, nullptr});
  }
  /// A stop and a start. `between` sees the store while no server has it.
  void restart(const std::function<void(storage::Transaction&)>& between = nullptr) {
    server_->runner.drain(std::chrono::milliseconds(0));
    close_and_change(between);
    open();
  }
  void close_and_change(const std::function<void(storage::Transaction&)>& between) {
    server_.reset();
    if (!between) return;
    // A start requeues what it finds running: the change is made to rows of a store that starts no jobs.
    OpenStore store(folder_.path());
    store->catalog().write(between);
  }
  /// Runs with other limits from here on.
  void reopen(const jobs::RunnerOptions& options) {
    server_.reset();
    options_ = options;
    open();
  }

  jobs::JobRunner& runner() { return server_->runner; }
  storage::Catalog& catalog() { return server_->store->catalog(); }

  std::string session(storage::OnError on_error = storage::OnError::kContinue,
                      storage::EffectMode effects = storage::EffectMode::kAtomic) {
    return server_->sessions.create("ann", "", on_error, effects).id;
  }
  jobs::JobRequest request(const char* text, const std::string& session = "") {
    jobs::JobRequest out;
    out.principal = "ann";
    out.session = session;
    out.program = server_->compiler.parse("stablehlo", text);
    for (const auto& argument : out.program->arguments) {
      (void)argument;
      const size_t i = out.arguments.size();
      const tensor::TensorType type = out.program->argument(i).type.tensor;
      out.arguments.emplace_back(
          floats(type.dims, std::vector<float>(static_cast<size_t>(tensor::element_count(type)))));
    }
    return out;
  }
  std::string start(jobs::JobRequest request) { return runner().start(std::move(request), encode); }
  /// A request that waits for its job on a thread of its own.
  std::future<jobs::JobResult> run(jobs::JobRequest request) {
    auto waiter = std::make_shared<core::ThreadWaiter>();
    auto woken = wake_with_clock(waiter);
    return std::async(std::launch::async, [this, request = std::move(request), waiter, woken]() mutable {
      return runner().run(std::move(request), encode, waiter);
    });
  }
  jobs::JobView view(const std::string& id) {
    core::MemoryReservation memory;
    return runner().view(id, "ann", memory);
  }
  /// The row of the job once it is over.
  storage::JobRow end_of(const std::string& id) {
    if (!eventually([&] { return storage::is_over(row(id).state); })) throw std::runtime_error("a job does not end");
    core::MemoryReservation memory;
    const auto waiter = std::make_shared<core::ThreadWaiter>();
    return runner().wait(id, "ann", std::chrono::hours(24 * 365), waiter, memory).row;
  }
  storage::JobRow row(const std::string& id) {
    return catalog().read([&](storage::Reader& reader) { return reader.job(id, "ann").value(); });
  }
  /// "done", or the code of the error.
  std::string how_it_ended(const std::string& id) {
    const storage::JobRow row = end_of(id);
    return row.state == State::kFailed ? row.error_code : std::string(storage::to_string(row.state));
  }
  /// The jobs of the entries of a session's log and how many effects each has there, in order: "1 2 2 failed".
  std::string log_of(const std::string& session) {
    std::string out;
    for (const storage::EffectRow& row : server_->log.after(session, 0, 1000)) {
      const auto job = catalog().read([&](storage::Reader& r) { return r.job_of_session(session, row.job); });
      out += (out.empty() ? "" : " ") + (row.kind == "log" ? std::to_string(job ? job->number : 0) : row.kind);
    }
    return out;
  }
  void advance(std::chrono::microseconds time) { clock_.advance(time); }

  static std::string encode(const jobs::JobResult& result) {
    return "results " + std::to_string(result.results.size());
  }

  TempFolder folder_{TempFolder::Where::kMemory};
  ManualClock clock_;
  FakeExecutor engine_;
  jobs::RunnerOptions options_;
  std::unique_ptr<Server> server_;

 private:
  std::shared_ptr<const void> wake_with_clock(const core::WaiterRef& waiter) {
    return clock_.on_move([weak = std::weak_ptr(waiter)] {
      if (const auto there = weak.lock()) there->notify();
    });
  }
};

}  // namespace meshd::testing
