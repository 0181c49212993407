#include "api/routes/documents/metrics_text.h"

#include <sys/resource.h>

#include <cstdio>
#include <filesystem>

#include "api/routes/documents/history.h"

namespace meshd::api {
namespace {

std::string number(double value) {
  char text[40];
  std::snprintf(text, sizeof(text), "%.10g", value);
  return text;
}

// Label values: backslash, quote and line feed escaped.
std::string label(std::string_view name, std::string_view value) {
  std::string out(name);
  out += "=\"";
  for (const char c : value) {
    if (c == '\\' || c == '"') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out + "\"";
}

class Text {
 public:
  void head(std::string_view name, std::string_view help, std::string_view type) {
    out_ += "# HELP " + std::string(name) + " " + std::string(help) + "\n# TYPE " + std::string(name) + " " +
            std::string(type) + "\n";
  }
  void sample(std::string_view name, const std::string& labels, double value) {
    out_ += std::string(name) + (labels.empty() ? "" : "{" + labels + "}") + " " + number(value) + "\n";
  }
  void gauge(std::string_view name, std::string_view help, double value) {
    head(name, help, "gauge");
    sample(name, "", value);
  }
  void counter(std::string_view name, std::string_view help, double value) {
    head(name, help, "counter");
    sample(name, "", value);
  }
  /// The series of one histogram, below a head.
  void series(std::string_view name, const std::string& labels, const core::Histogram& histogram) {
    const std::string base(name);
    int64_t total = 0;
    for (size_t i = 0; i < histogram.counts().size(); ++i) {
      total += histogram.counts()[i];
      const std::string bound = i < histogram.bounds().size() ? number(histogram.bounds()[i]) : "+Inf";
      sample(base + "_bucket", labels + (labels.empty() ? "" : ",") + label("le", bound), static_cast<double>(total));
    }
    sample(base + "_sum", labels, histogram.sum());
    sample(base + "_count", labels, static_cast<double>(histogram.count()));
  }
  void histogram(std::string_view name, std::string_view help, const core::Histogram& values) {
    head(name, help, "histogram");
    series(name, "", values);
  }
  std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

void http_metrics(Text& out, const ServerMetrics& metrics) {
  out.head("meshd_http_requests_total", "Requests answered, by operation (of /openapi.json) and status code.",
           "counter");
  for (const auto& [key, count] : metrics.requests) {
    out.sample("meshd_http_requests_total",
               label("operation", key.operation) + "," + label("code", std::to_string(key.code)),
               static_cast<double>(count));
  }
  out.head("meshd_http_request_duration_seconds", "Time from a complete head to the end of the answer, by operation.",
           "histogram");
  for (const auto& [operation, durations] : metrics.durations)
    out.series("meshd_http_request_duration_seconds", label("operation", operation), durations);
  out.gauge("meshd_http_requests_in_flight", "Requests being handled now.", static_cast<double>(metrics.in_flight));
  out.gauge("meshd_http_handlers", "Handlers that have not ended, those that wait without a thread included.",
            static_cast<double>(metrics.handlers));
  out.gauge("meshd_http_worker_threads", "Threads for handlers.", static_cast<double>(metrics.worker_threads));
  out.head("meshd_http_connections", "Open connections, by what they do.", "gauge");
  out.sample("meshd_http_connections", label("state", "idle"), static_cast<double>(metrics.connections_idle));
  out.sample("meshd_http_connections", label("state", "reading"), static_cast<double>(metrics.connections_reading));
  out.sample("meshd_http_connections", label("state", "working"), static_cast<double>(metrics.connections_working));
  out.sample("meshd_http_connections", label("state", "writing"), static_cast<double>(metrics.connections_writing));
  out.sample("meshd_http_connections", label("state", "events"), static_cast<double>(metrics.event_streams));
  out.head("meshd_tls_handshakes_total", "TLS handshakes, by how they ended.", "counter");
  out.sample("meshd_tls_handshakes_total", label("outcome", "done"), static_cast<double>(metrics.handshakes_done));
  out.sample("meshd_tls_handshakes_total", label("outcome", "failed"), static_cast<double>(metrics.handshakes_failed));
  out.sample("meshd_tls_handshakes_total", label("outcome", "late"), static_cast<double>(metrics.handshakes_late));
  out.counter("meshd_http_request_body_bytes_total", "Bytes of request bodies taken in.",
              static_cast<double>(metrics.bytes_in));
  out.counter("meshd_http_response_body_bytes_total", "Bytes of answers sent.", static_cast<double>(metrics.bytes_out));
  out.head("meshd_rejected_total", "Requests refused before a handler ran, by error code.", "counter");
  for (const auto& [reason, count] : metrics.rejected)
    out.sample("meshd_rejected_total", label("reason", reason), static_cast<double>(count));
  out.head("meshd_http_refusals_total", "Answers of 429 and 503, by error code, before a handler ran or by it.",
           "counter");
  for (const auto& [code, count] : metrics.refused)
    out.sample("meshd_http_refusals_total", label("code", code), static_cast<double>(count));
}

void job_metrics(Text& out, Services& services) {
  const jobs::JobCounters counters = services.jobs.counters();
  out.head("meshd_jobs_total", "Jobs that are over, by how they ended.", "counter");
  out.sample("meshd_jobs_total", label("state", "done"), static_cast<double>(counters.done));
  out.sample("meshd_jobs_total", label("state", "failed"), static_cast<double>(counters.failed));
  out.sample("meshd_jobs_total", label("state", "cancelled"), static_cast<double>(counters.cancelled));
  out.gauge("meshd_job_queue_depth", "Accepted jobs that wait for a thread.", static_cast<double>(counters.waiting));
  out.gauge("meshd_jobs_running", "Jobs that are running now.", static_cast<double>(counters.running));
  out.histogram("meshd_job_queue_seconds", "Time that jobs waited for their devices.", counters.queue_seconds);
  out.histogram("meshd_job_run_seconds", "Time that jobs ran on their devices.", counters.run_seconds);
  out.histogram("meshd_effect_streamed_seconds",
                "Time from an effect of a streaming job to its commit: the first effect of each batch.",
                counters.streamed_seconds);
  out.histogram("meshd_job_commit_seconds", "Time that jobs took to commit.", counters.commit_seconds);
  out.histogram("meshd_job_seconds", "Time of jobs from accepted to acknowledged.", counters.job_seconds);
  out.counter("meshd_effects_appended_total", "Effects of finished jobs.",
              static_cast<double>(counters.effects_appended));
  const device::EngineStats engine = services.engine.stats();
  out.head("meshd_device_queue_depth", "Runs that are in a device's queue, the running one included.", "gauge");
  for (size_t d = 0; d < engine.device_queue.size(); ++d) {
    out.sample("meshd_device_queue_depth", label("device", std::to_string(d)),
               static_cast<double>(engine.device_queue[d]));
  }
  out.head("meshd_device_busy_seconds_total", "Time a device's shards were worked on.", "counter");
  for (size_t d = 0; d < engine.device_busy.size(); ++d) {
    out.sample("meshd_device_busy_seconds_total", label("device", std::to_string(d)),
               std::chrono::duration<double>(engine.device_busy[d]).count());
  }
  const compile::CompileCounters compiled = services.compiler.counters();
  out.head("meshd_compile_stages_total", "Stages of compilation, by stage and whether a cache had the result.",
           "counter");
  const auto stage = [&](std::string_view name, int64_t made, int64_t hits) {
    out.sample("meshd_compile_stages_total", label("stage", name) + "," + label("cache", "miss"),
               static_cast<double>(made));
    out.sample("meshd_compile_stages_total", label("stage", name) + "," + label("cache", "hit"),
               static_cast<double>(hits));
  };
  stage("parse", compiled.parse_count, compiled.parse_hits);
  stage("lower", compiled.lower_count, compiled.lower_hits);
  stage("bind", compiled.bind_count, compiled.bind_hits);
}

void warmup_metrics(Text& out, const warmup::WarmupStats& stats) {
  out.head("meshd_warmup_lowerings_total",
           "Lowerings that runs asked for first: made by the warm-up of the start (hit), or made while the run waited "
           "(miss).",
           "counter");
  out.sample("meshd_warmup_lowerings_total", label("outcome", "hit"), static_cast<double>(stats.hits));
  out.sample("meshd_warmup_lowerings_total", label("outcome", "miss"), static_cast<double>(stats.misses));
  out.counter("meshd_warmup_compiled_total", "Records that the warm-up of the start has compiled.",
              static_cast<double>(stats.compiled));
  out.counter("meshd_warmup_unusable_total", "Records that were removed because they could not be used.",
              static_cast<double>(stats.unusable));
  out.gauge("meshd_warmup_records", "Records of programs for the next start.", static_cast<double>(stats.records));
  out.gauge("meshd_warmup_record_bytes", "Bytes of these records on the disk.",
            static_cast<double>(stats.record_bytes));
  out.gauge("meshd_warmup_running", "1 while the warm-up of the start compiles.", stats.is_over ? 0 : 1);
}

void webhook_metrics(Text& out, const webhooks::DispatcherCounters& counters) {
  out.head("meshd_webhook_attempts_total", "Deliveries to webhooks, by what the receiver did.", "counter");
  out.sample("meshd_webhook_attempts_total", label("outcome", "accepted"), static_cast<double>(counters.delivered));
  out.sample("meshd_webhook_attempts_total", label("outcome", "failed"), static_cast<double>(counters.failed));
  out.counter("meshd_webhooks_disabled_total", "Webhooks that were given up.", static_cast<double>(counters.disabled));
  out.gauge("meshd_webhooks", "Active webhooks.", static_cast<double>(counters.active));
}

/// What each account of memory holds: those of the ledger, that of results that are sent as files, and those who count
/// for themselves.
void memory_metrics(Text& out, Services& services) {
  const auto accounts = memory_accounts(services);
  const auto sample = [&](std::string_view name, std::string_view account, int64_t value) {
    out.sample(name, label("account", account), static_cast<double>(value));
  };
  out.head("meshd_memory_held_bytes", "Memory that is held, by account.", "gauge");
  for (const auto& [account, bytes] : held_memory(services)) sample("meshd_memory_held_bytes", account, bytes);
  out.head("meshd_memory_limit_bytes", "Memory that an account of the ledger may hold.", "gauge");
  for (const auto& account : accounts) sample("meshd_memory_limit_bytes", account.name, account.limit_bytes);
  out.head("meshd_memory_peak_bytes", "The most that an account of the ledger has held at once.", "gauge");
  for (const auto& account : accounts) sample("meshd_memory_peak_bytes", account.name, account.peak_bytes);
  out.head("meshd_memory_refused_total", "Reservations that an account of the ledger had no memory for.", "counter");
  for (const auto& account : accounts) sample("meshd_memory_refused_total", account.name, account.refused);
  out.gauge("meshd_memory_accounts_limit_bytes",
            "Memory that all accounts of the ledger but 'files' may hold together.",
            static_cast<double>(services.memory->limit_bytes()));
}

void storage_metrics(Text& out, Services& services, const storage::StoreHealth& health) {
  const arrays::ArrayUsage usage = services.arrays.usage();
  out.head("meshd_arrays_bytes", "Bytes of arrays, by where they are.", "gauge");
  out.sample("meshd_arrays_bytes", label("tier", "memory"), static_cast<double>(usage.memory_bytes));
  out.sample("meshd_arrays_bytes", label("tier", "disk"), static_cast<double>(usage.disk_bytes));
  out.gauge("meshd_sessions_open", "Sessions that had work since the start.",
            static_cast<double>(services.sessions.open_count()));
  const storage::CatalogCounters& catalog = health.catalog;
  out.histogram("meshd_db_commit_seconds", "Time of one commit, which may gather many transactions.",
                catalog.commit_seconds);
  out.counter("meshd_db_transactions_total", "Transactions that became durable.",
              static_cast<double>(catalog.transactions));
  out.gauge("meshd_wal_bytes", "Bytes of the write-ahead log.", static_cast<double>(catalog.wal_bytes));
  out.gauge("meshd_disk_free_bytes", "Room that is left on the data folder's disk.",
            static_cast<double>(health.disk_free_bytes));
  const auto pool = services.pool.stats();
  out.gauge("meshd_pool_in_use_bytes", "Bytes of buffers in use.", static_cast<double>(pool.in_use_bytes));
  out.gauge("meshd_pool_kept_bytes", "Bytes of released buffers that are kept for reuse.",
            static_cast<double>(pool.kept_bytes));
  out.counter("meshd_pool_fresh_total", "Buffers whose memory came from the system, for none that was kept fitted.",
              static_cast<double>(pool.fresh_allocations));
}

void process_metrics(Text& out, const ProcessFacts& facts) {
  out.head("meshd_build_info", "The version that runs, and the commit that it was made of.", "gauge");
  const std::string commit = facts.commit.empty() ? "" : "," + label("commit", facts.commit);
  out.sample("meshd_build_info", label("version", facts.version) + commit, 1);
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const double cpu = static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
                     static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e-6;
  out.counter("process_cpu_seconds_total", "Processor time of the process.", cpu);
  const ProcessMemory memory = process_memory();
  out.gauge("process_resident_memory_bytes", "Memory that the process holds.",
            static_cast<double>(memory.resident_bytes));
  out.gauge("process_virtual_memory_bytes", "Address space of the process.", static_cast<double>(memory.virtual_bytes));
  int64_t descriptors = 0;
  std::error_code ignored;
  for (auto it = std::filesystem::directory_iterator("/proc/self/fd", ignored);
       it != std::filesystem::directory_iterator(); it.increment(ignored))
    ++descriptors;
  out.gauge("process_open_fds", "Open file descriptors.", static_cast<double>(descriptors));
  out.counter("meshd_log_lines_dropped_total",
              "Log lines given up: their queue was full, or they could not be written.",
              static_cast<double>(facts.dropped_log_lines()));
  if (facts.ranks) {
    out.head("meshd_rank_round_trip_seconds", "The last round trip of a message to another process of the server.",
             "gauge");
    const RankFacts ranks = facts.ranks();
    const std::vector<std::chrono::nanoseconds>& times = ranks.round_trips;
    for (size_t rank = 1; rank < times.size(); ++rank) {
      out.sample("meshd_rank_round_trip_seconds", label("rank", std::to_string(rank)),
                 std::chrono::duration<double>(times[rank]).count());
    }
    out.head("meshd_rank_array_bytes", "Shards of arrays that another process of the server keeps in memory.", "gauge");
    for (size_t rank = 1; rank < ranks.kept_bytes.size(); ++rank) {
      out.sample("meshd_rank_array_bytes", label("rank", std::to_string(rank)),
                 static_cast<double>(ranks.kept_bytes[rank]));
    }
  }
  if (facts.spans) {
    const auto [exported, dropped] = facts.spans();
    out.head("meshd_trace_spans_total", "Spans of requests and jobs, by whether the collector has taken them.",
             "counter");
    out.sample("meshd_trace_spans_total", label("outcome", "exported"), static_cast<double>(exported));
    out.sample("meshd_trace_spans_total", label("outcome", "dropped"), static_cast<double>(dropped));
  }
}

}  // namespace

std::string metrics_text(Services& services, const ProcessFacts& facts) {
  Text out;
  http_metrics(out, facts.metrics());
  job_metrics(out, services);
  warmup_metrics(out, services.warmup.stats());
  webhook_metrics(out, services.deliveries.counters());
  memory_metrics(out, services);
  storage_metrics(out, services, facts.storage().health);
  process_metrics(out, facts);
  return out.take();
}

}  // namespace meshd::api
