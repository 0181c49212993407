// Bodies of POST /v1/run and POST /v1/sessions/{id}/jobs, and their answers.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "api/codecs/infeed_codec.h"
#include "api/codecs/mesh_codec.h"
#include "api/codecs/value.h"
#include "api/json/schema.h"
#include "service/arrays/array_store.h"
#include "service/compile/pipeline.h"
#include "service/jobs/job_runner.h"
#include "service/registry/registry.h"
#include "service/tensor/buffer.h"
#include "storage/rows/rows.h"

namespace meshd::api {

/// Inline arrays have many values; the body limit keeps them in bounds.
extern const JsonLimits kJobLimits;

/// What decoding a job looks things up in.
struct JobContext {
  arrays::ArrayStore& arrays;
  registry::ProgramRegistry& programs;
  compile::Compiler& compiler;
  tensor::BufferPool& pool;
  /// The mesh that the session was inside of; used where the body names none. Null: none.
  const mesh::Mesh* session_mesh = nullptr;
  mesh::Processes processes = {};  ///< labels of the devices
  /// A restart decodes what was accepted before: the program may have been deleted since.
  bool was_accepted = false;
};

/// What a job's row keeps to decode it again: the body, with the session's mesh where there is one.
std::string kept_document(const std::string& body, const mesh::Mesh* session_mesh);
/// Body and session's mesh of a kept document.
std::pair<Json, std::optional<mesh::Mesh>> open_kept_document(const std::string& document);

/// How the answer is to be encoded.
struct ResultForm {
  bool base64 = false;
  std::string result_tree;  ///< JSON with the number of each result at its place; empty: no tree
};

/// Decodes a body; every mistake at once (invalid_request with JSON Pointers). `session` from the path, or the body's
/// field where `session` is empty. Throws not_found for ids the principal does not see.
std::pair<jobs::JobRequest, ResultForm> decode_job(const Json& body, const std::string& principal,
                                                   const std::string& session, const JobContext& context);

/// The trees that a stored program was registered with, as JSON; nothing where there is none.
struct ProgramTrees {
  std::optional<Json> arguments, results;
};

/// Fields that mean the same wherever a program is placed: `mesh`, `meshes`, `in_shardings` and `out_shardings`.
struct AssignmentInput {
  const Json* mesh = nullptr;
  const Json* meshes = nullptr;
  const Json* in_shardings = nullptr;
  const Json* out_shardings = nullptr;
};
template <typename In>
std::vector<Field<In>> assignment_fields() {
  const Rules shardings{.like = json_type<std::vector<Nullable<ShardingInput>>>()};
  return {{"mesh", &In::mesh, {.like = json_type<MeshInput>()}},
          {"meshes", &In::meshes, {.like = map_of<MeshInput>()}},
          {"in_shardings", &In::in_shardings, shardings},
          {"out_shardings", &In::out_shardings, shardings}};
}
/// Notes every mistake in them. With trees, shardings are prefixes of them.
void read_assignment(const AssignmentInput& in, jobs::JobRequest& out, core::Diagnostics& wrong,
                     const ProgramTrees& trees = {});

/// Format of a program's text: the compiler says which it knows.
struct ProgramFormat {
  std::string word;
};
template <>
struct JsonCodec<ProgramFormat> {
  static JsonType type() { return {.kind = JsonType::Kind::kString, .words = {"stablehlo"}}; }
  static bool read(const Json& json, const Place& place, ProgramFormat& out) {
    return JsonCodec<std::string>::read(json, {json_type<std::string>(), place.pointer, place.wrong}, out.word);
  }
};

/// The answer of a run: results, effects, shardings, warnings, statistics.
std::string encode_result(const jobs::JobResult& result, const ResultForm& form);

/// Something a program told the outside.
struct EffectDocument {
  int64_t sequence = 0;
  std::string effect, name;
  bool ordered = false;
  std::string job;  ///< empty: none
  int64_t shard = 0, point = 0, device = 0;
  int64_t number = 0;  ///< 0: in no queue
  std::vector<tensor::DenseValue> values;
  bool base64 = false;
};
template <>
const Schema<EffectDocument>& schema();
/// A log entry.
EffectDocument effect_document(const storage::EffectRow& row, bool base64);

/// A callback request that a program asks its client.
struct QuestionDocument {
  const effects::SessionCallback& asked;
  bool base64 = false;

  /// Who asks: a job, or a pending array for its parts; the other is empty.
  [[nodiscard]] std::string_view job() const {
    return effects::asks_for_parts(asked) ? "" : std::string_view(asked.job);
  }
  [[nodiscard]] std::string_view array() const {
    return effects::asks_for_parts(asked) ? std::string_view(asked.job) : "";
  }
};
template <>
const Schema<QuestionDocument>& schema();

/// A job as GET shows it.
struct JobDocument {
  const jobs::JobView& view;
  bool with_answer = false;
};
template <>
const Schema<JobDocument>& schema();

/// Of the body of a run, and of its answer.
const SchemaBase& run_input_schema();
const SchemaBase& run_answer_schema();

}  // namespace meshd::api
