// Bodies of POST /v1/run and POST /v1/sessions/{id}/jobs: decodes a job, from a client or from its row.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "api/json/schema.h"
#include "service/arrays/array_store.h"
#include "service/jobs/job_request.h"
#include "service/registry/registry.h"

namespace meshd::api {

/// What decoding a job looks things up in.
struct JobContext {
  arrays::ArrayStore& arrays;
  registry::ProgramRegistry& programs;
  compile::Compiler& compiler;
  tensor::BufferPool& pool;
  /// The mesh that the session was inside of; used where the body names none. Null: none.
  const mesh::Mesh* session_mesh = nullptr;
  mesh::Processes processes = {};  ///< labels of the devices
  /// A restart decodes what was accepted before: the program may have been deleted since, and an array that is not
  /// there is lost.
  bool was_accepted = false;
};

/// What a job's row keeps to decode it again: the body, with the session's mesh where there is one.
std::string kept_document(const std::string& body, const mesh::Mesh* session_mesh);
/// Body and session's mesh of a kept document.
std::pair<Json, std::optional<mesh::Mesh>> open_kept_document(const std::string& document);

/// How the response is encoded.
struct ResultForm {
  bool base64 = false;
  std::string result_tree;  ///< JSON with the number of each result at its place; empty: no tree
};

/// Decodes a body; every mistake at once (invalid_request with JSON Pointers). `session` from the path, or the body's
/// field where `session` is empty. Throws not_found for ids the principal does not see.
std::pair<jobs::JobRequest, ResultForm> decode_job(const Json& body, const std::string& principal,
                                                   const std::string& session, const JobContext& context);

/// Of the body of a run.
const SchemaBase& run_input_schema();

}  // namespace meshd::api
