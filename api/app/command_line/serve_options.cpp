#include "api/app/command_line/serve_options.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "api/app/command_line/command_table.h"
#include "service/compile/plan/plan.h"

namespace meshd::api {
namespace {

constexpr int kMostDevices = 4096;
constexpr int kMostThreads = 1024;
constexpr int kSecondsOfADay = 86'400;
// Less does not hold the text of a small request.
constexpr int64_t kLeastMemory = int64_t{16} << 20;

std::vector<std::string> pass_names() {
  std::vector<std::string> names;
  for (const compile::PlanPass& pass : compile::kPlanPasses) names.emplace_back(pass.name);
  return names;
}

// A time such as 90s, 12h or 7d, in seconds: up to a hundred years.
void takes_time(CLI::Option& option) {
  option
      .transform(CLI::AsNumberWithUnit(
          std::map<std::string, int64_t>{{"s", 1}, {"m", 60}, {"h", 3600}, {"d", kSecondsOfADay}}))
      ->check(CLI::Range(int64_t{0}, int64_t{kSecondsOfADay} * 36'500))
      ->capture_default_str();
}

void declare_devices(CLI::App& serve, AppOptions& options) {
  serve.add_option("--devices", options.devices, "logical devices")
      ->envname("MESHD_DEVICES")
      ->check(CLI::Range(1, kMostDevices))
      ->capture_default_str();
  serve.add_option("--processes", options.processes, "processes that the devices are labelled with, in equal runs")
      ->envname("MESHD_PROCESSES")
      ->check(CLI::Range(1, kMostDevices))
      ->capture_default_str();
  serve
      .add_option("--hosts", options.hosts,
                  "one server of several processes, each with an equal run of the devices: mpi, off, or auto (mpi when "
                  "a launcher such as mpirun started several)")
      ->envname("MESHD_HOSTS")
      ->check(CLI::IsMember({"auto", "mpi", "off"}))
      ->capture_default_str();
  serve
      .add_option("--lost-rank", options.lost_ranks,
                  "process whose disk is gone for good: arrays with shards there are lost, where the server would not "
                  "start; may be repeated")
      ->envname("MESHD_LOST_RANK")
      ->check(CLI::Range(1, kMostDevices))
      ->delimiter(',');
  serve.add_flag("--mesh-stack,!--no-mesh-stack", options.mesh_stack, "sessions may have a current mesh")
      ->envname("MESHD_MESH_STACK")
      ->capture_default_str();
  serve.add_option("--threads", options.threads, "threads of the device pool (0: as many as cores)")
      ->envname("MESHD_THREADS")
      ->check(CLI::Range(0, kMostThreads))
      ->capture_default_str();
}

/// A size of 0, which stands for a share of what there is, or one that a server can work with.
CLI::Validator size_or_zero(int64_t least) {
  return CLI::Validator(
      [least](const std::string& text) {
        const int64_t bytes = std::strtoll(text.c_str(), nullptr, 10);
        if (bytes == 0 || bytes >= least) return std::string();
        return fmt::format("expected 0 or at least {} bytes, got {}", least, bytes);
      },
      "");
}

void declare_limits(CLI::App& serve, AppOptions& options) {
  serve
      .add_option("--memory", options.memory_bytes,
                  "bytes of memory for the server, such as 2GB (0: what its cgroup or the machine has)")
      ->envname("MESHD_MEMORY")
      ->transform(CLI::AsSizeValue(false))
      ->check(size_or_zero(kLeastMemory));
  serve
      .add_option("--memory-limit", options.memory_limit_bytes,
                  "bytes that running jobs may plan together (0: three quarters of --memory; arrays leave it to them)")
      ->envname("MESHD_MEMORY_LIMIT")
      ->transform(CLI::AsSizeValue(false))
      ->check(size_or_zero(1));
  serve
      .add_option("--array-memory", options.array_memory_bytes,
                  "bytes of durable arrays kept in memory (0: a quarter of --memory)")
      ->envname("MESHD_ARRAY_MEMORY")
      ->transform(CLI::AsSizeValue(false))
      ->check(size_or_zero(1));
  serve
      .add_option(
          "--warmup-bytes", options.warmup_bytes,
          "bytes of records of programs that ran lately, which the next start compiles again (0: none are kept)")
      ->envname("MESHD_WARMUP_BYTES")
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::NonNegativeNumber);
  serve.add_option("--quota", options.quota_bytes, "bytes that one array may have")
      ->envname("MESHD_QUOTA")
      ->capture_default_str();
  serve
      .add_option("--pending-timeout", options.pending_seconds,
                  "seconds after which a pending array that got no part is deleted")
      ->envname("MESHD_PENDING_TIMEOUT")
      ->check(CLI::Range(1, kSecondsOfADay))
      ->capture_default_str();
  serve
      .add_option("--upload-timeout", options.upload_seconds,
                  "seconds after which an upload that got no byte is deleted")
      ->envname("MESHD_UPLOAD_TIMEOUT")
      ->check(CLI::Range(1, kSecondsOfADay))
      ->capture_default_str();
  serve
      .add_option("--keep-jobs", options.keep_jobs,
                  "finished jobs of each principal that are kept, the newest (0: any number)")
      ->envname("MESHD_KEEP_JOBS")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  serve
      .add_option("--keep-jobs-bytes", options.keep_jobs_bytes,
                  "bytes of answers of finished jobs of each principal that are kept, the newest (0: any number)")
      ->envname("MESHD_KEEP_JOBS_BYTES")
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  takes_time(*serve
                  .add_option("--keep-jobs-for", options.keep_jobs_seconds,
                              "time after which a finished job is deleted, such as 90s, 12h or 7d (0: never)")
                  ->envname("MESHD_KEEP_JOBS_FOR"));
  serve
      .add_option("--keep-gone-arrays", options.keep_gone_arrays,
                  "donated or lost arrays of each principal that answer 410, the newest (0: any number)")
      ->envname("MESHD_KEEP_GONE_ARRAYS")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  takes_time(
      *serve
           .add_option("--keep-gone-arrays-for", options.keep_gone_seconds,
                       "time after which a donated or lost array is forgotten, such as 90s, 12h or 7d (0: never)")
           ->envname("MESHD_KEEP_GONE_ARRAYS_FOR"));
  serve
      .add_option("--drain-timeout", options.drain_seconds,
                  "seconds after SIGTERM until jobs that still run are cancelled and kept for the next start")
      ->envname("MESHD_DRAIN_TIMEOUT")
      ->check(CLI::Range(0, 3600))
      ->capture_default_str();
  serve.add_option("--idle-timeout", options.idle_seconds, "seconds a kept connection may wait for its next request")
      ->envname("MESHD_IDLE_TIMEOUT")
      ->check(CLI::Range(1, kSecondsOfADay))
      ->capture_default_str();
  serve
      .add_option("--disable-passes", options.disabled_passes,
                  "passes of plans that are left out, to find out which one is at fault")
      ->envname("MESHD_DISABLE_PASSES")
      ->delimiter(',')
      ->check(CLI::IsMember(pass_names()));
  serve.add_option("--step-budget", options.step_budget, "steps that one job may execute")
      ->envname("MESHD_STEP_BUDGET")
      ->capture_default_str();
  serve
      .add_option("--operation-budget", options.operation_budget,
                  "operations that one job may execute, by the plan's estimate; 0: any number")
      ->envname("MESHD_OPERATION_BUDGET")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  serve
      .add_option("--byte-budget", options.byte_budget,
                  "bytes that one job's steps may read and write, by the plan's estimate; 0: any number")
      ->envname("MESHD_BYTE_BUDGET")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
}

void declare_principal_limits(CLI::App& serve, quotas::Limits& limits) {
  const auto add = [&serve](const char* name, int64_t& limit, const std::string& what, const char* variable) {
    serve.add_option(name, limit, what)->envname(variable)->check(CLI::NonNegativeNumber)->capture_default_str();
  };
  add("--principal-bytes", limits.array_bytes,
      "bytes of arrays that one principal may have (0: with --tokens a quarter of the disk's free space, else any)",
      "MESHD_PRINCIPAL_BYTES");
  add("--principal-arrays", limits.arrays, "arrays that one principal may have (0: any)", "MESHD_PRINCIPAL_ARRAYS");
  add("--principal-sessions", limits.sessions, "sessions that one principal may have (0: any)",
      "MESHD_PRINCIPAL_SESSIONS");
  add("--principal-programs", limits.programs, "programs that one principal may have (0: any)",
      "MESHD_PRINCIPAL_PROGRAMS");
  add("--principal-meshes", limits.meshes, "meshes that one principal may have (0: any)", "MESHD_PRINCIPAL_MESHES");
  add("--principal-jobs", limits.waiting_jobs, "background jobs of one principal that may wait (0: any)",
      "MESHD_PRINCIPAL_JOBS");
  add("--requests-per-second", limits.requests_per_second, "requests that one principal may make (0: any)",
      "MESHD_REQUESTS_PER_SECOND");
}

void declare_access(CLI::App& serve, AppOptions& options) {
  serve
      .add_option(
          "--tokens", options.tokens_file,
          "file of bearer tokens, a line each: TOKEN, or NAME TOKEN [reader|user|admin]; without it no token is needed")
      ->envname("MESHD_TOKENS")
      ->type_name(kFile);
  serve
      .add_option("--tls-cert", options.tls_certificate,
                  "PEM file with the certificate and its chain: serve HTTPS; read again on SIGHUP")
      ->envname("MESHD_TLS_CERT")
      ->type_name(kFile);
  serve.add_option("--tls-key", options.tls_key, "PEM file with the key of --tls-cert")
      ->envname("MESHD_TLS_KEY")
      ->type_name(kFile);
  serve
      .add_option("--allowed-host", options.allowed_hosts,
                  "name that clients may call the server by, beside its address and localhost; may be repeated")
      ->envname("MESHD_ALLOWED_HOST")
      ->delimiter(',');
  serve
      .add_option("--cors-origin", options.cors_origins,
                  "origin whose pages may use the server, such as https://app.example.org; may be repeated")
      ->envname("MESHD_CORS_ORIGIN")
      ->delimiter(',');
  serve
      .add_option("--webhook-network", options.webhook_networks,
                  "network that webhooks may be in beside public addresses, such as 10.0.0.0/8; may be repeated")
      ->envname("MESHD_WEBHOOK_NETWORK")
      ->delimiter(',');
  serve
      .add_flag("--insecure", options.insecure,
                "listen beyond loopback without tokens: everybody in the network may do everything")
      ->envname("MESHD_INSECURE");
  serve
      .add_option("--security-contact", options.security_contact,
                  "URI of /.well-known/security.txt, such as mailto:security@example.org")
      ->check([](const std::string& text) {
        const bool fits = text.find(':') != std::string::npos && text.find_first_of(" \r\n\t") == std::string::npos;
        return fits ? std::string() : std::string("expected a URI: mailto:..., https://... or tel:...");
      })
      ->envname("MESHD_SECURITY_CONTACT");
}

void declare_log(CLI::App& serve, AppOptions& options) {
  serve
      .add_option("--otlp-endpoint", options.otlp_endpoint,
                  "collector that spans of requests and jobs are sent to (OTLP over HTTP, as JSON), such as "
                  "http://127.0.0.1:4318/v1/traces")
      ->envname("MESHD_OTLP_ENDPOINT");
  const auto set_format = [&options](const std::string& format) {
    options.log_format = format == "json" ? LogFormat::kJson : LogFormat::kText;
  };
  serve.add_option_function<std::string>("--log-format", set_format, "text or json")
      ->envname("MESHD_LOG_FORMAT")
      ->check(CLI::IsMember({"text", "json"}))
      ->default_str("text");
  serve.add_option("--log-level", options.log_level, "the least severe lines that are written")
      ->envname("MESHD_LOG_LEVEL")
      ->check(CLI::IsMember({"debug", "info", "warn", "err", "off"}))
      ->capture_default_str();
  serve.add_flag("--log-compiles", options.log_compiles, "log compiles as warnings; else on level debug")
      ->envname("MESHD_LOG_COMPILES");
}

}  // namespace

void declare_serve_options(CLI::App& serve, AppOptions& options) {
  serve.add_option("--listen", options.listen, "address and port")->envname("MESHD_LISTEN")->capture_default_str();
  serve.add_option("--data", options.data, "data folder")
      ->envname("MESHD_DATA")
      ->type_name(kFolder)
      ->capture_default_str();
  serve.add_option("--backups", options.backups, "folder in which POST /v1/admin/backup makes backups (DATA/backups)")
      ->envname("MESHD_BACKUPS")
      ->type_name(kFolder);
  declare_devices(serve, options);
  declare_limits(serve, options);
  declare_principal_limits(serve, options.principal);
  declare_access(serve, options);
  declare_log(serve, options);
}

}  // namespace meshd::api
