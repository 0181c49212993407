#include "api/app/command_line.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/app/app.h"
#include "api/app/environment.h"
#include "service/compile/plan/plan.h"
#include "service/core/near_names.h"

namespace meshd::api {
namespace {

constexpr int kMostDevices = 4096;
constexpr int kMostThreads = 1024;
constexpr int kSecondsOfADay = 86'400;
constexpr int kUsage = 64;  ///< EX_USAGE of sysexits.h

std::vector<std::string> pass_names() {
  std::vector<std::string> names;
  for (const compile::PlanPass& pass : compile::kPlanPasses) names.emplace_back(pass.name);
  return names;
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
  serve.add_flag("--mesh-stack,!--no-mesh-stack", options.mesh_stack, "sessions may have a current mesh")
      ->envname("MESHD_MESH_STACK")
      ->capture_default_str();
  serve.add_option("--threads", options.threads, "threads of the device pool (0: as many as cores)")
      ->envname("MESHD_THREADS")
      ->check(CLI::Range(0, kMostThreads))
      ->capture_default_str();
}

void declare_limits(CLI::App& serve, AppOptions& options) {
  serve
      .add_option("--memory", options.memory_bytes,
                  "bytes of memory for the server, such as 2GB (0: what its cgroup or the machine has)")
      ->envname("MESHD_MEMORY")
      ->transform(CLI::AsSizeValue(false));
  serve
      .add_option("--memory-limit", options.memory_limit_bytes,
                  "bytes that running jobs may plan together (0: three quarters of --memory; arrays leave it to them)")
      ->envname("MESHD_MEMORY_LIMIT")
      ->transform(CLI::AsSizeValue(false));
  serve
      .add_option("--array-memory", options.array_memory_bytes,
                  "bytes of durable arrays kept in memory (0: a quarter of --memory)")
      ->envname("MESHD_ARRAY_MEMORY")
      ->transform(CLI::AsSizeValue(false));
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
      .add_option("--keep-jobs-for", options.keep_jobs_seconds,
                  "time after which a finished job is deleted, such as 90s, 12h or 7d (0: never)")
      ->envname("MESHD_KEEP_JOBS_FOR")
      ->transform(CLI::AsNumberWithUnit(
          std::map<std::string, int64_t>{{"s", 1}, {"m", 60}, {"h", 3600}, {"d", kSecondsOfADay}}))
      ->check(CLI::Range(int64_t{0}, int64_t{kSecondsOfADay} * 36'500))
      ->capture_default_str();
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
      ->envname("MESHD_TOKENS");
  CLI::Option* certificate =
      serve
          .add_option("--tls-cert", options.tls_certificate,
                      "PEM file with the certificate and its chain: serve HTTPS; read again on SIGHUP")
          ->envname("MESHD_TLS_CERT");
  CLI::Option* key =
      serve.add_option("--tls-key", options.tls_key, "PEM file with the key of --tls-cert")->envname("MESHD_TLS_KEY");
  certificate->needs(key);
  key->needs(certificate);
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

void declare_log(CLI::App& serve, AppOptions& options, std::string& format) {
  serve
      .add_option("--otlp-endpoint", options.otlp_endpoint,
                  "collector that spans of requests and jobs are sent to (OTLP over HTTP, as JSON), such as "
                  "http://127.0.0.1:4318/v1/traces")
      ->envname("MESHD_OTLP_ENDPOINT");
  serve.add_option("--log-format", format, "text or json")
      ->envname("MESHD_LOG_FORMAT")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  serve.add_option("--log-level", options.log_level, "the least severe lines that are written")
      ->envname("MESHD_LOG_LEVEL")
      ->check(CLI::IsMember({"debug", "info", "warn", "err", "off"}))
      ->capture_default_str();
  serve.add_flag("--log-compiles", options.log_compiles, "log compiles as warnings; else on level debug")
      ->envname("MESHD_LOG_COMPILES");
}

/// Variables that no option of `serve` reads, a line each. The options are the list: a new one is known at once.
std::vector<std::string> unread_variables(const CLI::App& serve) {
  std::vector<std::string> known;
  for (const CLI::Option* option : serve.get_options()) {
    if (!option->get_envname().empty()) known.push_back(option->get_envname());
  }
  std::vector<std::string_view> entries;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) entries.emplace_back(*entry);
  return unknown_variables(entries, known);
}

/// The first word that is no command or option, with the nearest that is: "there is no option '--devcies'; did you mean
/// '--devices'?". Empty where all words are known.
std::string advice_for(const CLI::App& cli, int argc, const char* const* argv) {
  const CLI::App* command = &cli;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word(argv[i]);
    std::vector<std::string> known;
    if (word.starts_with("--")) {
      const std::string name(word.substr(0, word.find('=')));
      for (const CLI::Option* option : command->get_options()) {
        for (const std::string& each : option->get_lnames()) known.push_back("--" + each);
      }
      if (std::find(known.begin(), known.end(), name) != known.end()) continue;
      return "there is no option '" + name + "'" + core::did_you_mean(name, known);
    }
    const std::vector<const CLI::App*> commands = command->get_subcommands({});
    if (commands.empty()) continue;  // a value of an option, or a positional argument
    const CLI::App* chosen = nullptr;
    for (const CLI::App* each : commands) {
      known.push_back(each->get_name());
      if (each->get_name() == word) chosen = each;
    }
    if (chosen == nullptr) return "there is no command '" + std::string(word) + "'" + core::did_you_mean(word, known);
    command = chosen;
  }
  return {};
}

}  // namespace

CommandLine read_command_line(int argc, const char* const* argv) {
  CommandLine out;
  AppOptions& options = out.options;
  std::string format = "text";
  CLI::App cli{"meshd keeps sharded arrays and runs sharded array programs over HTTP"};
  cli.set_version_flag("--version", version());
  cli.require_subcommand(1);
  CLI::App& serve = *cli.add_subcommand("serve", "serve HTTP until SIGTERM");
  serve.add_option("--listen", options.listen, "address and port")->envname("MESHD_LISTEN")->capture_default_str();
  serve.add_option("--data", options.data, "data folder")->envname("MESHD_DATA")->capture_default_str();
  serve.add_option("--backups", options.backups, "folder in which POST /v1/admin/backup makes backups (DATA/backups)")
      ->envname("MESHD_BACKUPS");
  declare_devices(serve, options);
  declare_limits(serve, options);
  declare_principal_limits(serve, options.principal);
  declare_access(serve, options);
  declare_log(serve, options, format);
  const auto with_data = [&](CLI::App& command) -> CLI::App& {
    command.add_option("--data", options.data, "data folder")->envname("MESHD_DATA")->capture_default_str();
    return command;
  };
  CLI::App& health = *cli.add_subcommand("health", "ask a server for /readyz; exit 0 when it is ready");
  health.add_option("address", out.probe.address, "address and port, or https://address:port")->capture_default_str();
  health.add_option("--ca", out.probe.ca_file,
                    "PEM file with the certificates that https:// trusts, instead of the system's");
  health.add_flag("--insecure-skip-verify", out.probe.skips_verification, "take any certificate");
  CLI::App& tokens = *cli.add_subcommand("tokens", "what is in the file of tokens, and whose data is whose");
  tokens.require_subcommand(1);
  CLI::App& hash = *tokens.add_subcommand("hash", "print sha256:HEX of the token on stdin, for the file of tokens");
  CLI::App& adopt = *tokens.add_subcommand(
      "adopt", "give the data of a token that had no name to a name; no server may use the data folder meanwhile");
  with_data(adopt);
  adopt.add_option("name", out.adopt_name, "name in the file of tokens")->required();
  adopt.add_option("token", out.adopt_token, "the token, its principal tok_..., or - to read it from stdin")
      ->required();
  CLI::App& backup = with_data(*cli.add_subcommand("backup", "copy a data folder that no server uses"));
  backup.add_option("folder", out.backup, "new folder for the copy")->required();
  CLI::App& restore = with_data(*cli.add_subcommand("restore", "check a backup and make a new data folder of it"));
  restore.add_option("folder", out.backup, "the backup")->required();
  CLI::App& check = with_data(
      *cli.add_subcommand("fsck", "read all of a data folder that no server uses; exit 1 when it is damaged"));
  try {
    cli.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    out.exit_code = cli.exit(error);
    const std::string advice = out.exit_code == 0 ? "" : advice_for(cli, argc, argv);  // 0: --help, --version
    if (!advice.empty()) std::fprintf(stderr, "%s\n", advice.c_str());
    return out;
  }
  const std::vector<std::string> unread = serve.parsed() ? unread_variables(serve) : std::vector<std::string>();
  for (const std::string& line : unread) std::fprintf(stderr, "%s\n", line.c_str());
  if (!unread.empty()) {
    out.exit_code = kUsage;
    return out;
  }
  options.log_format = format == "json" ? LogFormat::kJson : LogFormat::kText;
  using Command = CommandLine::Command;
  const std::pair<const CLI::App*, Command> commands[] = {{&serve, Command::kServe},    {&health, Command::kHealth},
                                                          {&hash, Command::kHashToken}, {&adopt, Command::kAdopt},
                                                          {&backup, Command::kBackUp},  {&restore, Command::kRestore},
                                                          {&check, Command::kCheck}};
  for (const auto& [given, command] : commands) {
    if (given->parsed()) out.command = command;
  }
  return out;
}

}  // namespace meshd::api
