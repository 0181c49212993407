// The binary: meshd serve, meshd health, meshd --help.
#include <signal.h>
#include <unistd.h>

#include <thread>

#include "api/app/app.h"
#include "api/app/command_line.h"
#include "api/app/probe.h"
#include "service/core/error.h"

namespace {

// The first signal drains, the second ends at once with the promises of kill -9.
int serve(const meshd::api::AppOptions& options) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);
  meshd::api::Log log(options.log_format, options.log_level);
  try {
    meshd::api::App app(options, log);
    app.start();
    int received = 0;
    sigwait(&signals, &received);
    std::thread([signals] {
      int again = 0;
      sigwait(&signals, &again);
      _exit(128 + again);
    }).detach();
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
  const CommandLine given = meshd::api::read_command_line(argc, argv);
  switch (given.command) {
    case CommandLine::Command::kNone:
      return given.exit_code;
    case CommandLine::Command::kServe:
      return serve(given.options);
    case CommandLine::Command::kHealth:
      return meshd::api::probe(given.address) ? 0 : 1;
  }
  return 1;
}
