// The binary: meshd serve, meshd health, meshd --help.
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <functional>
#include <thread>

#include "api/app/app.h"
#include "api/app/command_line.h"
#include "api/app/probe.h"
#include "api/app/tokens_command.h"
#include "service/core/error.h"

namespace {

// Waits for a signal that ends the server; SIGHUP reads again what may change while it runs.
int wait_for_end(const sigset_t& signals, const std::function<void()>& reload) {
  while (true) {
    int received = 0;
    sigwait(&signals, &received);
    if (received != SIGHUP) return received;
    reload();
  }
}

// The first signal drains, the second ends at once with the promises of kill -9.
int serve(const meshd::api::AppOptions& options) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);
  meshd::api::Log log(options.log_format, options.log_level);
  try {
    meshd::api::App app(options, log);
    app.start();
    wait_for_end(signals, [&app] { app.reload(); });
    std::thread([signals] { _exit(128 + wait_for_end(signals, [] {})); }).detach();
    app.stop();
  } catch (const meshd::core::Error& error) {
    log.error("cannot_start", {{"reason", error.detail()}, {"detail", error.internal()}});
    return 1;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  using meshd::api::CommandLine;
  umask(S_IRWXG | S_IRWXO);  // what is kept here is nobody else's, from the moment that a file is made
  const CommandLine given = meshd::api::read_command_line(argc, argv);
  switch (given.command) {
    case CommandLine::Command::kNone:
      return given.exit_code;
    case CommandLine::Command::kServe:
      return serve(given.options);
    case CommandLine::Command::kHealth:
      return meshd::api::probe(given.probe) ? 0 : 1;
    case CommandLine::Command::kHashToken:
      return meshd::api::hash_token();
    case CommandLine::Command::kAdopt:
      return meshd::api::adopt_data(given.options.data, given.adopt_name, given.adopt_token);
  }
  return 1;
}
