// The options of `meshd serve` with their defaults.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "api/app/serving/log.h"
#include "service/quotas/limits.h"

namespace meshd::api {

struct AppOptions {
  std::string listen = "127.0.0.1:8080";
  std::string data = "data";
  std::string backups;  ///< folder of backups; empty: DATA/backups
  int64_t devices = 8;
  int64_t processes = 1;                       ///< labels over the devices, in equal runs; divides them
  std::string hosts = "auto";                  ///< "off", "mpi", "auto": mpi when a launcher started several ranks
  std::vector<int> lost_ranks;                 ///< their disks are gone for good
  bool mesh_stack = true;                      ///< sessions may have a current mesh (behaviour M27)
  int threads = 0;                             ///< of the device pool; 0: as many as cores
  std::vector<std::string> disabled_passes;    ///< names of compile::kPlanPasses
  int64_t memory_bytes = 0;                    ///< for all of the process; 0: what the container or the machine has
  int64_t memory_limit_bytes = 0;              ///< of running jobs together; 0: 3/4 of memory_bytes
  int64_t array_memory_bytes = 0;              ///< arrays kept in memory; 0: a quarter of memory_bytes
  int64_t warmup_bytes = int64_t{64} << 20;    ///< of records of programs to compile again at a start; 0: none
  int64_t quota_bytes = int64_t{4} << 30;      ///< of one array
  int64_t upload_seconds = 86'400;             ///< an upload that gets no byte for so long is deleted
  int64_t pending_seconds = 900;               ///< a pending array that gets no part for so long is deleted
  int64_t keep_jobs = 10'000;                  ///< finished jobs of each principal; 0: any number
  int64_t keep_jobs_seconds = 7 * 86'400;      ///< a finished job is deleted after so long; 0: never
  int64_t keep_jobs_bytes = int64_t{1} << 30;  ///< answers of finished jobs of each principal; 0: any number
  int64_t keep_gone_arrays = 10'000;           ///< rows of donated or lost arrays of each principal; 0: any number
  int64_t keep_gone_seconds = 7 * 86'400;      ///< such a row is deleted after so long; 0: never
  std::vector<std::string> allowed_hosts;      ///< names of the server, beside its address and localhost
  std::vector<std::string> webhook_networks;   ///< that webhooks may reach beside public addresses: "10.0.0.0/8"
  std::vector<std::string> cors_origins;       ///< origins whose pages may use the server
  bool insecure = false;                       ///< may listen beyond loopback without tokens
  quotas::Limits principal;                    ///< what each may have; array_bytes 0: see App
  std::string tokens_file;                     ///< see token_file.h; empty: no token needed
  std::string tls_certificate;                 ///< PEM file with the certificate and its chain; empty: plain HTTP
  std::string tls_key;                         ///< PEM file with the certificate's key; both or neither
  std::string otlp_endpoint;     ///< of a collector of traces: http://127.0.0.1:4318/v1/traces; empty: none
  std::string security_contact;  ///< a URI for /.well-known/security.txt; empty: there is none
  int64_t drain_seconds = 20;    ///< from SIGTERM until what still runs is put back into the queue
  int64_t idle_seconds = 15;     ///< a kept connection without a request is closed after so long
  LogFormat log_format = LogFormat::kText;
  std::string log_level = "info";
  bool log_compiles = false;                         ///< compiles are logged as warnings, else for debugging
  int64_t step_budget = 1'000'000'000;               ///< steps that a job may execute
  int64_t operation_budget = 1'000'000'000'000'000;  ///< operations that a job may execute; 0: any number
  int64_t byte_budget = 1'000'000'000'000'000;       ///< bytes that its steps may read and write; 0: any number
};

}  // namespace meshd::api
