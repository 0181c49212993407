// The stored form of a job's request: what its row keeps so that the job runs again after a restart. It belongs to this
// folder, whatever the bodies of the API look like: names are resolved, defaults are left out, and a version says how
// it is to be read.
//
//   document  one line of JSON: program, placement, arguments by reference, options. A value is its type and where its
//             bytes are; a stored array is its id.
//   bytes     the bytes of values and of a program's text that came with the request, one behind the other: up to
//             kMostInRow in the row behind the document, else in a blob of their own (storage::JobRow::bytes).
//
// Example: x + 1 with x = float32[2] of the request and a program that is stored:
//   {"version":1,"program":{"id":"prog_9c.."},"arguments":[{"dtype":"float32","dims":[2],"at":0}],"results":"inline"}
//   and 8 bytes
//
// A change that older builds would misread is a new version: read_stored_job knows every version that was ever written.
// Fields may be added within a version when to leave them out means what it did before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "service/arrays/array_store.h"
#include "service/compile/pipeline.h"
#include "service/core/clock.h"
#include "service/jobs/job_request.h"
#include "service/mesh/processes.h"
#include "service/registry/registry.h"
#include "service/tensor/buffer.h"
#include "storage/store.h"

namespace meshd::jobs {

/// Of what is written now. Rows of version 0 hold a body of the API: jobs that builds before schema 16 accepted.
inline constexpr int64_t kStoredJobVersion = 1;

/// So many bytes are kept in the row; more are a blob. A blob costs a file and two syncs, a row has its bytes copied
/// into the log and from there into the database, by one thread. Jobs a second (tests/bench/jobs_bench.py; a busy disk,
/// so that the ratios count), the row's and the blob's:
///
///                 64 KiB      256 KiB     512 KiB     1 MiB       4 MiB
///   1 client      133  57     111  51     73  57      55  64      8  16
///   8 clients     391  568    177  413    74  257     57  228     7  39
///
/// A client alone is slower with blobs below 1 MiB, several are faster from 64 KiB on. Where this is, nobody is slower
/// than with all bytes of the body in the row, as base64 (1 client: 147, 96, 38, 35, 5).
inline constexpr int64_t kMostInRow = int64_t{256} << 10;

/// What messages call them where they do not fit.
inline constexpr std::string_view kWhatIsKept = "what the request brings, which the job keeps until it is over,";

/// The stored form of one request.
struct StoredJob {
  std::string document;
  std::vector<std::span<const std::byte>> bytes;  ///< views of the request
  int64_t byte_count = 0;
};

/// The stored form of a request, without what has a column of its own (id, session, deadline, idempotency key).
StoredJob to_stored_job(const JobRequest& request);

/// Puts it into the row, and its bytes into the row or into a blob, which is durable when this returns and is to be
/// kept once the row is. Throws as storage::PendingBlobs.
storage::PendingBlobs keep_stored_job(const StoredJob& job, storage::JobRow& row, storage::Store& store,
                                      const core::Clock& clock);

/// Where the things are that a stored job refers to.
struct StoredJobSources {
  storage::Store& store;
  arrays::ArrayStore& arrays;
  registry::ProgramRegistry& programs;
  compile::Compiler& compiler;
  tensor::BufferPool& pool;
  mesh::Processes processes;
};

/// The request of a row of version 1 and later. Throws array_lost for an array that is not there any more,
/// dependency_failed where a job before it was to make it and did not, storage_failed for bytes that cannot be read,
/// internal for a document that this build cannot read.
JobRequest read_stored_job(const storage::JobRow& row, const StoredJobSources& sources);

}  // namespace meshd::jobs
