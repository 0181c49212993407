// Rows of the database as plain structs. Documents are JSON text, opaque to storage.
// An absent time is std::nullopt, an absent reference the empty string.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "service/core/clock.h"
#include "storage/blobs/blob_store.h"
#include "storage/rows/job_states.h"

namespace meshd::storage {

/// Content is interned once by id; visibility is by principal.
struct MeshRow {
  std::string id;
  std::string principal;
  std::string document;
  core::WallTime created;  ///< when this principal first posted it
};

struct ProgramRow {
  std::string id;
  std::string principal;
  std::string format;
  std::string text;      ///< left empty in lists: it may be 64 MiB
  std::string document;  ///< of the content: trees
  core::WallTime created;
  std::string name = {};  ///< this principal's own, as is `doc`
  std::string doc = {};
};

enum class ArrayState {
  kPending,  ///< made, bytes not (all) there
  kReady,
  kDonated,  ///< consumed by a job: data 410
  kLost,     ///< was in memory only, or damaged: data 410 with the reason
};
enum class Durability { kDurable, kMemory };

/// A deleted array has no row.
struct ArrayRow {
  std::string id;
  std::string principal;
  std::string session;
  std::string name;
  std::string dtype;
  std::vector<int64_t> shape;  ///< global
  std::string mesh;            ///< id of a mesh whose content is kept while an array names it (Transaction::keep_mesh)
  std::string sharding;        ///< text that service/sharding writes and reads
  Durability durability = Durability::kDurable;
  ArrayState state = ArrayState::kPending;
  int64_t version = 1;
  int64_t bytes = 0;
  bool holds_name = false;  ///< no other array of the principal that has data may have its name
  bool committed = false;   ///< placed by the user, as opposed to free to move
  std::string reserved_by;  ///< job that was accepted with this array donated
  std::string reason;       ///< why it is lost, or the job that took it
  core::WallTime created;
  std::string attributes = {};  ///< JSON, of the Zarr client that wrote it; empty: none
};

/// A Zarr group that a client has described. Groups without a row follow from the names of arrays.
struct ZarrGroupRow {
  std::string path;        ///< of the group: a prefix of names, without the slash; empty: the root
  std::string attributes;  ///< JSON
};

/// One distinct shard of a durable array.
struct ShardRow {
  std::string array;
  int64_t index = 0;  ///< shard index
  BlobRef blob;
};

/// A body that comes in several requests. Its request and result are opaque to storage.
struct UploadRow {
  std::string id;
  std::string principal;
  std::string request;            ///< what the body is for
  std::optional<int64_t> length;  ///< of the entire body, once it is known
  bool is_done = false;           ///< the request has had its response; there are no parts any more
  std::string result;             ///< of a request that was answered: where to find what it made
  core::WallTime touched;         ///< when this row was written last
};

/// Bytes of an upload [offset, offset + blob.length); parts follow each other without gaps.
struct UploadPartRow {
  std::string upload;
  int64_t offset = 0;
  BlobRef blob;
};

enum class SessionState { kOpen, kHalted, kClosed };
enum class OnError { kContinue, kHalt };
/// When effects of a job enter the log: all of them when it commits, or while it runs.
enum class EffectMode { kAtomic, kStreaming };

struct SessionRow {
  std::string id;
  std::string principal;
  std::string name;
  SessionState state = SessionState::kOpen;
  OnError on_error = OnError::kContinue;
  EffectMode effects = EffectMode::kAtomic;  ///< of its jobs that do not choose
  std::optional<int64_t> halted_by;          ///< number of the first job whose failure has halted it
  core::WallTime created;
  std::optional<core::WallTime> closed;
  int64_t next_job_number = 1;  ///< only Transaction::next_job_number moves it
  int64_t last_sequence = 0;    ///< only Transaction::append_effects moves it
  std::string document;
};

struct JobRow {
  std::string id;
  std::string session;  ///< may be empty
  std::string principal;
  std::string program;  ///< id of a program whose content is kept while an unfinished job names it; may be empty
  int64_t number = 0;   ///< 1.. within its session, in the order of acceptance; 0 without session
  JobState state = JobState::kQueued;
  int64_t attempt = 1;
  int64_t request_version = 0;   ///< of the form of `request`, which service/jobs owns; 0: a body of the API
  std::string request;           ///< any bytes; left empty in lists, and in the row once the job is over
  std::optional<BlobRef> bytes;  ///< what `request` refers to, where the row does not have it; likewise
  /// What accepted the job, then what computed it (Transaction::environment_id); nothing: a build that did not say.
  std::optional<int64_t> environment;
  std::string answer;                      ///< any bytes; left empty in lists
  std::vector<std::string> result_arrays;  ///< ids of the arrays that its results are to be; empty: not known
  std::string error_code;
  std::string error_detail;
  core::WallTime created;
  std::optional<core::WallTime> started;
  std::optional<core::WallTime> finished;
  std::optional<core::WallTime> deadline;
};

/// A job that is over, to find those that are over for long.
struct FinishedJob {
  std::string id;
  core::WallTime finished;
  int64_t answer_bytes = 0;
};

/// One entry of a session's log: numbered 1..N without gap or repeat, never changed.
struct EffectRow {
  std::string session;
  int64_t sequence = 0;  ///< given by Transaction::append_effects
  std::string job;
  /// Position in the job's own order of effects, 0.. : makes a re-run match what is already there. -1: not keyed, as
  /// the entry that says how the job ended.
  int64_t step = -1;
  std::string kind;
  std::string name;
  bool ordered = true;
  int64_t shard_index = 0;
  std::string values;      ///< any bytes
  bool is_queued = false;  ///< is in the outgoing queue `name` of the session, too
  int64_t number = 0;      ///< its place there, 1.. without gap, given by Transaction::append_effects; 0: in no queue
};

/// An infeed entry that no job has consumed: numbered 1.. in its queue, without reuse.
struct InfeedRow {
  std::string session;
  std::string queue;    ///< may be empty
  int64_t number = 0;   ///< given by Transaction::append_infeed
  std::string content;  ///< any bytes
  core::WallTime created;
};

struct InfeedQueueRow {
  std::string queue;
  int64_t last = 0;     ///< number of the last entry
  int64_t waiting = 0;  ///< entries that no job has used up
  int64_t bytes = 0;    ///< of those
};

/// A callback request to the client, durable before it is visible; its reply is durable before it is used.
struct CallbackRow {
  std::string session;
  int64_t number = 0;  ///< 1.. within the session, given by Transaction::insert_callback
  std::string job;     ///< the requesting job, or the pending array whose parts are requested
  int64_t call = 0;    ///< position in the job's own order of calls, 0..
  std::string request;
  std::optional<std::string> answer;
  core::WallTime created;
};

/// What a request made under its client's idempotency key, keyed by (principal, route, key). It is inserted with that.
struct IdempotencyRow {
  std::string principal;
  std::string route;
  std::string key;
  std::string fingerprint;  ///< of its first request
  std::string made;         ///< the id of a job, an array, a session; what else the route needs to answer again
  core::WallTime created;
};

/// A version of a model. Its document is opaque to storage.
enum class WebhookState {
  kActive,
  kDisabled,  ///< nothing is delivered until its client resumes it
};

/// A receiver of what happens in a session, and how far its deliveries are.
struct WebhookRow {
  std::string id;
  std::string principal;
  std::string session;
  std::string url;
  std::string secret;  ///< the key of its signatures, base64
  bool wants_effects = true;
  bool wants_jobs = true;
  WebhookState state = WebhookState::kActive;
  int64_t sequence = 0;    ///< effects up to this one are delivered
  int64_t pending = 0;     ///< the last effect of the delivery that has begun; 0: none has
  int64_t job_number = 0;  ///< ends of jobs up to this one are delivered
  int64_t failures = 0;    ///< attempts since the last that was accepted
  std::optional<core::WallTime> failing_since;
  std::string last_error;  ///< of the last attempt that failed since then; empty: none
  core::WallTime created;
};

struct ModelRow {
  std::string principal;
  std::string name;
  int64_t version = 1;   ///< 1.. within its name
  std::string program;   ///< id of a program whose content is kept while a model names it
  std::string document;  ///< what its client has said of it
  bool is_loaded = true;
  core::WallTime created;
};

/// What was measured of a machine (kernels::MachineRates), in whole numbers a second.
struct MachineRatesRow {
  std::string machine;  ///< its name: on another one the rates do not hold
  int64_t bytes = 0;
  int64_t operations = 0;
};

/// Why an array that `taker` (a job, or the array that it was moved to) has consumed is not there any more.
std::string donated_reason(std::string_view taker);

/// The words that the database and the documents use: "pending", "ready", ...
std::string_view to_string(ArrayState state);
std::string_view to_string(Durability durability);
std::string_view to_string(SessionState state);
std::string_view to_string(WebhookState state);
std::string_view to_string(OnError on_error);
std::string_view to_string(EffectMode mode);
std::string_view to_string(JobState state);
/// What a word of to_string() names; nothing for others.
std::optional<Durability> durability_from(std::string_view word);
std::optional<EffectMode> effect_mode_from(std::string_view word);
std::optional<JobState> job_state_from(std::string_view word);

}  // namespace meshd::storage
