// The binary: meshd serve, meshd health, meshd --help.
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <thread>

#include "api/app/app.h"
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
  CLI::App cli{"meshd keeps sharded arrays and runs sharded array programs over HTTP"};
  cli.set_version_flag("--version", meshd::api::version());
  cli.require_subcommand(1);
  meshd::api::AppOptions options;
  std::string format = "text";
  CLI::App* server = cli.add_subcommand("serve", "serve HTTP until SIGTERM");
  server->add_option("--listen", options.listen, "address and port")->envname("MESHD_LISTEN")->capture_default_str();
  server->add_option("--data", options.data, "data folder")->envname("MESHD_DATA")->capture_default_str();
  server->add_option("--devices", options.devices, "logical devices")
      ->envname("MESHD_DEVICES")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  server->add_option("--processes", options.processes, "processes that the devices are labelled with, in equal runs")
      ->envname("MESHD_PROCESSES")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  server->add_flag("--mesh-stack,!--no-mesh-stack", options.mesh_stack, "sessions may have a current mesh")
      ->envname("MESHD_MESH_STACK")
      ->capture_default_str();
  server->add_option("--threads", options.threads, "threads of the device pool (0: as many as cores)")
      ->envname("MESHD_THREADS")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  server
      ->add_option("--memory-limit", options.memory_limit_bytes,
                   "bytes that running jobs may plan together (0: half of the memory)")
      ->envname("MESHD_MEMORY_LIMIT");
  server
      ->add_option("--array-memory", options.array_memory_bytes,
                   "bytes of durable arrays kept in memory (0: a quarter of the memory)")
      ->envname("MESHD_ARRAY_MEMORY");
  server->add_option("--quota", options.quota_bytes, "bytes that one array may have")
      ->envname("MESHD_QUOTA")
      ->capture_default_str();
  server
      ->add_option("--tokens", options.tokens_file, "file with one bearer token a line; without it no token is needed")
      ->envname("MESHD_TOKENS");
  server
      ->add_option("--security-contact", options.security_contact,
                   "URI of /.well-known/security.txt, such as mailto:security@example.org")
      ->check([](const std::string& text) {
        const bool fits = text.find(':') != std::string::npos && text.find_first_of(" \r\n\t") == std::string::npos;
        return fits ? std::string() : std::string("expected a URI: mailto:..., https://... or tel:...");
      })
      ->envname("MESHD_SECURITY_CONTACT");
  server->add_option("--idle-timeout", options.idle_seconds, "seconds a kept connection may wait for its next request")
      ->envname("MESHD_IDLE_TIMEOUT")
      ->check(CLI::Range(1, 86400))
      ->capture_default_str();
  server->add_option("--log-format", format, "text or json")
      ->envname("MESHD_LOG_FORMAT")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  server->add_option("--log-level", options.log_level, "debug, info, warn, err")
      ->envname("MESHD_LOG_LEVEL")
      ->capture_default_str();
  server->add_flag("--log-compiles", options.log_compiles, "log compiles as warnings; else on level debug")
      ->envname("MESHD_LOG_COMPILES");
  server->add_option("--step-budget", options.step_budget, "steps that one job may execute")
      ->envname("MESHD_STEP_BUDGET")
      ->capture_default_str();
  std::string url = "127.0.0.1:8080";
  CLI::App* health = cli.add_subcommand("health", "ask a server for /readyz; exit 0 when it is ready");
  health->add_option("address", url, "address and port")->capture_default_str();
  CLI11_PARSE(cli, argc, argv);
  if (health->parsed()) return meshd::api::probe(url) ? 0 : 1;
  options.log_format = format == "json" ? meshd::api::LogFormat::kJson : meshd::api::LogFormat::kText;
  return serve(options);
}
