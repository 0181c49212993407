#include "api/routes/documents/history.h"

#include <unistd.h>

#include <fstream>
#include <utility>

#include "api/json/schema_map.h"
#include "api/routes/services.h"
#include "api/server/server.h"

namespace meshd::api {
namespace {

constexpr size_t kSamples = std::chrono::hours(1) / History::kInterval;

}  // namespace

template <>
Schema<HistorySample> make_schema() {
  using Doc = HistorySample;
  return {"HistorySample",
          {{"time", &Doc::time},
           {"requests", &Doc::requests, {.low = 0}},
           {"jobs", &Doc::jobs, {.low = 0}},
           {"jobs_failed", &Doc::jobs_failed, {.low = 0}},
           {"jobs_running", &Doc::jobs_running, {.low = 0}},
           {"jobs_waiting", &Doc::jobs_waiting, {.low = 0}},
           {"busy_seconds", &Doc::busy_seconds, {.low = 0}},
           {"memory", &Doc::memory, {.low = 0}},
           {"resident_bytes", &Doc::resident_bytes, {.low = 0}}}};
}

template <>
Schema<HistoryDocument> make_schema() {
  using Doc = HistoryDocument;
  return {"History",
          {{"interval_seconds", [](const Doc&) { return int64_t{History::kInterval.count()}; }, {.low = 1}},
           {"samples", &Doc::samples}}};
}

ProcessMemory process_memory() {
  std::ifstream statm("/proc/self/statm");
  int64_t virtual_pages = 0, resident_pages = 0;
  statm >> virtual_pages >> resident_pages;
  const int64_t page = sysconf(_SC_PAGESIZE);
  return {resident_pages * page, virtual_pages * page};
}

std::vector<core::MemoryLedger::Stats> memory_accounts(Services& services) {
  const auto of_ledger = services.memory->stats();
  std::vector<core::MemoryLedger::Stats> out(of_ledger.begin(), of_ledger.end());
  out.push_back(services.jobs.file_memory());
  return out;
}

std::vector<std::pair<std::string, int64_t>> held_memory(Services& services) {
  std::vector<std::pair<std::string, int64_t>> out;
  for (const auto& account : memory_accounts(services)) out.emplace_back(account.name, account.held_bytes);
  out.emplace_back("jobs", services.engine.stats().planned_bytes);
  out.emplace_back("arrays", services.arrays.usage().memory_bytes);
  out.emplace_back("recycled", services.pool.stats().kept_bytes);
  return out;
}

HistorySample history_sample(Services& services, const ServerMetrics& metrics) {
  HistorySample out;
  out.time = services.clock.wall();
  for (const auto& [key, count] : metrics.requests) out.requests += count;
  const jobs::JobCounters jobs = services.jobs.counters();
  out.jobs = jobs.done + jobs.failed + jobs.cancelled;
  out.jobs_failed = jobs.failed;
  out.jobs_running = jobs.running;
  out.jobs_waiting = jobs.waiting;
  for (const std::chrono::nanoseconds busy : services.engine.stats().device_busy)
    out.busy_seconds += std::chrono::duration<double>(busy).count();
  for (auto& [account, bytes] : held_memory(services)) out.memory.emplace(std::move(account), bytes);
  out.resident_bytes = process_memory().resident_bytes;
  return out;
}

void History::add(HistorySample sample) {
  samples_.with([&](std::deque<HistorySample>& samples) {
    samples.push_back(std::move(sample));
    if (samples.size() > kSamples) samples.pop_front();
  });
}

std::vector<HistorySample> History::samples() const {
  return samples_.with([](const std::deque<HistorySample>& samples) {
    return std::vector<HistorySample>(samples.begin(), samples.end());
  });
}

}  // namespace meshd::api
