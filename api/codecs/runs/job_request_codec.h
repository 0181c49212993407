// Bodies of POST /v1/run and POST /v1/sessions/{id}/jobs: decodes a job. A body that came before is decoded from what
// it was then (DecodedRun).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/codecs/files/form_files.h"
#include "api/codecs/mesh_choice.h"
#include "api/codecs/value.h"
#include "api/json/schema.h"
#include "service/arrays/array_store.h"
#include "service/jobs/job_request.h"
#include "service/registry/registry.h"

namespace meshd::api {

inline const std::vector<std::string_view> kEffectModes{to_string(storage::EffectMode::kAtomic),
                                                        to_string(storage::EffectMode::kStreaming)};
/// What one of these words means.
inline storage::EffectMode effect_mode_of(std::string_view word) {
  return storage::effect_mode_from(word).value_or(storage::EffectMode::kAtomic);
}

/// What decoding a job looks things up in.
struct JobContext {
  arrays::ArrayStore& arrays;
  registry::ProgramRegistry& programs;
  compile::Compiler& compiler;
  tensor::BufferPool& pool;
  MeshFinder& meshes;
  /// The mesh that the session was inside of; used where the body names none. Null: none.
  const mesh::Mesh* session_mesh = nullptr;
  mesh::Processes processes = {};  ///< labels of the devices
  /// Of a row that an older build wrote (old_job_row.h): the program may have been deleted since, and an array that is
  /// not there is lost.
  bool was_accepted = false;
  FormFiles* files = nullptr;                 ///< of the form that the request is; null: it is none
  core::MemoryReservation* memory = nullptr;  ///< of the request, for a program that is an artifact; null: not counted
  /// The id of the array that a job makes; empty: arguments do not name jobs.
  std::function<std::string(const JobResultRef&)> result_array = {};
};

/// A body that was decoded: all that its bytes alone say. Immutable.
struct DecodedRun {
  /// An argument: a value of the body, or what it names.
  struct Source {
    std::string pointer;
    std::optional<tensor::DenseValue> value;
    std::optional<PartRef> part;
    std::optional<std::string> array;
    std::optional<std::vector<arrays::Slice>> slices;
    std::optional<JobResultRef> of_job = {};
  };
  jobs::JobRequest request;                             ///< without program and arguments
  std::weak_ptr<const compile::ParsedProgram> program;  ///< the compiler's cache keeps it
  std::vector<Source> arguments;
};

/// Decodes a body; every mistake at once (invalid_request with JSON Pointers). `session` from the path, or the body's
/// field where `session` is empty. Throws not_found for ids the principal does not see.
///
/// `again` (null: not wanted, nothing is copied for it): set where the same body means the same next time, but for what
/// it names (see decode_again).
jobs::JobRequest decode_job(const Json& body, const std::string& principal, const std::string& session,
                            const JobContext& context, std::shared_ptr<DecodedRun>* again = nullptr);

/// The request of a body that was decoded before for the same principal: programs and arrays are looked up again,
/// values are copied. Nothing when the program has left the compiler's cache. Throws as decode_job.
std::optional<jobs::JobRequest> decode_again(const DecodedRun& run, const JobContext& context);

/// Of the body of a run.
const SchemaBase& run_input_schema();

}  // namespace meshd::api
