// Answers of runs: the JSON document, or the results alone as a file; and where the time went.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "api/codecs/runs/job_answer_codec.h"
#include "api/routes/arrays/array_file.h"
#include "api/routes/routes.h"

namespace meshd::api {

/// What a run's request took outside of the job: from its head to its handler (`receive`: the body, a thread), as JSON
/// (`decode`, `encode`), and in all. `other` is what no stage has: hand-offs between threads, for the most part.
struct RequestTimes {
  std::chrono::steady_clock::time_point received;
  std::chrono::steady_clock::time_point handled;
  std::chrono::steady_clock::time_point decoded;
  std::chrono::steady_clock::time_point done;
  std::chrono::steady_clock::time_point encoded;
};
/// Server-Timing of both, in milliseconds with four decimals; the stages add up to `total`.
std::string server_timing(const jobs::JobTimings& job, const RequestTimes& request);

/// The file that Accept prefers to JSON, checked before the run: results have to come with the answer, and .npy holds
/// one. Nothing: JSON. Throws not_acceptable.
std::optional<DataForm> results_file(const Request& request, const jobs::JobRequest& job);

/// Results as arrays named 0, 1, 2, ...; `Meshd-Answer` is the rest of the JSON answer where that has at most 4 KiB.
/// Throws not_acceptable for effects that do not fit into it and that nothing else keeps.
Response send_results(const Request& request, Services& services, const jobs::JobResult& result,
                      const jobs::ResultForm& form, DataForm file);

}  // namespace meshd::api
