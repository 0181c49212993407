#include "api/app/serving/hosts.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

#include "api/app/serving/app.h"
#include "api/app/serving/build.h"
#include "api/app/serving/memory_limit.h"
#include "api/app/serving/signals.h"
#include "service/core/clock.h"
#include "service/core/ids.h"
#include "service/core/memory_ledger.h"
#include "service/hosts/mpi_module.h"
#include "service/hosts/worker.h"
#include "service/jobs/stored/environment.h"
#include "storage/blobs/rank_blobs.h"

namespace meshd::api {
namespace {

// Of rank 0, which pings each second until it has stopped the others.
constexpr std::chrono::seconds kLongestSilence{5};
constexpr std::chrono::milliseconds kLook{200};

std::string folder_of_binary() {
  std::array<char, 4096> path{};
  const ssize_t length = ::readlink("/proc/self/exe", path.data(), path.size() - 1);
  const std::string name(path.data(), static_cast<size_t>(std::max<ssize_t>(length, 0)));
  return name.substr(0, name.find_last_of('/'));
}

// Passes that are off are rank 0's to say.
std::string environment() { return jobs::environment_text(build_name(), compile::PlanSettings()); }

}  // namespace

std::unique_ptr<hosts::Network> open_hosts(const AppOptions& options) {
  if (options.hosts == "off") return nullptr;
  const std::string launcher = hosts::launcher_of([](const char* name) { return std::getenv(name); });
  if (options.hosts == "auto" && launcher.empty()) return nullptr;
  return hosts::open_mpi(launcher.empty() ? "--hosts is mpi" : "several processes were started (" + launcher + ")",
                         folder_of_binary());
}

int ranks_here(const hosts::Network* network) { return network == nullptr ? 1 : network->local_size(); }

int threads_of(const AppOptions& options, const hosts::Network* network) {
  if (options.threads > 0) return options.threads;
  const int cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  // Cores that a launcher bound the process to are its own; unbound ranks share those of the machine.
  const bool is_bound = cores < static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  return is_bound ? cores : std::max(1, cores / ranks_here(network));
}

std::unique_ptr<hosts::Coordinator> make_coordinator(hosts::Network& network, const device::EngineOptions& engine,
                                                     const AppOptions& options,
                                                     std::shared_ptr<tensor::BufferPool> pool) {
  hosts::CoordinatorOptions out;
  out.engine = engine;
  out.disabled_passes = options.disabled_passes;
  out.environment = environment();
  const auto files = storage::real_file_system();
  out.mesh = storage::name_of_mesh(*files, options.data, 0, core::new_id("mesh", core::SystemClock()));
  return std::make_unique<hosts::Coordinator>(network, std::move(out), std::move(pool));
}

void serve_rank(hosts::Network& network, const AppOptions& options, Log& log) {
  const int64_t memory = options.memory_bytes > 0 ? options.memory_bytes : available_memory() / ranks_here(&network);
  const core::MemoryShares shares = core::memory_shares(memory);
  hosts::WorkerOptions worker_options;
  worker_options.threads = threads_of(options, &network);
  worker_options.environment = environment();
  worker_options.array_bytes = options.array_memory_bytes > 0 ? options.array_memory_bytes : shares.arrays;
  worker_options.with_runs_bytes = shares.jobs + shares.arrays;
  worker_options.data = options.data;
  worker_options.fatal = [&log](const std::string& reason) {
    // As on rank 0: what the kernel still holds is unknown. With this process the job ends.
    log.error("storage_failed", {{"reason", reason}});
    log.flush();
    _exit(3);
  };
  hosts::Worker worker(network, worker_options,
                       tensor::BufferPool::create(shares.recycled, worker_options.with_runs_bytes));
  std::thread([&log, silence = worker.silence()] {
    const int signal = wait_for_end([] {});
    log.info("signal_ignored", {{"signal", signal}, {"reason", "rank 0 drains and stops the other ranks"}});
    std::thread([] { _exit(128 + wait_for_end([] {})); }).detach();
    // Where rank 0 is gone the signal is for this rank, too.
    while (silence() < kLongestSilence) std::this_thread::sleep_for(kLook);
    _exit(1);
  }).detach();
  log.info("rank", {{"rank", network.rank()}, {"of", network.size()}, {"threads", worker_options.threads}});
  worker.serve();
  log.info("stopped", {{"rank", network.rank()}});
}

}  // namespace meshd::api
