// The binary: meshd serve and its other commands, meshd --help.
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "api/app/command_line/command_line.h"
#include "api/app/serving/app.h"
#include "api/app/serving/freed_memory.h"
#include "api/app/serving/hosts.h"
#include "api/app/serving/periodic.h"
#include "api/app/serving/service_manager.h"
#include "api/app/serving/signals.h"
#include "service/core/error.h"

namespace {

// Connections, blobs that are being read and written: a shell's 1,024 descriptors are few. As many as we may have.
void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

// Beside both drains, which take the drain timeout each at most: what cannot be interrupted, and a slow disk.
constexpr std::chrono::seconds kStopMargin{60};

// Three looks in each period of the service manager's watchdog, each of at most as long: it comes in time unless the
// server hangs.
constexpr int kLooksPerWatchdog = 3;

void keep_watchdog(std::optional<meshd::api::Periodic>& looks, const meshd::api::App& app,
                   const meshd::api::ServiceManager& manager, meshd::api::Log& log) {
  if (!manager.watchdog()) return;
  const auto period =
      std::max(std::chrono::milliseconds(1),
               std::chrono::duration_cast<std::chrono::milliseconds>(*manager.watchdog() / kLooksPerWatchdog));
  looks.emplace(
      period,
      [&app, &manager, &log, period] {
        if (!app.is_responsive(period)) {
          log.error("not_responsive", {{"waited_ms", period.count()}});
        } else if (!manager.alive()) {
          log.warn("service_manager_not_told", {{"what", "alive"}});
        }
      },
      [&log](const std::string& reason) {
        log.error("not_responsive", {{"reason", reason}});
      });
}

// The first signal drains, the second ends at once with the promises of kill -9.
void serve_http(const meshd::api::AppOptions& options, meshd::api::Log& log, meshd::hosts::Network* hosts) {
  const meshd::api::ServiceManager manager(std::getenv("NOTIFY_SOCKET"), std::getenv("WATCHDOG_USEC"),
                                           std::getenv("WATCHDOG_PID"));
  const auto note = [&log](bool told, const char* what) {
    if (!told) log.warn("service_manager_not_told", {{"what", what}});
  };
  meshd::api::App app(options, log, hosts);
  const std::string status = fmt::format("serving on port {}", app.start());
  std::optional<meshd::api::Periodic> looks;
  keep_watchdog(looks, app, manager, log);
  note(manager.ready(status), "ready");
  meshd::api::wait_for_end([&] {
    note(manager.reloading(), "reloading");
    app.reload();
    note(manager.ready(status), "ready");
  });
  std::thread([] { _exit(128 + meshd::api::wait_for_end([] {})); }).detach();
  note(manager.stopping(2 * std::chrono::seconds(options.drain_seconds) + kStopMargin), "stopping");
  looks.reset();
  app.stop();
}

int serve(const meshd::api::AppOptions& options) {
  meshd::api::Log log(options.log_format, options.log_level);
  std::unique_ptr<meshd::hosts::Network> hosts;  // null: one process
  try {
    raise_descriptor_limit();
    meshd::api::return_freed_memory();
    hosts = meshd::api::open_hosts(options);
    if (hosts != nullptr && hosts->rank() > 0) {
      meshd::api::serve_rank(*hosts, options, log);
    } else {
      serve_http(options, log, hosts.get());
    }
    if (hosts != nullptr) hosts->close();
  } catch (const meshd::core::Error& error) {
    log.error("cannot_start", {{"reason", error.detail()}, {"detail", error.internal()}});
    log.flush();  // with its end the network ends the other ranks, and this one
    return 1;
  }
  return 0;
}

// Whoever starts us may have closed these. What is opened then would have their numbers: a shard, say, whose file the
// lines of the log are written into. Writing to them still fails.
void open_standard_streams() {
  int number = 0;
  do {
    number = ::open("/dev/null", O_RDONLY);
  } while (number >= 0 && number <= STDERR_FILENO);
  if (number > STDERR_FILENO) ::close(number);
}

}  // namespace

int main(int argc, char** argv) {
  open_standard_streams();
  // Before the command line is read: who ends a server that is just starting sees it end as any other.
  if (argc > 1 && std::string_view(argv[1]) == "serve") meshd::api::catch_signals();
  return meshd::api::run_command_line(argc, argv, serve);
}
