#include "api/codecs/runs/job_answer_codec.h"

#include <chrono>
#include <cmath>
#include <set>
#include <span>

#include "api/codecs/mesh_codec.h"
#include "api/codecs/runs/effect_codec.h"
#include "api/codecs/runs/run_profile_codec.h"
#include "api/codecs/value.h"
#include "service/arrays/regions/region.h"

namespace meshd::api {
namespace {

// What a run took.
struct RunStatistics {
  const jobs::JobResult& result;
};

struct RunAnswer {
  const jobs::JobResult& result;
  const jobs::ResultForm& form;
};

struct RunResult {
  const jobs::JobValue& value;
  bool base64 = false;

  [[nodiscard]] bool is_inline() const { return value.array == nullptr && !value.shards.empty(); }
};

struct RunShardings {
  std::vector<ShardingDocument> arguments, results;
};

// Row-major bytes of a value: its only shard's, or gathered.
template <typename Elements>
Elements elements_of(const jobs::JobValue& value, const std::function<Elements(std::span<const std::byte>)>& make) {
  arrays::GatherReader reader(value.layout, tensor::size_bytes(value.type.dtype), value.shards,
                              arrays::full_slices(value.type.dims));
  const auto pieces = reader.pieces(1);
  if (pieces && pieces->size() == 1) return make(pieces->front());
  auto bytes = std::make_shared<std::vector<std::byte>>(static_cast<size_t>(reader.total_bytes()));
  reader.read(*bytes);
  Elements out = make(*bytes);
  out.held = bytes;
  return out;
}

bool names_several_meshes(const jobs::JobResult& result) {
  std::set<std::string_view> names;
  for (const auto& sharding : result.argument_shardings) {
    if (sharding) names.insert(sharding->mesh_name);
  }
  for (const jobs::JobValue& value : result.results) {
    if (value.sharding) names.insert(value.sharding->mesh_name);
  }
  names.erase("");
  return names.size() > 1;
}

RunShardings shardings_of(const jobs::JobResult& result) {
  const bool several = names_several_meshes(result);
  RunShardings out;
  for (size_t i = 0; i < result.argument_shardings.size(); ++i) {
    const auto& sharding = result.argument_shardings[i];
    out.arguments.push_back(
        sharding_document(sharding, sharding ? sharding->rank() : result.argument_ranks[i], several));
  }
  for (const jobs::JobValue& value : result.results)
    out.results.push_back(sharding_document(value.sharding, value.type.rank(), several));
  return out;
}

// Why a job failed.
struct JobError {
  const storage::JobRow& row;
};
// What a job waits for.
struct WaitOfClient {
  const jobs::ClientWait& wait;
};
struct JobProgress {
  const jobs::JobView& view;
};

// In seconds, cut to milliseconds.
double seconds_of(std::chrono::nanoseconds time) {
  return static_cast<double>(std::chrono::duration_cast<std::chrono::milliseconds>(time).count()) / 1000;
}

}  // namespace

template <>
Schema<RunResult> make_schema() {
  using Doc = RunResult;
  return {"RunResult",
          {{"dtype", [](const Doc& doc) { return doc.value.type.dtype; }},
           {"shape",
            [](const Doc& doc) -> std::span<const int64_t> { return doc.value.type.dims; },
            {.low = 0, .high = kLargestExact - 1}},
           {"data",
            [](const Doc& doc) -> std::optional<NestedElements> {
              if (!doc.is_inline() || doc.base64) return std::nullopt;
              return elements_of<NestedElements>(doc.value, [&](std::span<const std::byte> bytes) {
                return NestedElements{doc.value.type, bytes};
              });
            }},
           {"base64",
            [](const Doc& doc) -> std::optional<Base64Elements> {
              if (!doc.is_inline() || !doc.base64) return std::nullopt;
              return elements_of<Base64Elements>(
                  doc.value, [](std::span<const std::byte> bytes) { return Base64Elements{bytes}; });
            }},
           {"array",
            [](const Doc& doc) {
              return doc.value.array ? std::optional<std::string_view>(doc.value.array->info().id) : std::nullopt;
            }},
           {"version", [](const Doc& doc) { return unless_zero(doc.is_inline() ? 0 : doc.value.version); }, {.low = 1}},
           {"name", [](const Doc& doc) { return unless_empty(doc.value.result_info); }}}};
}

template <>
Schema<RunShardings> make_schema() {
  return {"RunShardings", {{"arguments", &RunShardings::arguments}, {"results", &RunShardings::results}}};
}

template <>
Schema<jobs::PartitionCount> make_schema() {
  using Doc = jobs::PartitionCount;
  return {"PartitionCount",
          {{"num_partitions", &Doc::count, {.low = 1}},
           {"local_num_partitions", &Doc::local, {.low = 1}},
           {"devices", &Doc::devices, {.low = 0, .high = kLargestExact - 1}}}};
}

template <>
Schema<RunStatistics> make_schema() {
  using Doc = RunStatistics;
  return {"RunStatistics",
          {{"steps", [](const Doc& doc) { return doc.result.stats.steps; }, {.low = 0}},
           {"planned_peak_bytes", [](const Doc& doc) { return doc.result.planned_peak_bytes; }, {.low = 0}},
           {"peak_bytes", [](const Doc& doc) { return doc.result.stats.peak_bytes; }, {.low = 0}},
           {"queue_ms", [](const Doc& doc) { return doc.result.timings.queue_ms; }, {.low = 0}},
           {"run_ms", [](const Doc& doc) { return doc.result.timings.run_ms; }, {.low = 0}}}};
}

template <>
Schema<device::FirstNonfinite> make_schema() {
  using Doc = device::FirstNonfinite;
  return {"FirstNonfinite",
          {{"value", [](const Doc& doc) { return doc.is_nan ? "nan" : "infinity"; }, {.words = {"nan", "infinity"}}},
           {"op", &Doc::op},
           {"line", [](const Doc& doc) { return unless_zero(doc.location.line); }, {.low = 1}},
           {"device", &Doc::device, {.low = 0}}}};
}

template <>
Schema<jobs::StreamedEffects> make_schema() {
  using Doc = jobs::StreamedEffects;
  return {"StreamedEffects",
          {{"count", &Doc::count, {.low = 0}},
           {"first", [](const Doc& doc) { return unless_zero(doc.first); }, {.low = 1}},
           {"last", [](const Doc& doc) { return unless_zero(doc.last); }, {.low = 1}}}};
}

template <>
Schema<RunAnswer> make_schema() {
  using Doc = RunAnswer;
  return {"RunAnswer",
          {{"job", [](const Doc& doc) { return unless_empty(doc.result.job); }},
           {"results",
            [](const Doc& doc) {
              std::vector<RunResult> out;
              for (const jobs::JobValue& value : doc.result.results) out.push_back({value, doc.form.base64});
              return out;
            }},
           {"effects",
            [](const Doc& doc) {
              std::vector<EffectDocument> out;
              const ValueEncoding encoding = doc.form.base64 ? ValueEncoding::kBase64 : ValueEncoding::kJson;
              for (const jobs::JobEffect& effect : doc.result.effects)
                out.push_back(effect_document(effect, doc.result.job, encoding));
              return out;
            }},
           {"streamed", [](const Doc& doc) { return doc.result.streamed; }},
           {"result_tree",
            [](const Doc& doc) {
              return doc.form.result_tree.empty() ? std::nullopt : std::optional(Raw{doc.form.result_tree});
            }},
           {"partitions", [](const Doc& doc) { return doc.result.partitions; }},
           {"shardings", [](const Doc& doc) { return shardings_of(doc.result); }},
           {"warnings",
            [](const Doc& doc) {
              return doc.result.warnings.empty() ? std::nullopt : std::optional(std::span(doc.result.warnings));
            }},
           {"first_nonfinite", [](const Doc& doc) { return doc.result.stats.first_nonfinite; }},
           {"profile",
            [](const Doc& doc) {
              const auto& profile = doc.result.stats.profile;
              return profile ? std::optional(RunProfileDocument{
                                   *doc.result.plan, *profile, doc.result.machine, doc.result.traffic,
                                   doc.result.stats.argument_bytes_sent, doc.result.stats.result_bytes_received})
                             : std::nullopt;
            }},
           {"statistics", [](const Doc& doc) { return RunStatistics{doc.result}; }}}};
}

const SchemaBase& run_answer_schema() { return schema<RunAnswer>(); }

std::string encode_result(const jobs::JobResult& result, const jobs::ResultForm& form) {
  return to_json(RunAnswer{result, form});
}

template <>
Schema<WaitOfClient> make_schema() {
  using Doc = WaitOfClient;
  return {"ClientWait",
          {{"callback", [](const Doc& doc) { return unless_zero(doc.wait.request); }, {.low = 1}},
           {"infeed", [](const Doc& doc) {
              return doc.wait.request > 0 ? std::nullopt : std::optional<std::string_view>(doc.wait.queue);
            }}}};
}

template <>
Schema<device::RunLoop> make_schema() {
  using Doc = device::RunLoop;
  return {"LoopProgress",
          {{"line", &Doc::line, {.low = 0}},
           {"iterations_done", &Doc::iterations_done, {.low = 0}},
           {"iterations", &Doc::iterations, {.low = 0}}}};
}

template <>
Schema<JobProgress> make_schema() {
  using Doc = JobProgress;
  return {"JobProgress",
          {{"steps_done", [](const Doc& doc) { return doc.view.progress->steps_done; }, {.low = 0}},
           {"steps_total", [](const Doc& doc) { return doc.view.progress->steps_total; }, {.low = 0}},
           {"percent",
            [](const Doc& doc) {
              const auto done = doc.view.progress->fraction();
              return done ? std::optional(std::floor(*done * 1000) / 10) : std::nullopt;
            },
            {.low = 0, .high = 100}},
           {"running_seconds", [](const Doc& doc) { return seconds_of(doc.view.progress->running_for); }, {.low = 0}},
           {"remaining_seconds",
            [](const Doc& doc) {
              const auto left = doc.view.progress->remaining();
              return left ? std::optional(seconds_of(*left)) : std::nullopt;
            },
            {.low = 0}},
           {"loop", [](const Doc& doc) { return doc.view.progress->loop; }},
           {"op", [](const Doc& doc) { return std::string_view(doc.view.progress->op); }},
           {"line", [](const Doc& doc) { return doc.view.progress->line; }, {.low = 0}},
           {"effects", [](const Doc& doc) { return doc.view.effect_count; }, {.low = 0}},
           {"waits_for", [](const Doc& doc) {
              return doc.view.waits ? std::optional(WaitOfClient{*doc.view.waits}) : std::nullopt;
            }}}};
}

template <>
Schema<JobProgressEvent> make_schema() {
  using Doc = JobProgressEvent;
  return {"JobProgressEvent",
          {{"job", [](const Doc& doc) -> std::string_view { return doc.view.row.id; }},
           {"progress", [](const Doc& doc) { return JobProgress{doc.view}; }}}};
}

template <>
Schema<JobError> make_schema() {
  return {"JobError",
          {{"code", [](const JobError& error) -> std::string_view { return error.row.error_code; }},
           {"detail", [](const JobError& error) -> std::string_view { return error.row.error_detail; }}}};
}

template <>
Schema<JobDocument> make_schema() {
  using Doc = JobDocument;
  return {"Job",
          {{"id", [](const Doc& doc) -> std::string_view { return doc.view.row.id; }},
           {"session", [](const Doc& doc) { return or_null(doc.view.row.session); }},
           {"number", [](const Doc& doc) { return doc.view.row.number; }, {.low = 0}},
           {"program", [](const Doc& doc) { return unless_empty(doc.view.row.program); }},
           {"state",
            [](const Doc& doc) { return storage::to_string(doc.view.row.state); },
            {.words = {"queued", "running", "done", "failed", "cancelled"}}},
           {"attempt", [](const Doc& doc) { return doc.view.row.attempt; }, {.low = 1}},
           {"created", [](const Doc& doc) { return doc.view.row.created; }},
           {"started", [](const Doc& doc) { return doc.view.row.started; }},
           {"finished", [](const Doc& doc) { return doc.view.row.finished; }},
           {"deadline", [](const Doc& doc) { return doc.view.row.deadline; }},
           {"arrays",
            [](const Doc& doc) {
              // Of a job that is done as well: it may have run before the answer that accepts it was written.
              const storage::JobRow& row = doc.view.row;
              const bool will_be = !doc.view.is_over() || row.state == storage::JobState::kDone;
              return will_be && !row.result_arrays.empty() ? std::optional(std::span(row.result_arrays)) : std::nullopt;
            }},
           {"progress",
            [](const Doc& doc) { return doc.view.progress ? std::optional(JobProgress{doc.view}) : std::nullopt; }},
           {"error",
            [](const Doc& doc) {
              return doc.view.row.error_code.empty() ? std::nullopt : std::optional(JobError{doc.view.row});
            }},
           {"environment",
            [](const Doc& doc) { return doc.with_answer ? unless_empty(doc.view.environment) : std::nullopt; }},
           {"answer",
            [](const Doc& doc) {
              const bool has_answer = doc.with_answer && !doc.view.row.answer.empty();
              return has_answer ? std::optional(Raw{doc.view.row.answer}) : std::nullopt;
            },
            {.like = json_type<RunAnswer>}}}};
}

}  // namespace meshd::api
