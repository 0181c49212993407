// The request of a job, decoded: names resolved to arrays and programs, without HTTP or JSON.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "service/arrays/array_store.h"
#include "service/arrays/regions/region.h"
#include "service/compile/explain/traffic.h"
#include "service/compile/pipeline.h"
#include "service/core/memory_ledger.h"
#include "service/device/engine.h"
#include "service/effects/effect_recorder.h"
#include "service/kernels/machine_rates.h"
#include "service/mesh/mesh.h"
#include "service/mesh/processes.h"
#include "service/numpy/numpy.h"
#include "service/tensor/dense_value.h"

namespace meshd::jobs {

/// A stored array, or a slice of one.
struct ArrayArgument {
  arrays::ArrayRef array;
  std::optional<std::vector<arrays::Slice>> slices;
  std::string of_job = {};  ///< the request names it as a result of this job, without which it has no value
};

/// A value that came with the request, ours alone, or a stored array.
using Argument = std::variant<tensor::DenseValue, ArrayArgument>;

/// A partition spec by names: axes of each dimension, major first. `mesh_name` chooses among several meshes of the
/// module.
struct NamedSpec {
  std::vector<std::vector<std::string>> dims;
  std::string mesh_name;
  std::optional<std::vector<int64_t>> parts;  ///< in place of names: an integer spec
};

/// Devices that a job with integer specs runs on.
struct PartitionCount {
  int64_t count = 1;
  int64_t local = 1;  ///< of the calling process
  std::vector<int64_t> devices;
};

/// A stored array whose next version is a result of the job.
struct ArrayUpdate {
  size_t argument = 0;  ///< position of the array
  size_t result = 0;
  std::optional<int64_t> version;  ///< that it has to have when the job reads it
};

/// A value of an infeed entry that is a copy of a stored array: copied again when the job runs again.
struct FedArray {
  arrays::ArrayRef array;
  std::optional<std::vector<arrays::Slice>> slices;
  size_t entry = 0;            ///< of JobRequest::infeeds
  std::optional<size_t> part;  ///< of the entry; none: of its values
  size_t value = 0;
};

/// What a program of NumPy syntax was traced for.
struct TraceInputs {
  numpy::Inputs inputs;
  std::optional<mesh::Mesh> mesh;
};

enum class ResultMode : uint8_t { kInline, kArray, kNone };

/// How results are written into the answer.
struct ResultForm {
  bool base64 = false;
  std::string result_tree;  ///< JSON with the number of each result at its place; empty: no tree
  bool is_file = false;     ///< the client gets a file; only a row has the results as text
};

/// The request of POST /v1/run and POST /v1/sessions/{id}/jobs.
struct JobRequest {
  std::string principal;
  std::string id;       ///< chosen by the client; empty: a new one. For JobRunner::start only
  std::string session;  ///< empty: none
  compile::ParsedRef program;
  std::string program_id;  ///< of a stored program; empty: the text came with the request
  /// Values that are constants of `program`, by position among the arguments of its text.
  std::map<size_t, tensor::DenseValue> statics;
  std::optional<TraceInputs> trace;          ///< what `program` was traced for
  std::vector<Argument> arguments;           ///< token-free
  std::optional<mesh::Mesh> mesh;            ///< its device_ids are the devices, in order; none: 0, 1, 2, ...
  std::map<std::string, mesh::Mesh> meshes;  ///< by symbol of the module
  bool least_loaded = false;                 ///< on the devices with the least to do, chosen when the job starts
  std::vector<std::optional<NamedSpec>> in_specs;
  std::vector<std::optional<NamedSpec>> out_specs;
  std::optional<int64_t> num_partitions;        ///< with integer specs: how many; none: from the specs
  std::optional<int64_t> local_num_partitions;  ///< of these, the process's own
  std::optional<int64_t> as_process;            ///< the client acts as this process
  mesh::Processes processes;                    ///< labels of the server's devices
  std::optional<std::vector<int64_t>> donate;
  std::vector<ArrayUpdate> updates;
  /// The one by this result; null: none.
  [[nodiscard]] const ArrayUpdate* update_by(size_t result) const {
    for (const ArrayUpdate& one : updates) {
      if (one.result == result) return &one;
    }
    return nullptr;
  }
  bool strict_donation = false;
  bool reshard = false;  ///< reshard arguments whose sharding differs from the program's
  effects::Bindings callbacks;
  std::vector<effects::InfeedEntry> infeeds;  ///< for infeeds, taken before those of the session's queues
  std::vector<FedArray> fed_arrays;           ///< that values of `infeeds` are copies of
  /// When its effects enter the session's log; none: as the session says. Only in a session.
  std::optional<storage::EffectMode> effects;
  ResultMode results = ResultMode::kInline;
  storage::Durability durability = storage::Durability::kDurable;
  std::vector<std::string> result_names;  ///< of results that are stored, by their number; "": none. Empty: no names
  ResultForm form;
  std::optional<std::chrono::milliseconds> deadline;
  bool profile = false;
  device::NonfiniteSearch nonfinite;  ///< what the run is searched for
  /// With an idempotency key: keeps the record beside the job. Empty key: none.
  std::string idempotency_route;
  std::string idempotency_key;
  std::string idempotency_fingerprint;
  double parse_ms = 0;
  /// W3C trace context of the request ("00-TRACE-SPAN-01"), told with the job's end; no part of what a row keeps.
  std::string traceparent;
};

/// One result. Shards are in the order of `layout`.
struct JobValue {
  tensor::TensorType type;                           ///< global
  std::optional<sharding::TensorSharding> sharding;  ///< over the run's mesh; nothing: one device, unsharded
  std::shared_ptr<const sharding::Layout> layout;
  arrays::ShardBuffers shards;  ///< empty when dropped
  arrays::ArrayRef array;       ///< set when stored
  int64_t version = 0;          ///< of the array, when this was an update of it; else 0
  std::string result_info;
};

/// An effect with the number it has in the log (without a session: in the response).
struct JobEffect {
  int64_t sequence = 0;
  int64_t number = 0;  ///< place in its outgoing queue; 0: in none
  effects::RecordedEffect effect;
};

/// Effects that entered the log while their job ran, or with its end.
struct StreamedEffects {
  int64_t count = 0;
  int64_t first = 0, last = 0;  ///< their sequence numbers; 0: there is none

  /// More of them, which were committed with these rows.
  void add(const std::vector<storage::EffectRow>& rows) {
    if (rows.empty()) return;
    if (count == 0) first = rows.front().sequence;
    last = rows.back().sequence;
    count += static_cast<int64_t>(rows.size());
  }
};

struct JobTimings {
  double parse_ms = 0, lower_ms = 0, bind_ms = 0, queue_ms = 0, run_ms = 0, commit_ms = 0;
};

/// The outcome of a job.
struct JobResult {
  std::string job;  ///< empty when no row was written
  std::vector<JobValue> results;
  std::vector<JobEffect> effects;           ///< of an atomic job
  std::optional<StreamedEffects> streamed;  ///< of a streaming one, whose effects are in the log alone
  std::vector<std::optional<sharding::TensorSharding>> argument_shardings;
  std::vector<int64_t> argument_ranks;
  std::vector<std::string> warnings;
  std::optional<PartitionCount> partitions;  ///< where the request spoke of parts
  JobTimings timings;
  int64_t planned_peak_bytes = 0;
  device::RunStats stats;
  compile::PlanRef plan;
  std::shared_ptr<core::MemoryReservation> answer_memory;  ///< for its text or results, if large
  std::shared_ptr<const void> result_memory;  ///< what `results` have of the memory of jobs, if they are large
  kernels::MachineRates machine;              ///< of a run with a profile: the limits of its steps
  std::optional<compile::Traffic> traffic;    ///< of a run with a profile, on devices of several processes
  /// Took some microseconds and waits for nothing, and so will every run of the same request, if it need not be
  /// compiled again.
  bool is_brief = false;
};

/// Makes the document that a job's row keeps of its result.
using ResultEncoder = std::function<std::string(const JobResult&)>;

}  // namespace meshd::jobs
