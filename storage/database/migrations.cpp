#include "storage/database/migrations.h"

namespace meshd::storage {
namespace {

// 0 -> 1. Times are microseconds since 1970, documents are JSON text, checksums are the 64 bits as a signed number.
constexpr const char* kFirst = R"sql(
CREATE TABLE meta(
  key TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE mesh_contents(
  id TEXT PRIMARY KEY,
  document TEXT NOT NULL
) STRICT;
CREATE TABLE meshes(
  principal TEXT NOT NULL,
  id TEXT NOT NULL REFERENCES mesh_contents(id),
  created INTEGER NOT NULL,
  PRIMARY KEY(principal, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX meshes_by_id ON meshes(id);

CREATE TABLE program_contents(
  id TEXT PRIMARY KEY,
  format TEXT NOT NULL,
  document TEXT NOT NULL,
  text TEXT NOT NULL
) STRICT;
CREATE TABLE programs(
  principal TEXT NOT NULL,
  id TEXT NOT NULL REFERENCES program_contents(id),
  created INTEGER NOT NULL,
  PRIMARY KEY(principal, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX programs_by_id ON programs(id);

CREATE TABLE arrays(
  id TEXT PRIMARY KEY,
  principal TEXT NOT NULL,
  session TEXT NOT NULL,
  name TEXT NOT NULL,
  dtype TEXT NOT NULL,
  shape TEXT NOT NULL,
  mesh TEXT NOT NULL,
  sharding TEXT NOT NULL,
  durability TEXT NOT NULL CHECK(durability IN ('durable', 'memory')),
  state TEXT NOT NULL CHECK(state IN ('pending', 'ready', 'donated', 'lost')),
  version INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  committed INTEGER NOT NULL,
  reserved_by TEXT,
  reason TEXT NOT NULL,
  document TEXT NOT NULL,
  created INTEGER NOT NULL
) STRICT;
CREATE INDEX arrays_by_principal ON arrays(principal, id);
CREATE INDEX arrays_by_mesh ON arrays(mesh);
CREATE INDEX arrays_by_reservation ON arrays(reserved_by) WHERE reserved_by IS NOT NULL;

CREATE TABLE shards(
  array TEXT NOT NULL REFERENCES arrays(id),
  shard_index INTEGER NOT NULL,
  process INTEGER NOT NULL,
  devices TEXT NOT NULL,
  blob TEXT NOT NULL,
  length INTEGER NOT NULL,
  checksum INTEGER NOT NULL,
  PRIMARY KEY(array, shard_index)
) STRICT, WITHOUT ROWID;
CREATE INDEX shards_by_blob ON shards(blob);

CREATE TABLE sessions(
  id TEXT PRIMARY KEY,
  principal TEXT NOT NULL,
  name TEXT NOT NULL,
  state TEXT NOT NULL CHECK(state IN ('open', 'halted', 'closed')),
  on_error TEXT NOT NULL CHECK(on_error IN ('continue', 'halt')),
  created INTEGER NOT NULL,
  closed INTEGER,
  next_job_number INTEGER NOT NULL,
  last_sequence INTEGER NOT NULL,
  document TEXT NOT NULL
) STRICT;
CREATE INDEX sessions_by_principal ON sessions(principal, id);

CREATE TABLE jobs(
  id TEXT PRIMARY KEY,
  session TEXT REFERENCES sessions(id),
  principal TEXT NOT NULL,
  program TEXT,
  number INTEGER NOT NULL,
  state TEXT NOT NULL CHECK(state IN ('queued', 'running', 'done', 'failed', 'cancelled')),
  attempt INTEGER NOT NULL,
  error_code TEXT NOT NULL,
  error_detail TEXT NOT NULL,
  created INTEGER NOT NULL,
  started INTEGER,
  finished INTEGER,
  deadline INTEGER,
  request BLOB NOT NULL,
  answer BLOB NOT NULL
) STRICT;
CREATE INDEX jobs_by_principal ON jobs(principal, id);
CREATE UNIQUE INDEX jobs_by_number ON jobs(session, number) WHERE session IS NOT NULL;
CREATE INDEX jobs_queued ON jobs(coalesce(session, ''), number, id) WHERE state = 'queued';
CREATE INDEX jobs_by_program ON jobs(program) WHERE program IS NOT NULL;
CREATE INDEX jobs_running ON jobs(id) WHERE state = 'running';

CREATE TABLE effects(
  session TEXT NOT NULL,
  sequence INTEGER NOT NULL,
  job TEXT NOT NULL,
  step INTEGER,
  kind TEXT NOT NULL,
  name TEXT NOT NULL,
  ordered INTEGER NOT NULL,
  shard_index INTEGER NOT NULL,
  data BLOB NOT NULL,
  PRIMARY KEY(session, sequence)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX effects_by_step ON effects(job, step) WHERE step IS NOT NULL;

CREATE TABLE callbacks(
  session TEXT NOT NULL,
  number INTEGER NOT NULL,
  job TEXT NOT NULL,
  call INTEGER NOT NULL,
  question TEXT NOT NULL,
  answer TEXT,
  created INTEGER NOT NULL,
  PRIMARY KEY(session, number)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX callbacks_by_call ON callbacks(job, call);

CREATE TABLE idempotency(
  principal TEXT NOT NULL,
  route TEXT NOT NULL,
  key TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  state TEXT NOT NULL CHECK(state IN ('running', 'done')),
  status INTEGER NOT NULL,
  job TEXT NOT NULL,
  created INTEGER NOT NULL,
  headers TEXT NOT NULL,
  body BLOB NOT NULL,
  PRIMARY KEY(principal, route, key)
) STRICT;
CREATE INDEX idempotency_by_age ON idempotency(created);
)sql";

// 1 -> 2. Queues between programs and their clients: infeed entries, and the places of effects in outgoing queues.
constexpr const char* kQueues = R"sql(
ALTER TABLE effects ADD COLUMN number INTEGER;
CREATE UNIQUE INDEX effects_by_queue ON effects(session, name, number) WHERE number IS NOT NULL;

CREATE TABLE feeds(
  session TEXT NOT NULL,
  queue TEXT NOT NULL,
  number INTEGER NOT NULL,
  created INTEGER NOT NULL,
  content BLOB NOT NULL,
  PRIMARY KEY(session, queue, number)
) STRICT;
CREATE TABLE feed_queues(
  session TEXT NOT NULL,
  queue TEXT NOT NULL,
  last INTEGER NOT NULL,
  PRIMARY KEY(session, queue)
) STRICT, WITHOUT ROWID;
)sql";

// 2 -> 3. Callback requests and replies are any bytes. There were none before.
constexpr const char* kCallbacks = R"sql(
DROP TABLE callbacks;
CREATE TABLE callbacks(
  session TEXT NOT NULL,
  number INTEGER NOT NULL,
  job TEXT NOT NULL,
  call INTEGER NOT NULL,
  question BLOB NOT NULL,
  answer BLOB,
  created INTEGER NOT NULL,
  PRIMARY KEY(session, number)
) STRICT;
CREATE UNIQUE INDEX callbacks_by_call ON callbacks(job, call);
CREATE INDEX callbacks_open ON callbacks(session, number) WHERE answer IS NULL;
)sql";

// 3 -> 4. Name and doc of a program are by principal. They were in the content's document, NAME US DOC US IN_TREE US
// OUT_TREE (US: the separator 0x1f), and are those of its first principal; the trees stay there.
constexpr const char* kProgramNames = R"sql(
ALTER TABLE programs ADD COLUMN name TEXT NOT NULL DEFAULT '';
ALTER TABLE programs ADD COLUMN doc TEXT NOT NULL DEFAULT '';
CREATE TABLE split AS SELECT id, substr(text, 1, at - 1) AS name, substr(text, at + 1) AS rest FROM
  (SELECT id, text, instr(text, char(31)) AS at FROM
    (SELECT id, document || char(31, 31, 31) AS text FROM program_contents));
UPDATE programs SET
  name = (SELECT split.name FROM split WHERE split.id = programs.id),
  doc = (SELECT substr(rest, 1, instr(rest, char(31)) - 1) FROM split WHERE split.id = programs.id)
  WHERE principal = (SELECT first.principal FROM programs AS first WHERE first.id = programs.id
    ORDER BY first.created, first.principal LIMIT 1);
UPDATE program_contents SET document =
  (SELECT rtrim(substr(rest, instr(rest, char(31)) + 1), char(31)) FROM split WHERE split.id = program_contents.id);
DROP TABLE split;
)sql";

// 4 -> 5. Jobs that are not over name the stored program that they run, which keeps its content (jobs.program). Jobs
// accepted before have it in their request only, which is inside of "body" where the session had a mesh.
constexpr const char* kProgramsOfJobs = R"sql(
UPDATE jobs SET program = coalesce(json_extract(CAST(request AS TEXT), '$.program.id'),
                                   json_extract(CAST(request AS TEXT), '$.body.program.id'))
WHERE program IS NULL AND state IN ('queued', 'running') AND json_valid(CAST(request AS TEXT));
)sql";

// 5 -> 6. Ids of jobs are unique for each principal, not for all of them; so are effects and callback requests, by
// their session.
constexpr const char* kJobNames = R"sql(
CREATE TABLE jobs_by_owner(
  id TEXT NOT NULL,
  session TEXT REFERENCES sessions(id),
  principal TEXT NOT NULL,
  program TEXT,
  number INTEGER NOT NULL,
  state TEXT NOT NULL CHECK(state IN ('queued', 'running', 'done', 'failed', 'cancelled')),
  attempt INTEGER NOT NULL,
  error_code TEXT NOT NULL,
  error_detail TEXT NOT NULL,
  created INTEGER NOT NULL,
  started INTEGER,
  finished INTEGER,
  deadline INTEGER,
  request BLOB NOT NULL,
  answer BLOB NOT NULL,
  PRIMARY KEY(principal, id)
) STRICT;
INSERT INTO jobs_by_owner SELECT id, session, principal, program, number, state, attempt, error_code, error_detail, created,
  started, finished, deadline, request, answer FROM jobs;
DROP TABLE jobs;
ALTER TABLE jobs_by_owner RENAME TO jobs;
CREATE UNIQUE INDEX jobs_by_number ON jobs(session, number) WHERE session IS NOT NULL;
CREATE INDEX jobs_queued ON jobs(coalesce(session, ''), number, id, principal) WHERE state = 'queued';
CREATE INDEX jobs_by_program ON jobs(program) WHERE program IS NOT NULL;
CREATE INDEX jobs_running ON jobs(id) WHERE state = 'running';
DROP INDEX effects_by_step;
CREATE UNIQUE INDEX effects_by_step ON effects(session, job, step) WHERE step IS NOT NULL;
DROP INDEX callbacks_by_call;
CREATE UNIQUE INDEX callbacks_by_call ON callbacks(job, call, session);
)sql";

constexpr const char* kUnusedColumns = R"sql(
ALTER TABLE idempotency DROP COLUMN state;
ALTER TABLE idempotency DROP COLUMN status;
ALTER TABLE idempotency DROP COLUMN headers;
ALTER TABLE idempotency DROP COLUMN body;
ALTER TABLE shards DROP COLUMN process;
ALTER TABLE shards DROP COLUMN devices;
ALTER TABLE arrays DROP COLUMN document;
ALTER TABLE callbacks RENAME COLUMN question TO request;
ALTER TABLE feeds RENAME TO infeed_entries;
ALTER TABLE feed_queues RENAME TO infeed_queues;
)sql";

// 7 -> 8. Finished jobs lose their requests, and can be deleted with their callback requests, whose numbers go on.
constexpr const char* kFinishedJobs = R"sql(
UPDATE jobs SET request = x'' WHERE state IN ('done', 'failed', 'cancelled');
CREATE INDEX jobs_finished ON jobs(principal, finished, id) WHERE finished IS NOT NULL;
CREATE INDEX idempotency_by_job ON idempotency(job, principal);
ALTER TABLE sessions ADD COLUMN last_callback INTEGER NOT NULL DEFAULT 0;
UPDATE sessions SET last_callback =
  coalesce((SELECT max(number) FROM callbacks WHERE callbacks.session = sessions.id), 0);
)sql";

// 8 -> 9. Deleted sessions whose rows are still being removed: nothing of them is visible.
constexpr const char* kDeletedSessions = R"sql(
CREATE TABLE deleted_sessions(id TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
)sql";

// 9 -> 10. The job whose failure has halted a session.
constexpr const char* kHaltedBy = R"sql(
ALTER TABLE sessions ADD COLUMN halted_by INTEGER;
)sql";

// 10 -> 11. The arrays that a job's results are to be: their ids are known before it has run. Idempotency keys of what
// other requests than jobs have made.
constexpr const char* kResultArrays = R"sql(
ALTER TABLE jobs ADD COLUMN result_arrays TEXT NOT NULL DEFAULT '';
ALTER TABLE idempotency RENAME COLUMN job TO made;
)sql";

// 11 -> 12. Jobs whose end was asked for while they ran: they neither commit nor run again.
constexpr const char* kCancelRequests = R"sql(
ALTER TABLE jobs ADD COLUMN cancel_requested INTEGER NOT NULL DEFAULT 0;
)sql";

// 12 -> 13. Names address arrays; an array may hold its name alone among its principal's.
constexpr const char* kArrayNames = R"sql(
ALTER TABLE arrays ADD COLUMN holds_name INTEGER NOT NULL DEFAULT 0;
CREATE INDEX arrays_by_name ON arrays(principal, name, id) WHERE name != '';
CREATE UNIQUE INDEX arrays_holding_names ON arrays(principal, name) WHERE holds_name = 1;
)sql";

// 13 -> 14. Uploads that may be resumed: what has come of a body, as blobs in order.
constexpr const char* kUploads = R"sql(
CREATE TABLE uploads(
  id TEXT PRIMARY KEY,
  principal TEXT NOT NULL,
  request TEXT NOT NULL,
  length INTEGER,
  state TEXT NOT NULL CHECK(state IN ('open', 'done')),
  result TEXT NOT NULL,
  touched INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE upload_parts(
  upload TEXT NOT NULL REFERENCES uploads(id),
  offset INTEGER NOT NULL,
  blob TEXT NOT NULL,
  length INTEGER NOT NULL,
  checksum INTEGER NOT NULL,
  PRIMARY KEY(upload, offset)
) STRICT, WITHOUT ROWID;
CREATE INDEX upload_parts_by_blob ON upload_parts(blob);
)sql";

// 14 -> 15. Whether effects of a session's jobs enter its log while they run. Lists of jobs begin with the newest,
// whatever they are filtered by. Whoever has an array sees its mesh.
constexpr const char* kStreamedEffects = R"sql(
ALTER TABLE sessions ADD COLUMN effects TEXT NOT NULL DEFAULT 'atomic' CHECK(effects IN ('atomic', 'streaming'));
INSERT INTO meshes(principal, id, created)
  SELECT principal, mesh, min(created) FROM arrays WHERE mesh IN (SELECT id FROM mesh_contents)
  GROUP BY principal, mesh ON CONFLICT DO NOTHING;
CREATE INDEX jobs_by_time ON jobs(principal, created, id);
CREATE INDEX jobs_by_state ON jobs(principal, state, created, id);
CREATE INDEX jobs_of_program ON jobs(principal, program, created, id) WHERE program IS NOT NULL;
CREATE INDEX jobs_of_session ON jobs(session, state, number) WHERE session IS NOT NULL;
)sql";

// 15 -> 16. Jobs that are not over keep their requests in a form of their own, with its version, and large bytes of
// them in a blob; those of before keep the body of the API (version 0). What accepted and computed a job, each text
// once.
constexpr const char* kStoredJobs = R"sql(
CREATE TABLE environments(
  id INTEGER PRIMARY KEY,
  text TEXT NOT NULL UNIQUE
) STRICT;
ALTER TABLE jobs ADD COLUMN request_version INTEGER NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN blob TEXT;
ALTER TABLE jobs ADD COLUMN blob_length INTEGER NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN blob_checksum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN environment INTEGER REFERENCES environments(id);
CREATE INDEX jobs_by_blob ON jobs(blob) WHERE blob IS NOT NULL;
)sql";

// 16 -> 17. Models: versions of named programs with bound arguments. Their programs' content stays while they name it.
constexpr const char* kModels = R"sql(
CREATE TABLE models(
  principal TEXT NOT NULL,
  name TEXT NOT NULL,
  version INTEGER NOT NULL,
  program TEXT NOT NULL,
  document TEXT NOT NULL,
  loaded INTEGER NOT NULL,
  created INTEGER NOT NULL,
  PRIMARY KEY(principal, name, version)
) STRICT, WITHOUT ROWID;
CREATE INDEX models_by_program ON models(program);
)sql";

// 17 -> 18. Webhooks: who is told of a session's effects and ends of jobs, and how far.
constexpr const char* kWebhooks = R"sql(
CREATE TABLE webhooks(
  id TEXT PRIMARY KEY,
  principal TEXT NOT NULL,
  session TEXT NOT NULL,
  url TEXT NOT NULL,
  secret TEXT NOT NULL,
  effects INTEGER NOT NULL,
  jobs INTEGER NOT NULL,
  state TEXT NOT NULL CHECK(state IN ('active', 'disabled')),
  sequence INTEGER NOT NULL,
  pending INTEGER NOT NULL,
  job_number INTEGER NOT NULL,
  failures INTEGER NOT NULL,
  failing_since INTEGER,
  last_error TEXT NOT NULL,
  created INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX webhooks_of_principal ON webhooks(principal, id);
CREATE INDEX webhooks_of_session ON webhooks(session);
)sql";

// 18 -> 19. What Zarr clients have said of arrays and of groups.
constexpr const char* kZarr = R"sql(
ALTER TABLE arrays ADD COLUMN attributes TEXT NOT NULL DEFAULT '';
CREATE TABLE zarr_groups(
  principal TEXT NOT NULL,
  path TEXT NOT NULL,
  attributes TEXT NOT NULL,
  PRIMARY KEY(principal, path)
) STRICT, WITHOUT ROWID;
)sql";

// 19 -> 20. A principal's oldest idempotency keys are found.
constexpr const char* kKeysOfPrincipals = R"sql(
CREATE INDEX idempotency_of_principal ON idempotency(principal, created);
)sql";

// 20 -> 21. Arrays whose values are gone are found by age: the time when retention first met them.
constexpr const char* kGoneArrays = R"sql(
ALTER TABLE arrays ADD COLUMN gone INTEGER;
CREATE INDEX arrays_newly_gone ON arrays(id) WHERE state IN ('donated', 'lost') AND gone IS NULL;
CREATE INDEX arrays_gone ON arrays(principal, gone, id) WHERE gone IS NOT NULL;
)sql";

constexpr const char* kMigrations[] = {
    kFirst,           kQueues,          kCallbacks, kProgramNames, kProgramsOfJobs, kJobNames,         kUnusedColumns,
    kFinishedJobs,    kDeletedSessions, kHaltedBy,  kResultArrays, kCancelRequests, kArrayNames,       kUploads,
    kStreamedEffects, kStoredJobs,      kModels,    kWebhooks,     kZarr,           kKeysOfPrincipals, kGoneArrays};

}  // namespace

std::span<const char* const> migrations() { return kMigrations; }

}  // namespace meshd::storage
