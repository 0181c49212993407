// Read snapshots of the database: every query. All results of one Reader are of one snapshot.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "storage/rows/rows.h"

namespace meshd::storage {

class Connection;
class RecoveryRows;

inline constexpr int64_t kMaxPageSize = 1000;

/// Called with the bytes of a row's texts before they are read; false ends the list before that row. The first row is
/// read whatever it says, so that every page gets on. What it throws leaves the list.
using AdmitRow = std::function<bool(int64_t bytes)>;

/// A page of a list: at most `limit` (1..kMaxPageSize) items after `cursor` (empty: from the start).
struct PageRequest {
  int64_t limit = 100;
  std::string cursor;
  AdmitRow admit = {};  ///< empty: every row
};

/// `next` continues the list; empty when this was the end. Opaque to clients, stable while rows come and go.
template <typename Row>
struct Page {
  std::vector<Row> items;
  std::string next;
};

struct ArrayFilter {
  std::string session;      ///< empty: any
  std::string name;         ///< empty: any
  std::string prefix = {};  ///< of the name; empty: any
};

/// An array by its name.
struct NamedArray {
  std::string name, id;
  bool is_ready = false;
};

/// What a principal has rows of.
enum class Counted { kArrays, kSessions, kJobs, kPrograms, kMeshes, kModels, kWebhooks };

/// A principal's arrays that are pending or ready: what quotas count.
struct StoredArrays {
  std::string principal;
  int64_t count = 0;
  int64_t bytes = 0;
};

/// The idempotency keys of a principal.
struct KeyCount {
  std::string principal;
  int64_t count = 0;
};

struct JobFilter {
  std::string session;  ///< empty: any
  std::optional<JobState> state;
  std::string program = {};  ///< id of the stored program that a job named; empty: any, or none
};

/// Reads in one snapshot. Valid only inside the callable that receives it; one thread. A missing row is std::nullopt.
/// The forms with `principal` return nothing for rows of others, for routes. Lists throw invalid_query for a limit
/// outside 1..1000 or a cursor that is not one of ours.
class Reader {
 public:
  explicit Reader(Connection& connection) : connection_(&connection) {}

  /// The file has many more free pages than the next rows will need.
  [[nodiscard]] bool needs_vacuum();

  [[nodiscard]] std::optional<MeshRow> mesh(std::string_view id, std::string_view principal);
  /// The content, whoever may see it: for arrays that name the mesh.
  [[nodiscard]] std::optional<std::string> mesh_document(std::string_view id);
  [[nodiscard]] Page<MeshRow> meshes(std::string_view principal, const PageRequest& page);

  [[nodiscard]] std::optional<ProgramRow> program(std::string_view id, std::string_view principal,
                                                  const AdmitRow& admit = {});
  /// The content, whoever may see it (`principal` is empty): for jobs that name the program.
  [[nodiscard]] std::optional<ProgramRow> program_content(std::string_view id);
  [[nodiscard]] bool has_program_content(std::string_view id);
  [[nodiscard]] Page<ProgramRow> programs(std::string_view principal, const PageRequest& page);

  [[nodiscard]] std::optional<ArrayRow> array(std::string_view id);
  [[nodiscard]] std::optional<ArrayRow> array(std::string_view id, std::string_view principal);
  /// The array that the name addresses: one that has data before others, the one that holds its name, the newest.
  [[nodiscard]] std::optional<ArrayRow> array_by_name(std::string_view name, std::string_view principal);
  /// Arrays whose names begin so (empty: all that have names), by name; those of one name in the order of
  /// array_by_name. At most `limit`.
  [[nodiscard]] std::vector<NamedArray> arrays_with_prefix(std::string_view principal, std::string_view prefix,
                                                           int64_t limit);
  /// Zarr groups at `path` and below (empty: all), by path; at most `limit`.
  [[nodiscard]] std::vector<ZarrGroupRow> zarr_groups(std::string_view principal, std::string_view path, int64_t limit);
  /// Bytes of their paths and attributes.
  int64_t zarr_group_bytes(std::string_view principal, std::string_view path);
  /// Bytes of the attributes of all of the principal's Zarr groups and arrays.
  int64_t zarr_attribute_bytes(std::string_view principal);
  /// Throws name_taken, naming the array, when one that has data holds the name, or has it and `is_unique`; but for
  /// those in `leaving`.
  void require_free_name(std::string_view principal, std::string_view name, bool is_unique,
                         std::span<const std::string> leaving);
  [[nodiscard]] Page<ArrayRow> arrays(std::string_view principal, const ArrayFilter& filter, const PageRequest& page);
  /// In the order of their index.
  [[nodiscard]] std::vector<ShardRow> shards(std::string_view array);
  /// Uploads of all principals, and an upload's parts in order.
  [[nodiscard]] std::vector<UploadRow> uploads();
  [[nodiscard]] std::vector<UploadPartRow> upload_parts(std::string_view upload);
  /// A shard, a part of an upload or a job that is not over has it.
  [[nodiscard]] bool names_blob(std::string_view blob);
  /// Of every principal that has such arrays.
  [[nodiscard]] std::vector<StoredArrays> stored_arrays();
  /// How many rows the principal has, whatever their state is.
  [[nodiscard]] int64_t count_of(Counted what, std::string_view principal);

  [[nodiscard]] std::optional<SessionRow> session(std::string_view id);
  [[nodiscard]] std::optional<SessionRow> session(std::string_view id, std::string_view principal);
  /// Rows of deleted sessions are left, which nothing else here returns.
  [[nodiscard]] bool has_deleted_sessions();
  [[nodiscard]] Page<SessionRow> sessions(std::string_view principal, const PageRequest& page);

  /// Ids of jobs are unique for each principal: clients choose them.
  [[nodiscard]] std::optional<JobRow> job(std::string_view id, std::string_view principal);
  /// The line of a number of Transaction::environment_id.
  [[nodiscard]] std::string environment(int64_t id);
  [[nodiscard]] std::optional<JobRow> job_of_session(std::string_view session, std::string_view id);
  /// The same job's state, without its request and answer.
  [[nodiscard]] std::optional<JobState> job_state(std::string_view id, std::string_view principal);
  /// The same job without its request and answer.
  [[nodiscard]] std::optional<JobRow> job_head(std::string_view id, std::string_view principal);
  /// Of its request and its answer, which job() reads; 0 where there is no such job.
  [[nodiscard]] int64_t job_bytes(std::string_view id, std::string_view principal);
  /// Transaction::request_cancel was called for it.
  [[nodiscard]] bool is_cancel_requested(std::string_view id, std::string_view principal);
  /// The first principal behind this one, by name, that has arrays that Transaction::age_gone_arrays met.
  [[nodiscard]] std::optional<std::string> next_with_gone_arrays(std::optional<std::string_view> after);
  /// The first principal behind this one, by name, that has jobs that are over.
  [[nodiscard]] std::optional<std::string> next_with_finished_jobs(std::optional<std::string_view> after);
  /// The principal's job that is over and than which so many have finished later. Nothing: there are no more than that.
  [[nodiscard]] std::optional<FinishedJob> finished_job(std::string_view principal, int64_t newer);
  /// The newest job of the principal that is over and than which others have finished later whose answers have so many
  /// bytes. Nothing: those of all jobs but one have less.
  [[nodiscard]] std::optional<FinishedJob> finished_job_behind(std::string_view principal, int64_t answer_bytes);
  /// The principal's jobs that are over, behind `after` and up to `last` in the order of their end and id, at most
  /// `limit`; without those that idempotency keys name.
  [[nodiscard]] std::vector<FinishedJob> finished_jobs(std::string_view principal, const FinishedJob& after,
                                                       const FinishedJob& last, int64_t limit);
  /// Newest first: by the time when they were made, with a session by number.
  [[nodiscard]] Page<JobRow> jobs(std::string_view principal, const JobFilter& filter, const PageRequest& page);
  /// Queued jobs of all principals by (session, number), those without session by id and first:
  /// for a restart.
  [[nodiscard]] Page<JobRow> queued_jobs(const PageRequest& page);

  /// Effects with sequence > `after`, at most `limit` (1..1000), in order.
  [[nodiscard]] std::vector<EffectRow> effects(std::string_view session, int64_t after, int64_t limit,
                                               const AdmitRow& admit = {});
  /// The log has effects of a job of this id, at this step of its or a later one.
  [[nodiscard]] bool has_effects_of_job(std::string_view session, std::string_view job, int64_t step = 0);

  /// Effects in the outgoing queue with number > `after`, at most `limit` (1..1000), in order.
  [[nodiscard]] std::vector<EffectRow> outgoing(std::string_view session, std::string_view queue, int64_t after,
                                                int64_t limit, const AdmitRow& admit = {});

  /// Entries of the queue that are not consumed, with number > `after`, at most `limit` (1..1000), in order.
  [[nodiscard]] std::vector<InfeedRow> infeeds(std::string_view session, std::string_view queue, int64_t after,
                                               int64_t limit);
  /// Queues that ever had an entry, by name.
  [[nodiscard]] std::vector<InfeedQueueRow> infeed_queues(std::string_view session);

  [[nodiscard]] std::optional<CallbackRow> callback(std::string_view session, int64_t number,
                                                    const AdmitRow& admit = {});
  /// The callback requests of a job, by call: a run that starts again replays their replies.
  [[nodiscard]] std::vector<CallbackRow> callbacks_of_job(std::string_view job);
  /// Callback requests without a reply and with number > `after`, at most `limit` (1..1000), by number.
  [[nodiscard]] std::vector<CallbackRow> open_callbacks(std::string_view session, int64_t after, int64_t limit,
                                                        const AdmitRow& admit = {});

  /// All of them, by principal, name and version.
  [[nodiscard]] std::vector<ModelRow> models();
  /// The highest version of the principal's model; 0: there is none.
  [[nodiscard]] int64_t last_model_version(std::string_view principal, std::string_view name);

  [[nodiscard]] std::optional<WebhookRow> webhook(std::string_view id);
  /// Those of a session (empty: of all) by id.
  [[nodiscard]] Page<WebhookRow> webhooks(std::string_view principal, std::string_view session,
                                          const PageRequest& page);
  /// Of all principals, by id, for a start: those behind `after`, at most `limit`.
  [[nodiscard]] std::vector<WebhookRow> webhooks_after(std::string_view after, int64_t limit);
  /// The first job of the session whose number is greater, without its request and answer.
  [[nodiscard]] std::optional<JobRow> next_job_of_session(std::string_view session, int64_t after_number);

  /// Of Transaction::set_aged_until; nothing before the first.
  [[nodiscard]] std::optional<core::WallTime> aged_until();
  /// Of Transaction::set_machine_rates; nothing before the first.
  [[nodiscard]] std::optional<MachineRatesRow> machine_rates();
  [[nodiscard]] std::optional<IdempotencyRow> idempotency(std::string_view principal, std::string_view route,
                                                          std::string_view key);
  /// Principals with more than `count` idempotency keys.
  [[nodiscard]] std::vector<KeyCount> principals_with_more_keys(int64_t count);

 protected:
  friend class RecoveryRows;
  Connection* connection_;
};

}  // namespace meshd::storage
