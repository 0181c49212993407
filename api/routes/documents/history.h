// What the server did in the last hour: a sample every ten seconds, in memory. The console draws it (GET /v1/history).
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "api/json/schema.h"
#include "service/core/clock.h"
#include "service/core/locked.h"

namespace meshd::api {

struct Services;
struct ServerMetrics;

/// The server at one moment. What counts, counts from its start.
struct HistorySample {
  core::WallTime time;
  int64_t requests = 0;
  int64_t jobs = 0, jobs_failed = 0, jobs_running = 0, jobs_waiting = 0;
  double busy_seconds = 0;                ///< of all devices together
  std::map<std::string, int64_t> memory;  ///< bytes held by account
  int64_t resident_bytes = 0;
};
/// Takes no lock for long and no disk.
HistorySample history_sample(Services& services, const ServerMetrics& metrics);

/// The last hour of samples. Any thread.
class History {
 public:
  static constexpr std::chrono::seconds kInterval{10};

  void add(HistorySample sample);
  /// Oldest first.
  [[nodiscard]] std::vector<HistorySample> samples() const;

 private:
  mutable core::Locked<std::deque<HistorySample>> samples_;
};

struct HistoryDocument {
  std::vector<HistorySample> samples;
};
template <>
Schema<HistoryDocument> make_schema();

/// Memory of the process, by the kernel's account.
struct ProcessMemory {
  int64_t resident_bytes = 0, virtual_bytes = 0;
};
ProcessMemory process_memory();
/// The accounts of the ledger, and that of results that are sent as files.
std::vector<core::MemoryLedger::Stats> memory_accounts(Services& services);
/// Memory that is held, by account: these, and those who count for themselves.
std::vector<std::pair<std::string, int64_t>> held_memory(Services& services);

}  // namespace meshd::api
