// Several ranks in one process over a network that delivers in a random order, runs on them, and what one process makes
// of the same runs. For tests.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "service/compile/pipeline.h"
#include "service/hosts/coordinator.h"
#include "service/hosts/worker.h"
#include "storage/blobs/rank_blobs.h"
#include "tests/support/fake_network.h"
#include "tests/support/pending_run.h"

namespace meshd::testing {

inline constexpr int64_t kDevices = 8;

inline std::shared_ptr<tensor::BufferPool> new_pool() { return tensor::BufferPool::create(int64_t{64} << 20); }

using Pending = PendingRun;

/// What ranks keep of arrays.
struct Kept {
  int64_t array_bytes = 0;
  int64_t with_runs_bytes = 0;
  std::string folder;  ///< the data folder of all; empty: they have no disks
};

class Ranks {
 public:
  explicit Ranks(int count, uint32_t seed = 1, int64_t memory_limit = 0, const Kept& kept = {})
      : networks_(make_fake_network(count, seed)) {
    for (int rank = 1; rank < count; ++rank) {
      hosts::Network& network = *networks_[static_cast<size_t>(rank)];
      hosts::WorkerOptions options;
      options.threads = 1;
      options.environment = "test";
      options.array_bytes = kept.array_bytes;
      options.with_runs_bytes = kept.with_runs_bytes;
      options.data = kept.folder;
      options.fatal = [](const std::string& reason) { ADD_FAILURE() << reason; };
      pools.push_back(new_pool());
      workers_.push_back(std::make_unique<hosts::Worker>(network, options, pools.back()));
      threads_.emplace_back([&worker = *workers_.back()] { worker.serve(); });
    }
    hosts::CoordinatorOptions options;
    options.engine.device_count = kDevices;
    options.engine.threads = 1;
    options.engine.memory_limit_bytes = memory_limit;
    options.environment = "test";
    options.mesh = "mesh_1";
    coordinator = std::make_unique<hosts::Coordinator>(*networks_[0], options, new_pool());
  }
  ~Ranks() {
    coordinator.reset();
    for (std::thread& thread : threads_) thread.join();
    for (auto& network : networks_) network->close();
  }

  std::unique_ptr<hosts::Coordinator> coordinator;
  std::vector<std::shared_ptr<tensor::BufferPool>> pools;  ///< of the ranks from 1 on

 private:
  std::vector<std::unique_ptr<hosts::Network>> networks_;
  std::vector<std::unique_ptr<hosts::Worker>> workers_;
  std::vector<std::thread> threads_;
};

class OneProcess {
 public:
  OneProcess() : engine({.device_count = kDevices, .threads = 1}, new_pool()) {}
  device::Engine engine;
};

// As a process that has all devices would, or as ranks do.
inline compile::LoweredRef lowered(const std::string& text, std::optional<std::vector<int64_t>> donate = {},
                                   bool shares_memory = false) {
  static const auto settings = [](bool shares) {
    compile::PlanSettings out(1);
    out.shares_memory = shares;
    return out;
  };
  static compile::Compiler alone(settings(true), 64), of_ranks(settings(false), 64);
  compile::Compiler& compiler = shares_memory ? alone : of_ranks;
  const compile::ParsedRef parsed = compiler.parse("stablehlo", text);
  compile::LowerRequest request;
  request.device_count = compile::device_span(*parsed->module);
  request.in_shardings.resize(parsed->arguments.size());
  request.out_shardings.resize(parsed->results.size());
  request.donate = std::move(donate);
  return compiler.lower(parsed, request);
}

/// Arguments of counted floats.
inline device::RunRequest request_of(const compile::LoweredRef& program, std::vector<int64_t> devices = {}) {
  device::RunRequest request;
  request.plan = program->plan;
  request.lowered = program;
  request.devices = std::move(devices);
  const auto pool = new_pool();
  float next = 0.1F;
  for (const compile::PlanParameter& argument : program->plan->arguments) {
    device::RunArgument given;
    given.may_overwrite = true;
    for (int64_t shard = 0; shard < program->plan->table(argument.table).count(); ++shard) {
      given.shards.push_back(pool->allocate(argument.shard_bytes));
      for (size_t at = 0; at + sizeof(float) <= static_cast<size_t>(argument.shard_bytes); at += sizeof(float)) {
        std::memcpy(given.shards.back()->data() + at, &next, sizeof(float));
        next = next > 1e6F ? 0.1F : next * 1.01F + 0.37F;
      }
    }
    request.arguments.push_back(std::move(given));
  }
  return request;
}

inline std::vector<std::string> bytes_of(const device::RunOutcome& outcome) {
  std::vector<std::string> out;
  EXPECT_TRUE(outcome.ok()) << (outcome.error ? outcome.error->detail() + outcome.error->internal() : "");
  for (const auto& result : outcome.outputs) {
    for (const tensor::BufferRef& shard : result) {
      if (shard == nullptr) {
        ADD_FAILURE() << "a shard is missing";
        continue;
      }
      out.emplace_back(reinterpret_cast<const char*>(shard->data()), static_cast<size_t>(shard->size()));
    }
  }
  return out;
}

inline constexpr const char* kMesh8 = R"(sdy.mesh @mesh = <["x"=4, "y"=2]>
)";

inline std::string layers() {
  return std::string(kMesh8) + R"(
func.func @main(%a: tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>},
                %w: tensor<6x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>})
    -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
        tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {"x"}]>}, tensor<f32>,
        tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
  %0 = stablehlo.dot_general %a, %w, contracting_dims = [1] x [0] : (tensor<8x6xf32>, tensor<6x4xf32>) -> tensor<8x4xf32>
  %1 = stablehlo.tanh %0 : tensor<8x4xf32>
  %2 = stablehlo.transpose %1, dims = [1, 0] : (tensor<8x4xf32>) -> tensor<4x8xf32>
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %3 = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [0, 1] : (tensor<8x6xf32>, tensor<f32>) -> tensor<f32>
  %4 = stablehlo.add %a, %a : tensor<8x6xf32>
  return %1, %2, %3, %4 : tensor<8x4xf32>, tensor<4x8xf32>, tensor<f32>, tensor<8x6xf32>
})";
}

}  // namespace meshd::testing
