// Rows of jobs that builds before schema 16 accepted: they hold the body of the request, as the API had it, in place of
// the stored form (service/jobs/stored/stored_job.h). Nothing writes them any more; jobs that wait in a data folder of
// that time are read here when it is opened.
#pragma once

#include "api/codecs/runs/job_request_codec.h"
#include "storage/rows/rows.h"

namespace meshd::api {

/// Where what such a row names is looked up.
struct OldJobSources {
  arrays::ArrayStore& arrays;
  registry::ProgramRegistry& programs;
  registry::MeshRegistry& meshes;
  compile::Compiler& compiler;
  tensor::BufferPool& pool;
  mesh::Processes processes;
};

/// The request of a row: the body alone, or
///   {"session_mesh": MESH, "meshes": [MESH], "files": [{"part", "filename", "media_type", "base64"}], "body": BODY}
/// where the session had a mesh, the body named meshes by their ids, or the request was a form with files. Throws what
/// decode_job throws.
jobs::JobRequest decode_old_job_row(const storage::JobRow& row, const OldJobSources& sources);

}  // namespace meshd::api
