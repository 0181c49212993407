#include "api/app/serving/app.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <thread>

#include "api/app/access/auth.h"
#include "api/app/serving/build.h"
#include "api/app/serving/hosts.h"
#include "api/app/serving/listening.h"
#include "api/app/serving/memory_limit.h"
#include "api/app/serving/periodic.h"
#include "api/app/serving/storage_watch.h"
#include "api/app/serving/trace_exporter.h"
#include "api/codecs/model_codec.h"
#include "api/codecs/runs/job_answer_codec.h"
#include "api/codecs/runs/job_request_codec.h"
#include "api/codecs/runs/old_job_row.h"
#include "api/codecs/webhook_codec.h"
#include "api/http/problem.h"
#include "api/json/json.h"
#include "api/routes/documents/history.h"
#include "api/routes/routes.h"
#include "api/routes/uploads.h"
#include "api/server/server.h"
#include "api/server/tls_context.h"
#include "service/core/ids.h"
#include "service/core/memory_ledger.h"
#include "service/jobs/commit/retention.h"
#include "service/quotas/rate_limiter.h"
#include "storage/file_system.h"

namespace meshd::api {
namespace {

constexpr std::chrono::seconds kLongestEnd{1};  // of taking the server down once everything is drained
constexpr std::chrono::seconds kCollectFilesEvery{1};
constexpr std::chrono::seconds kCollectEvery{10};
constexpr std::chrono::minutes kRetainEvery{1};
constexpr std::chrono::seconds kExportEvery{1};
constexpr std::chrono::seconds kLongestExport{2};  // of the last spans, at the end
constexpr size_t kLongestTarget = 512;             // of a line of the log: what is not routed may be as long as a head
constexpr size_t kCacheEntries = 512;

/// The options with shares of memory in place of zeros.
AppOptions with_memory(AppOptions options, const hosts::Network* network) {
  if (options.memory_bytes == 0) options.memory_bytes = available_memory() / ranks_here(network);
  const core::MemoryShares shares = core::memory_shares(options.memory_bytes);
  if (options.memory_limit_bytes == 0) options.memory_limit_bytes = shares.jobs + shares.arrays;
  if (options.array_memory_bytes == 0) options.array_memory_bytes = shares.arrays;
  return options;
}

ServerOptions front_options(const AppOptions& options, core::MemoryLedgerRef memory) {
  ServerOptions out = server_options(options);
  out.memory = std::move(memory);
  out.makes_traces = !options.otlp_endpoint.empty();
  return out;
}

device::EngineOptions engine_options(const AppOptions& options, const hosts::Network* network,
                                     const core::MemoryLedgerRef& memory) {
  device::EngineOptions out;
  out.device_count = options.devices;
  out.threads = threads_of(options, network);
  out.memory_limit_bytes = options.memory_limit_bytes;
  out.on_memory_back = [memory] { memory->notify_waiting(); };
  return out;
}

arrays::ArrayMemory array_memory(const AppOptions& options) {
  const core::MemoryShares shares = core::memory_shares(options.memory_bytes);
  return {options.array_memory_bytes, shares.jobs + shares.arrays};
}

arrays::PendingLimits pending_limits(const AppOptions& options) {
  arrays::PendingLimits out;
  out.timeout = std::chrono::seconds(options.pending_seconds);
  out.most_bytes = options.array_memory_bytes;
  return out;
}

uploads::UploadLimits upload_limits(const AppOptions& options) {
  uploads::UploadLimits out;
  out.most_bytes = options.quota_bytes;
  out.max_age = std::chrono::seconds(options.upload_seconds);
  return out;
}

outbound::AddressGuard address_guard(const AppOptions& options) {
  std::vector<outbound::Network> allowed;
  for (const std::string& text : options.webhook_networks) {
    const auto network = outbound::parse_network(text);
    if (!network)
      throw core::Error("internal", fmt::format("--webhook-network: '{}' is not like 10.0.0.0/8 or fd00::/8", text));
    allowed.push_back(*network);
  }
  return outbound::AddressGuard(std::move(allowed));
}

jobs::JobRetention retention_of(const AppOptions& options) {
  return {options.keep_jobs, std::chrono::seconds(options.keep_jobs_seconds), options.keep_jobs_bytes};
}

arrays::GoneRetention gone_retention_of(const AppOptions& options) {
  return {options.keep_gone_arrays, std::chrono::seconds(options.keep_gone_seconds)};
}

compile::PlanSettings plan_settings(const AppOptions& options, int threads, const hosts::Network* network) {
  compile::PlanSettings out(threads);
  out.shares_memory = network == nullptr || network->size() == 1;
  for (const compile::PlanPass& pass : compile::kPlanPasses) {
    const std::vector<std::string>& off = options.disabled_passes;
    out.*pass.is_on = std::find(off.begin(), off.end(), pass.name) == off.end();
  }
  return out;
}

// Where devices have owners, the labels are those.
mesh::Processes processes_of(const AppOptions& options, const hosts::Network* network) {
  if (network != nullptr) {
    if (options.processes != 1 && options.processes != network->size()) {
      throw core::Error("internal", fmt::format("--processes: {} processes own the devices, got {}", network->size(),
                                                options.processes));
    }
    return {options.devices, network->size()};
  }
  if (options.devices % options.processes != 0) {
    throw core::Error("internal",
                      fmt::format("--processes: {} devices do not divide by {}", options.devices, options.processes));
  }
  return {options.devices, options.processes};
}

storage::StoreOptions store_options(const AppOptions& options, Log& log, hosts::Coordinator* coordinator) {
  storage::StoreOptions out;
  if (coordinator != nullptr) out.ranks = &coordinator->disks();
  out.lost_ranks = options.lost_ranks;
  out.folder = options.data;
  out.fatal = [&log](const std::string& reason) {
    // What the kernel still holds is unknown: nothing more may be acknowledged.
    log.error("storage_failed", {{"reason", reason}});
    log.flush();
    _exit(3);
  };
  return out;
}

// Without a tokens file a limit of bytes protects nothing: a client can take another token.
quotas::Limits limits_of(const AppOptions& options, const storage::Store& store) {
  quotas::Limits limits = options.principal;
  if (limits.array_bytes == 0 && !options.tokens_file.empty())
    limits.array_bytes = std::max<int64_t>(store.health().disk_free_bytes / 4, 1);
  return limits;
}

// Without a tokens file a part of the open files for each principal protects nothing, either.
zarr::NodeLimits node_limits_of(const AppOptions& options) {
  zarr::NodeLimits limits;
  if (options.tokens_file.empty()) limits.principals_part_of_files = 1;
  return limits;
}

// Adds the principal's remaining requests (draft-ietf-httpapi-ratelimit-headers) to the limits that a route has set.
void note_rate(const Request& request, Response& response, const quotas::RateLimiter& rates) {
  const bool counted = request.route != nullptr && request.route->access != Access::kOpen && response.status != 401;
  if (rates.rate() == 0 || !counted) return;
  const auto add = [&response](std::string_view name, const std::string& value) {
    const std::string before = response.headers.joined(name);
    response.headers.set(name, before.empty() ? value : before + ", " + value);
  };
  add("RateLimit-Policy", fmt::format(R"("requests";q={};w=1)", rates.rate()));
  add("RateLimit", fmt::format(R"("requests";r={};t=1)", rates.left(request.principal)));
}

/// What an operator has to look into, as a request with that status: a defect, damaged data, a full disk.
bool is_ours(int status) { return status >= 500 && status != 501 && status != 503; }
bool is_ours(const core::Error& error) { return is_ours(problem(error, "").status); }

/// For the log: of a failure of ours all that is known, of others what their clients are not told.
std::string reason_of(const core::Error* error) {
  if (error == nullptr) return "";
  if (!is_ours(*error)) return error->internal();
  return error->internal().empty() ? error->detail() : error->detail() + ": " + error->internal();
}

// Jobs of requests that wait for them are on the request's line as well: here they are for debugging.
void log_job(const jobs::JobEnd& end, Log& log) {
  const bool is_error = end.in_background && end.error != nullptr && is_ours(*end.error);
  const auto write = is_error ? &Log::error : end.in_background ? &Log::info : &Log::debug;
  (log.*write)("job", {{"job", end.row.id},
                       {"session", end.row.session},
                       {"principal", end.row.principal},
                       {"outcome", end.error == nullptr ? "done" : std::string(end.error->code().word())},
                       {"reason", reason_of(end.error)},
                       {"queue_ms", end.timings.queue_ms},
                       {"run_ms", end.timings.run_ms},
                       {"commit_ms", end.timings.commit_ms},
                       {"job_ms", end.job_ms}});
}

jobs::RunnerOptions runner_options(const AppOptions& options, core::MemoryLedgerRef memory, Log& log,
                                   effects::EffectLog& effect_log, TraceExporter& traces, const core::Clock& clock) {
  jobs::RunnerOptions out;
  out.memory = std::move(memory);
  out.build = build_name();
  out.on_compile = [&log, loud = options.log_compiles](const jobs::CompileNote& note) {
    if (loud) {
      log.warn("compile", {{"function", note.function}, {"devices", note.devices}, {"arguments", note.arguments}});
    } else {
      log.debug("compile", {{"function", note.function}, {"devices", note.devices}, {"arguments", note.arguments}});
    }
  };
  out.on_end = [&log, &effect_log, &traces, &clock](const jobs::JobEnd& end) {
    log_job(end, log);
    if (traces.is_on()) traces.add(spans_of(end, clock.wall()));
    if (!end.row.session.empty()) effect_log.notify(end.row.session);  // webhooks deliver ends of jobs, too
  };
  out.step_budget = options.step_budget;
  out.operation_budget = options.operation_budget;
  out.byte_budget = options.byte_budget;
  const int64_t waiting = options.principal.waiting_jobs;
  out.queue.principal = waiting == 0 ? out.queue.all : waiting;
  return out;
}

// The session or the job of the request's path, for its line in the log.
void note_subjects(Request& request) {
  const auto note = [&](std::string_view path, std::string_view kind, std::string& id) {
    if (!request.route->path.starts_with(path)) return;
    const std::string& named = request.capture("id");
    if (core::looks_like_id(named, kind)) id = named;
  };
  note("/v1/sessions/{id}", "ses", request.session_id);
  note("/v1/jobs/{id}", "job", request.job_id);
}

// Read access to the tokens file is access as any principal; write access can add tokens.
void warn_of_open_tokens(const std::string& path, Log& log) {
  struct stat info {};
  if (path.empty() || stat(path.c_str(), &info) != 0) return;
  if ((info.st_mode & (S_IROTH | S_IWOTH | S_IWGRP)) == 0) return;
  log.warn("tokens_open_to_others", {{"path", path}, {"remedy", "chmod 600, or 640 for a group of its own"}});
}

}  // namespace

struct App::Parts {
  Parts(const AppOptions& given, Log& log_lines, hosts::Network* network)
      : log(log_lines),
        memory(core::MemoryLedger::create(core::memory_shares(given.memory_bytes).accounted)),
        front(front_options(given, memory)),
        tokens_file(given.tokens_file),
        drain_seconds(given.drain_seconds),
        traces(given.otlp_endpoint, version()),
        backups(given.backups.empty() ? given.data + "/backups" : given.backups),
        files(storage::real_file_system()),
        pool(tensor::BufferPool::create(core::memory_shares(given.memory_bytes).recycled, given.memory_limit_bytes)),
        coordinator(network == nullptr
                        ? nullptr
                        : make_coordinator(*network, engine_options(given, network, memory), given, pool)),
        store(store_options(given, log_lines, coordinator.get()), *files, clock),
        own_engine(network == nullptr ? std::make_unique<device::Engine>(engine_options(given, network, memory), pool)
                                      : nullptr),
        engine(coordinator != nullptr ? static_cast<device::Executor&>(*coordinator) : *own_engine),
        compiler(plan_settings(given, engine.threads(), network), kCacheEntries,
                 memory->stats()[static_cast<size_t>(core::MemoryAccount::kPrograms)].limit_bytes,
                 {memory, core::MemoryAccount::kPrograms}),
        compile_records(*files, given.data + "/warmup", given.warmup_bytes,
                        [this](const std::string& name, const std::string& reason) {
                          log.warn("compile_record_removed", {{"name", name}, {"reason", reason}});
                        }),
        warmup(compiler, compile_records, clock),
        limits(limits_of(given, store)),
        arrays(store, pool, clock, array_memory(given), given.quota_bytes, pending_limits(given), limits),
        uploads(store, arrays.ledger(), clock, upload_limits(given)),
        zarr(store, arrays, clock, node_limits_of(given)),
        meshes(store.catalog(), clock, limits.meshes),
        programs(store.catalog(), compiler, clock, limits.programs, memory),
        sessions(store.catalog(), clock, given.mesh_stack, limits.sessions),
        effect_log(store.catalog()),
        infeeds(store.catalog(), clock),
        callbacks(store.catalog(), clock),
        runner(store, arrays, compiler, engine, sessions, effect_log, infeeds, callbacks, clock,
               runner_options(given, memory, log_lines, effect_log, traces, clock)),
        models(store.catalog(), arrays, compiler, *pool, runner, clock, memory),
        posts(address_guard(given)),
        deliveries(store.catalog(), effect_log, posts, clock, memory, {encode_effects_delivery, encode_job_delivery},
                   [this](const std::string& webhook, const std::string& reason) {
                     log.error("webhook_not_delivered", {{"webhook", webhook}, {"reason", reason}});
                   }),
        webhooks(
            store.catalog(), clock, posts.guard(), [this](const storage::WebhookRow& row) { deliveries.changed(row); },
            [this](const std::string& id) { deliveries.removed(id); }),
        services{clock,
                 memory,
                 *pool,
                 compiler,
                 warmup,
                 engine,
                 arrays,
                 uploads,
                 meshes,
                 programs,
                 sessions,
                 effect_log,
                 infeeds,
                 callbacks,
                 runner,
                 jobs::IdempotencyKeys(store.catalog()),
                 processes_of(given, network),
                 models,
                 webhooks,
                 deliveries,
                 zarr},
        // Removes files that rows stopped naming: on a full disk, who deletes waits for their room.
        file_collector(
            kCollectFilesEvery, [this] { store.collect_garbage(); },
            [this](const std::string& reason) {
              log.error("not_collected", {{"reason", reason}});
            }),
        // Removes rows of deleted sessions, and pending arrays whose time is over; donated arrays leave memory.
        collector(
            kCollectEvery,
            [this] {
              arrays.expire_pending();
              arrays.forget_donated();
              uploads.expire();
              zarr.expire();
              sessions.remove_deleted([this] { return runner.is_stopping(); });
            },
            [this](const std::string& reason) {
              log.error("not_collected", {{"reason", reason}});
            }),
        retention_time(
            store.catalog(), clock,
            [this](std::chrono::seconds ahead) {
              log.warn(
                  "clock_jumped",
                  {{"ahead_seconds", ahead.count()},
                   {"effect", "finished jobs, keys and gone arrays get no older until it is right, or for a day"}});
            }),
        retention(
            kRetainEvery,
            [this, kept = retention_of(given), kept_gone = gone_retention_of(given)] {
              const auto now = retention_time.now();
              jobs::expire_idempotency_keys(store.catalog(), now);
              jobs::expire_jobs(store.catalog(), kept, now);
              arrays.expire_gone(kept_gone, now);
            },
            [this](const std::string& reason) {
              log.error("not_expired", {{"reason", reason}});
            }),
        trace_flush(
            kExportEvery, [this] { traces.flush(); },
            [this](const std::string& reason) {
              log.error("traces_not_exported", {{"reason", reason}});
            }),
        storage_watch(store, clock),
        authenticate(given.tokens_file),
        rates(limits.requests_per_second, clock) {
    memory->borrow_from({[this](int64_t bytes) {
                           if (!engine.try_lend(bytes)) return false;
                           try {
                             arrays.lend(bytes);
                           } catch (...) {
                             engine.take_back(bytes);
                             throw;
                           }
                           return true;
                         },
                         [this](int64_t bytes) {
                           arrays.take_back(bytes);
                           engine.take_back(bytes);
                         }});
    log.info("memory", {{"bytes", given.memory_bytes},
                        {"jobs", given.memory_limit_bytes},
                        {"arrays", given.array_memory_bytes},
                        {"accounts", memory->limit_bytes()}});
    if (front.tls) note_certificate();
    ProcessFacts facts;
    facts.version = version();
    facts.commit = commit_of_build();
    facts.security_contact = given.security_contact;
    facts.started = clock.steady();
    facts.is_recovered = [this] { return is_recovered.load(); };
    facts.is_draining = [this] { return server != nullptr && server->draining(); };
    facts.metrics = [this] { return server != nullptr ? server->metrics() : ServerMetrics{}; };
    facts.dropped_log_lines = [this] { return log.dropped(); };
    if (traces.is_on()) {
      facts.spans = [this] {
        const ExportCounters counters = traces.counters();
        return std::pair(counters.exported, counters.dropped);
      };
    }
    if (coordinator != nullptr) {
      facts.ranks = [this] {
        RankFacts out{coordinator->problem(), coordinator->round_trips(), {}};
        for (const hosts::Residents::Held& held : coordinator->kept_arrays()) out.kept_bytes.push_back(held.bytes);
        return out;
      };
      arrays.on_new_version([this](const std::string& id) { coordinator->forget(id); });
    }
    facts.history = [this] { return history.samples(); };
    facts.storage = [this] { return storage_watch.sample(); };
    PrincipalFacts principals;
    principals.limits = limits;
    principals.names = [this] { return authenticate.principals(); };
    principals.reload_tokens = [this] { return authenticate.reload(); };
    principals.back_up = [this](const std::string& name) {
      storage::make_durable_folder(*files, backups);
      const std::string folder = backups + "/" + name;
      store.backup_to(folder);
      return folder;
    };
    Router router;
    for (auto&& rows :
         {mesh_routes(services), array_routes(services), array_part_routes(services), array_archive_routes(services),
          zarr_routes(services), call_routes(), program_routes(services), explain_routes(services),
          gradient_routes(services), session_routes(services), session_mesh_routes(services), queue_routes(services),
          callback_routes(services), job_routes(services), webhook_routes(services), model_routes(services, facts),
          health_routes(services, facts), principal_routes(services, principals), document_routes(services, facts)}) {
      router.add(rows);
    }
    add_upload_routes(router, services);
    ServerHooks hooks;
    hooks.authenticate = [this](Request& request) {
      if (!is_recovered.load()) {
        throw core::Error("starting", "jobs and models of before the start are being taken up again")
            .with_retry_after(1);
      }
      note_subjects(request);
      authenticate(request);
      rates.take(request.principal);
      require_role(request);
    };
    hooks.finish = [this](const Request& request, Response& response) {
      note_rate(request, response, rates);
      if ((request.path.starts_with("/v1/") || request.path.starts_with("/v2")) &&
          !response.headers.has("Cache-Control"))
        response.headers.set("Cache-Control", "no-store");
    };
    hooks.access = [this](const AccessRecord& record) {
      note(record);
      if (traces.is_on()) traces.add(spans_of(record, clock.wall()));
    };
    server = std::make_unique<Server>(front, std::move(router), std::move(hooks));
    sampler.emplace(
        History::kInterval, [this] { history.add(history_sample(services, server->metrics())); },
        [this](const std::string& reason) {
          log.error("not_sampled", {{"reason", reason}});
        });
  }

  void note(const AccessRecord& record) {
    const double milliseconds = static_cast<double>(record.duration.count()) / 1000.0;
    const bool is_cut_off = record.status == 0 && !record.error_internal.empty();
    const bool ours = is_cut_off || is_ours(record.status);
    (log.*(ours ? &Log::error : &Log::info))("request", {{"request_id", record.request_id},
                                                         {"trace_id", record.trace_id},
                                                         {"operation", record.operation_id},
                                                         {"session", record.session_id},
                                                         {"job", record.job_id},
                                                         {"method", record.method},
                                                         {"target", shortened(record.target, kLongestTarget)},
                                                         {"status", record.status},
                                                         {"ms", milliseconds},
                                                         {"bytes_in", record.bytes_in},
                                                         {"bytes_out", record.bytes_out},
                                                         {"principal", record.principal},
                                                         {"code", record.error_code},
                                                         {"detail", ours ? record.error_internal : std::string()}});
    if (record.role == Role::kAdmin && role_needed(record.access) >= Role::kUser && record.method != "GET" &&
        record.method != "HEAD") {
      log.warn("audit", {{"principal", record.principal},
                         {"operation", record.operation_id},
                         {"target", shortened(record.target, kLongestTarget)},
                         {"status", record.status},
                         {"session", record.session_id},
                         {"job", record.job_id},
                         {"request_id", record.request_id}});
    }
  }

  // The audit log: changes by an admin (note()) and changes of permissions, one line each, on a level that is rarely
  // turned off.
  void audit(const std::string& operation, const std::string& target, const std::string& outcome,
             const std::string& reason = {}) {
    log.warn("audit", {{"principal", "operator"},
                       {"operation", operation},
                       {"target", shortened(target, kLongestTarget)},
                       {"outcome", outcome},
                       {"reason", reason}});
  }

  // A file that cannot be used leaves what was read before.
  void reload_tokens() {
    if (!authenticate.is_required()) return;
    try {
      const size_t count = authenticate.reload();
      audit("reloadTokens", fmt::format("{} tokens", count), "ok");
    } catch (const core::Error& error) {
      log.error("tokens_not_reloaded", {{"reason", error.detail()}});
      audit("reloadTokens", "", "failed", error.detail());
    }
  }

  void note_certificate() {
    const CertificateFacts facts = front.tls->facts();
    log.info("certificate", {{"subject", facts.subject}, {"not_after", facts.not_after}});
    for (const std::string& warning : facts.warnings) log.warn("certificate", {{"warning", warning}});
  }

  void reload_certificate() {
    if (!front.tls) return;
    try {
      front.tls->reload();
      note_certificate();
      audit("reloadCertificate", front.tls->facts().subject, "ok");
    } catch (const core::Error& error) {
      log.error("certificate_not_reloaded", {{"reason", error.detail()}});
      audit("reloadCertificate", "", "failed", error.detail());
    }
  }

  Log& log;
  const core::MemoryLedgerRef memory;
  const ServerOptions front;
  const std::string tokens_file;
  const int64_t drain_seconds;
  TraceExporter traces;
  const std::string backups;
  core::SystemClock clock;
  std::unique_ptr<storage::FileSystem> files;
  std::shared_ptr<tensor::BufferPool> pool;
  std::unique_ptr<hosts::Coordinator> coordinator;  ///< of several processes; else null
  storage::Store store;
  std::unique_ptr<device::Engine> own_engine;  ///< of one; else null
  device::Executor& engine;
  compile::Compiler compiler;
  storage::EntryFolder compile_records;
  warmup::Warmup warmup;
  quotas::Limits limits;
  arrays::ArrayStore arrays;
  uploads::UploadStore uploads;
  zarr::NodeStore zarr;
  registry::MeshRegistry meshes;
  registry::ProgramRegistry programs;
  sessions::SessionStore sessions;
  effects::EffectLog effect_log;
  effects::InfeedQueues infeeds;
  effects::CallbackStore callbacks;
  jobs::JobRunner runner;
  models::ModelStore models;
  outbound::PostPool posts;
  webhooks::Dispatcher deliveries;
  webhooks::WebhookStore webhooks;
  Services services;
  Periodic file_collector;
  Periodic collector;
  jobs::RetentionTime retention_time;
  Periodic retention;
  History history;
  Periodic trace_flush;
  StorageWatch storage_watch;
  Authenticator authenticate;
  quotas::RateLimiter rates;
  std::atomic<bool> is_recovered{false};
  std::unique_ptr<Server> server;
  std::optional<Periodic> sampler;  ///< asks the server
};

App::App(const AppOptions& options, Log& log, hosts::Network* hosts)
    : parts_(std::make_unique<Parts>(with_memory(options, hosts), log, hosts)) {
  const storage::RecoveryReport& report = parts_->store.recovery();
  log.info("recovered", {{"clean", report.was_clean},
                         {"requeued_jobs", report.requeued_jobs},
                         {"cancelled_jobs", report.cancelled_jobs},
                         {"lost_memory_arrays", report.lost_memory_arrays},
                         {"orphans", report.orphans}});
  for (const std::string& job : report.crashed_jobs) log.error("job", {{"job", job}, {"outcome", "crashed"}});
  for (const std::string& path : report.open_paths)
    log.warn("data_open_to_others", {{"path", path}, {"remedy", "its owner takes others' permissions away"}});
  warn_of_open_tokens(parts_->tokens_file, log);
}

App::~App() = default;

uint16_t App::start() {
  parts_->server->start();
  recover();
  parts_->log.info("listening", {{"port", parts_->server->port()},
                                 {"scheme", parts_->front.tls ? "https" : "http"},
                                 {"version", version()},
                                 {"devices", parts_->engine.options().device_count},
                                 {"processes", parts_->services.processes.count},
                                 {"threads", parts_->engine.threads()}});
  return parts_->server->port();
}

// With requests only when it is done: names and reservations are as they were before the first of them.
void App::recover() {
  Parts& parts = *parts_;
  // What the server has accepted it compiles again, whatever that takes.
  parts.compiler.count_work({.ledger = parts.memory, .refuses = false});
  const mesh::Processes processes = parts.services.processes;
  jobs::JobRunner::RecoverySources recovery{parts.programs, processes, nullptr, nullptr};
  recovery.encoder = [](const jobs::ResultForm& form) -> jobs::ResultEncoder {
    return [form](const jobs::JobResult& result) { return encode_result(result, form); };
  };
  recovery.read_old_row = [&parts, processes](const storage::JobRow& row) {
    return decode_old_job_row(row,
                              {parts.arrays, parts.programs, parts.meshes, parts.compiler, *parts.pool, processes});
  };
  parts.runner.recover(recovery);
  parts.deliveries.start();
  parts.models.recover({[&parts](const storage::ModelRow& row) {
                          return decode_model(
                              row.document, row.principal, row.name,
                              {parts.arrays, parts.programs, parts.compiler, *parts.pool, nullptr, row.program});
                        },
                        [](const storage::ModelRow& row) { return is_shared_model(row.document); }});
  parts.compiler.count_work({.ledger = parts.memory});
  parts.warmup.start([&log = parts.log](const warmup::WarmupStats& stats) {
    log.info("warmed_up", {{"compiled", stats.compiled}, {"records", stats.records}, {"seconds", stats.seconds}});
  });
  parts.is_recovered = true;
}

void App::reload() {
  parts_->reload_tokens();
  warn_of_open_tokens(parts_->tokens_file, parts_->log);
  parts_->reload_certificate();
}

bool App::is_responsive(std::chrono::milliseconds patience) const { return parts_->server->is_responsive(patience); }

bool App::stop() {
  parts_->log.info("draining", {});
  parts_->warmup.stop();
  parts_->server->begin_drain();
  bool jobs_ended = true;
  std::thread jobs([&] { jobs_ended = parts_->runner.drain(std::chrono::seconds(parts_->drain_seconds)); });
  const bool clean = parts_->server->stop();
  jobs.join();
  parts_->traces.finish(kLongestExport);
  parts_->log.info("stopped", {{"clean", clean}});
  if (!jobs_ended) {
    // A call into a library cannot be interrupted. Its job is back in the queue, and what is acknowledged is durable:
    // the process need not wait for it.
    parts_->log.flush();
    std::thread([] {
      std::this_thread::sleep_for(kLongestEnd);
      _exit(0);
    }).detach();
  }
  return clean;
}

}  // namespace meshd::api
