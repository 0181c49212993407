// toy_server [PORT [LARGE_MIB]]: the toy routes on a port, for wrk and curl. Not a test.
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "api/server/server.h"
#include "tests/http/toy_routes.h"

int main(int argc, char** argv) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  meshd::api::ServerOptions options;
  options.port = static_cast<uint16_t>(argc > 1 ? std::atoi(argv[1]) : 8080);
  options.accept_after_drain = std::chrono::milliseconds(0);
  const size_t large = static_cast<size_t>(argc > 2 ? std::atoi(argv[2]) : 16) << 20;
  meshd::api::Server server(options, toy_router(std::make_shared<meshd::http_test::ToyState>(), large));
  server.start();
  std::printf("http://127.0.0.1:%d\n", server.port());
  std::fflush(stdout);
  int signal = 0;
  sigwait(&signals, &signal);
  return server.stop() ? 0 : 1;
}
