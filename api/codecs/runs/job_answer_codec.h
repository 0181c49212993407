// Encodes the response of a run, and a job for GET.
#pragma once

#include <string>

#include "api/codecs/runs/job_request_codec.h"
#include "api/json/schema.h"
#include "service/jobs/job_runner.h"

namespace meshd::api {

/// The response of a run: results, effects, shardings, warnings, statistics.
std::string encode_result(const jobs::JobResult& result, const jobs::ResultForm& form);

/// A job as GET shows it.
struct JobDocument {
  const jobs::JobView& view;
  bool with_answer = false;  ///< and with the environment
};
template <>
Schema<JobDocument> make_schema();

/// The data of `event: progress`.
struct JobProgressEvent {
  const jobs::JobView& view;  ///< has progress
};
template <>
Schema<JobProgressEvent> make_schema();

/// Of the answer of a run.
const SchemaBase& run_answer_schema();

}  // namespace meshd::api
