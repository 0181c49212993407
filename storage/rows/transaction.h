// Every change of the database. The changes of one callable through a Transaction are atomic and isolated, together
// with its reads: nothing else writes in between.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "storage/rows/reader.h"

namespace meshd::storage {

/// Reads see what was written before in the same transaction. Lives only inside the callable given to Catalog::write;
/// one thread (the writer's). "update" of a row that is not there throws not_found; "insert" of one that is, conflict.
class Transaction : public Reader {
 public:
  using Reader::Reader;

  /// Gives back some of the free pages: the file shrinks with the next checkpoint. So few that others do not wait for
  /// it.
  void vacuum_step();

  /// Interns the content and lets the principal see it. True when the principal did not see it before (201, not 200).
  bool put_mesh(const MeshRow& row);
  /// Interns the content without making it visible to a principal: for arrays whose mesh no client posted.
  void keep_mesh(std::string_view id, std::string_view document);
  /// Hides it from the principal; content is deleted when no principal sees it and no array names it. False: there was
  /// none.
  bool delete_mesh(std::string_view id, std::string_view principal);

  bool put_program(const ProgramRow& row);
  /// Content is deleted when no principal sees it and no unfinished job names it.
  bool delete_program(std::string_view id, std::string_view principal);

  /// Throws name_taken as require_free_name.
  void insert_array(const ArrayRow& row);
  /// Writes all columns but id, principal, created and reserved_by. holds_name is kept, and cleared where the array is
  /// donated or lost.
  void update_array(const ArrayRow& row);
  /// With its shards, whose blobs go to the collector. False when there was none. Throws array_in_use when reserved.
  bool delete_array(std::string_view id);
  /// Notes `now` in at most `limit` rows of arrays that are donated or lost and have no such time yet: they are aged
  /// from it. Returns how many.
  int64_t age_gone_arrays(core::WallTime now, int64_t limit);
  /// Deletes at most `limit` of the principal's arrays that age_gone_arrays() met: those met before a moment, or else
  /// the oldest beyond the `kept` newest (0: any number is kept). Returns their ids.
  std::vector<std::string> delete_gone_arrays(std::string_view principal, std::optional<core::WallTime> before,
                                              int64_t kept, int64_t limit);
  /// Inserts, or replaces the shard of the same (array, index), whose old blob becomes garbage.
  void put_shard(const ShardRow& row);
  /// Reserves an array for a job that donates it, at accept. Throws not_found, array_donated, array_lost,
  /// array_in_use (another job), conflict (not ready).
  void reserve_array(std::string_view id, std::string_view job);
  /// Releases whatever the job has reserved: it failed or was cancelled. Returns how many.
  int64_t release_arrays(std::string_view job, std::string_view principal);
  /// Donates the array: its state becomes donated, its version increases by one, its shards are deleted. Same errors as
  /// reserve_array.
  void consume_array(std::string_view id, std::string_view job);

  /// Everything that the principal `from` has is `to`'s from then on. Where both have posted the same mesh or program,
  /// or used the same idempotency key, what `to` has stays. Throws conflict when both have a job of one id.
  void give_to(std::string_view from, std::string_view to);

  void insert_upload(const UploadRow& row);
  /// Writes length, state, result and touched. Throws not_found.
  void update_upload(const UploadRow& row);
  /// Throws not_found for an upload that there is not.
  void insert_upload_part(const UploadPartRow& row);
  /// Its parts' blobs go to the collector.
  void drop_upload_parts(std::string_view upload);
  /// With its parts. False when there was none.
  bool delete_upload(std::string_view id);

  /// The content of its program is to be there. Throws conflict.
  /// Puts the group, or other attributes into it. Throws limit_reached where the principal has `most` others.
  void put_zarr_group(std::string_view principal, const ZarrGroupRow& row, int64_t most);
  /// False when there was none.
  bool delete_zarr_group(std::string_view principal, std::string_view path);

  void insert_model(const ModelRow& row);
  /// Nothing where there is none.
  void set_model_loaded(std::string_view principal, std::string_view name, int64_t version, bool is_loaded);
  /// The program's content is deleted when nothing else names it. False when there was none.
  bool delete_model(std::string_view principal, std::string_view name, int64_t version);

  void insert_webhook(const WebhookRow& row);
  /// Writes state, sequence, pending, job_number and what is known of failures. False when there is none.
  bool update_webhook(const WebhookRow& row);
  /// False when there was none.
  bool delete_webhook(std::string_view id);

  void insert_session(const SessionRow& row);
  /// It takes no more jobs. Throws not_found.
  void close_session(std::string_view id, core::WallTime time);
  /// Throws not_found.
  void set_session_document(std::string_view id, std::string_view document);
  /// This job has failed: a session that is to halt on errors does. False: it goes on, or is closed.
  bool halt_session(std::string_view id, int64_t job_number);
  /// The session is halted, by a job before this one.
  bool is_halted_before(std::string_view id, int64_t job_number);
  /// A halted session goes on; one that is open is left as it is. Throws not_found, session_closed.
  void resume_session(std::string_view id);
  /// With its jobs, effects, callback requests, queues and webhooks; its arrays stay. False when there was none.
  /// Nothing of it is visible from here on, but of many rows only a part is removed: call remove_deleted_sessions()
  /// while there are any.
  bool delete_session(std::string_view id);
  /// Removes rows of one deleted session: a thousand, and about 1 MiB unless one row has more.
  void remove_deleted_sessions();
  /// 1, 2, 3, ... for each session. Throws not_found, session_closed.
  [[nodiscard]] int64_t next_job_number(std::string_view session);

  /// The number of a line of text that says what runs jobs (build, processor, choices of kernels): equal lines have
  /// one.
  int64_t environment_id(std::string_view text);
  void insert_job(const JobRow& row);
  /// Changes the job's state as kJobTransitions allows, and writes attempt, answer, error, started, finished, deadline
  /// and environment. A job that is over by that loses its request and its blob, and the content of its program is
  /// deleted when no other job names it and no principal sees it. False: its state allows no such transition, because
  /// another one came first (or it has the state already), and nothing is changed. Throws not_found.
  [[nodiscard]] bool update_job(const JobRow& row);
  /// Marks a job that is not over: the next start ends it as cancelled, if nothing has ended it before. update_job
  /// leaves the mark. Nothing for a job that there is not.
  void request_cancel(std::string_view id, std::string_view principal);
  /// With its callback requests and what it has reserved; its effects stay in the log. False when there was none.
  bool delete_job(std::string_view id, std::string_view principal);

  /// Numbers the rows densely after the session's last and stores them; fills in `session` and `sequence`. A row whose
  /// (session, job, step) is already there is not stored again: it gets the sequence it has, and throws
  /// nondeterministic_job when its content differs. Rows with `is_queued` get their `number`, too. Throws not_found for
  /// an unknown session.
  void append_effects(std::string_view session, std::span<EffectRow> rows);

  /// A job has failed or was cancelled (`how`) with this error code. Where the log has effects of it, an entry behind
  /// them says so: its kind is the word of `how`, its name the code. Once for each job, with its end.
  void mark_end(std::string_view session, std::string_view job, JobState how, std::string_view code);

  /// Gives `row.number` and stores the entry at the end of its queue. Throws not_found, session_closed.
  void append_infeed(InfeedRow& row);
  /// Used up: entries of the queue up to `number` leave.
  void use_infeeds(std::string_view session, std::string_view queue, int64_t number);
  /// Empties the queue; numbers go on. Returns how many entries left. Throws conflict while a job of the session is
  /// not over: it may have taken some of them.
  int64_t drop_infeeds(std::string_view session, std::string_view queue);

  /// Assigns `row.number` and stores the callback request; one with the same (session, job, call) is not stored again,
  /// and throws nondeterministic_job when the callback request differs. Returns the stored row, with its reply if there
  /// is one.
  CallbackRow insert_callback(const CallbackRow& row);
  /// Throws not_found; conflict when it has a different reply.
  void reply_to_callback(std::string_view session, int64_t number, std::string_view reply);
  /// Deletes the callback requests of this job or array that have no reply.
  void drop_open_callbacks(std::string_view asker);

  /// False when (principal, route, key) is taken; then read it.
  bool insert_idempotency(const IdempotencyRow& row);
  /// The same for a request that may have a key. Throws idempotency_in_progress when it is taken.
  void claim_key(const std::optional<IdempotencyRow>& row);
  /// The time by which finished jobs and keys were aged last (jobs::RetentionTime).
  void set_aged_until(core::WallTime time);
  void set_machine_rates(const MachineRatesRow& row);
  /// Removes at most `limit` records made before `time`, but for those of jobs that are not over. Returns how many.
  int64_t expire_idempotency(core::WallTime time, int64_t limit);
  /// The same for the oldest of a principal, whatever their age is.
  int64_t drop_oldest_keys(std::string_view principal, int64_t limit);

  /// Blobs that rows stopped naming in this transaction: Catalog passes them to garbage collection once it is durable.
  [[nodiscard]] const std::vector<std::string>& dropped_blobs() const { return dropped_blobs_; }

 private:
  void drop_shards(std::string_view array);
  void remove_rows_of(std::string_view session);
  void collect_mesh(std::string_view id);
  void collect_program(std::string_view id);
  std::vector<std::string> dropped_blobs_;
};

}  // namespace meshd::storage
