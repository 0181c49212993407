// /v2: what a server, its models and their statistics are, as the Open Inference Protocol and Triton's extensions
// say it.
#include <chrono>
#include <map>

#include "api/codecs/runs/inference_codec.h"
#include "api/json/schema_map.h"
#include "api/routes/models/model_paths.h"

namespace meshd::api {
namespace {

struct ServerMetadata {
  std::string name, version;
  std::vector<std::string> extensions;
};

struct InferenceTensor {
  const models::ModelSpec& spec;
  const models::TensorSpec& tensor;
};

struct ModelMetadata {
  const models::ModelSpec& spec;
  std::vector<std::string> versions;
};

struct ConfigTensor {
  const models::TensorSpec& tensor;
};

struct DynamicBatching {
  const models::Batching& batching;
};

struct InstanceGroup {
  int64_t count = 1;
};

struct ModelConfig {
  const models::ModelSpec& spec;
};

struct InferenceStatistics {
  const models::ModelStatistics& of;
};

struct BatchStatistics {
  int64_t batch_size = 1;
  models::ModelStatistics::OfSize times;
};

struct VersionStatistics {
  const models::ModelSpec& spec;
  models::ModelStatistics of;
};

struct StatisticsDocument {
  std::vector<VersionStatistics> models;
};

std::string_view platform_of(const models::ModelSpec& spec) {
  return spec.program != nullptr && spec.program->numpy != nullptr ? "meshd_numpy" : "meshd_stablehlo";
}

template <typename Shown, typename... Before>
std::vector<Shown> tensors_of(const std::vector<models::TensorSpec>& tensors, const Before&... before) {
  std::vector<Shown> out;
  for (const models::TensorSpec& tensor : tensors) out.push_back({before..., tensor});
  return out;
}

}  // namespace

template <>
Schema<ServerMetadata> make_schema() {
  using Doc = ServerMetadata;
  return {"ServerMetadata", {{"name", &Doc::name}, {"version", &Doc::version}, {"extensions", &Doc::extensions}}};
}

template <>
Schema<InferenceTensor> make_schema() {
  using Doc = InferenceTensor;
  return {"InferenceTensor",
          {{"name", [](const Doc& doc) -> std::string_view { return doc.tensor.name; }},
           {"datatype", [](const Doc& doc) { return tensor::row(doc.tensor.dtype).oip; }},
           {"shape",
            [](const Doc& doc) { return models::shown_dims(doc.tensor.dims, doc.spec.max_batch_size > 0); },
            {.low = -1}}}};
}

template <>
Schema<ModelMetadata> make_schema() {
  using Doc = ModelMetadata;
  return {"ModelMetadata",
          {{"name", [](const Doc& doc) -> std::string_view { return doc.spec.name; }},
           {"versions", &Doc::versions},
           {"platform", [](const Doc& doc) { return platform_of(doc.spec); }},
           {"inputs", [](const Doc& doc) { return tensors_of<InferenceTensor>(doc.spec.inputs, doc.spec); }},
           {"outputs", [](const Doc& doc) { return tensors_of<InferenceTensor>(doc.spec.outputs, doc.spec); }}}};
}

template <>
Schema<ConfigTensor> make_schema() {
  using Doc = ConfigTensor;
  return {"ConfigTensor",
          {{"name", [](const Doc& doc) -> std::string_view { return doc.tensor.name; }},
           {"data_type", [](const Doc& doc) { return "TYPE_" + std::string(tensor::row(doc.tensor.dtype).oip); }},
           {"dims", [](const Doc& doc) { return models::shown_dims(doc.tensor.dims); }, {.low = -1}}}};
}

template <>
Schema<DynamicBatching> make_schema() {
  using Doc = DynamicBatching;
  return {"DynamicBatching",
          {{"preferred_batch_size", [](const Doc& doc) { return doc.batching.preferred_sizes; }},
           {"max_queue_delay_microseconds", [](const Doc& doc) { return int64_t{doc.batching.queue_delay.count()}; }},
           {"priority_levels", [](const Doc& doc) { return doc.batching.priority_levels; }},
           {"default_priority_level", [](const Doc& doc) { return doc.batching.default_priority; }}}};
}

template <>
Schema<InstanceGroup> make_schema() {
  using Doc = InstanceGroup;
  return {"InstanceGroup",
          {{"name", [](const Doc&) { return "cpu"; }},
           {"kind", [](const Doc&) { return "KIND_CPU"; }},
           {"count", &Doc::count}}};
}

template <>
Schema<ModelConfig> make_schema() {
  using Doc = ModelConfig;
  return {"ModelConfig",
          {{"name", [](const Doc& doc) -> std::string_view { return doc.spec.name; }},
           {"platform", [](const Doc& doc) { return platform_of(doc.spec); }},
           {"backend", [](const Doc&) { return "meshd"; }},
           {"max_batch_size", [](const Doc& doc) { return doc.spec.max_batch_size; }},
           {"input", [](const Doc& doc) { return tensors_of<ConfigTensor>(doc.spec.inputs); }},
           {"output", [](const Doc& doc) { return tensors_of<ConfigTensor>(doc.spec.outputs); }},
           {"dynamic_batching",
            [](const Doc& doc) {
              return doc.spec.max_batch_size > 0 ? std::optional(DynamicBatching{doc.spec.batching}) : std::nullopt;
            }},
           {"instance_group", [](const Doc& doc) { return std::vector{InstanceGroup{doc.spec.batching.instances}}; }}}};
}

template <>
Schema<models::DurationCount> make_schema() {
  using Doc = models::DurationCount;
  return {"DurationCount", {{"count", &Doc::count}, {"ns", &Doc::nanoseconds}}};
}

template <>
Schema<InferenceStatistics> make_schema() {
  using Doc = InferenceStatistics;
  return {"InferenceStatistics",
          {{"success", [](const Doc& doc) { return doc.of.success; }},
           {"fail", [](const Doc& doc) { return doc.of.fail; }},
           {"queue", [](const Doc& doc) { return doc.of.queue; }},
           {"compute_input", [](const Doc& doc) { return doc.of.input; }},
           {"compute_infer", [](const Doc& doc) { return doc.of.infer; }},
           {"compute_output", [](const Doc& doc) { return doc.of.output; }},
           {"cache_hit", [](const Doc&) { return models::DurationCount{}; }},
           {"cache_miss", [](const Doc&) { return models::DurationCount{}; }}}};
}

template <>
Schema<BatchStatistics> make_schema() {
  using Doc = BatchStatistics;
  return {"BatchStatistics",
          {{"batch_size", &Doc::batch_size},
           {"compute_input", [](const Doc& doc) { return doc.times.input; }},
           {"compute_infer", [](const Doc& doc) { return doc.times.infer; }},
           {"compute_output", [](const Doc& doc) { return doc.times.output; }}}};
}

template <>
Schema<VersionStatistics> make_schema() {
  using Doc = VersionStatistics;
  return {"VersionStatistics",
          {{"name", [](const Doc& doc) -> std::string_view { return doc.spec.name; }},
           {"version", [](const Doc& doc) { return std::to_string(doc.spec.version); }},
           {"last_inference",
            [](const Doc& doc) {
              using std::chrono::milliseconds;
              const auto last = doc.of.last_inference.value_or(core::WallTime());
              return int64_t{std::chrono::duration_cast<milliseconds>(last.time_since_epoch()).count()};
            }},
           {"inference_count", [](const Doc& doc) { return doc.of.inference_count; }},
           {"execution_count", [](const Doc& doc) { return doc.of.execution_count; }},
           {"inference_stats", [](const Doc& doc) { return InferenceStatistics{doc.of}; }},
           {"response_stats", [](const Doc&) { return std::map<std::string, std::string>(); }},
           {"batch_stats",
            [](const Doc& doc) {
              std::vector<BatchStatistics> out;
              for (const auto& [size, times] : doc.of.batches) out.push_back({size, times});
              return out;
            }},
           {"memory_usage", [](const Doc&) { return std::vector<int64_t>(); }}}};
}

template <>
Schema<StatisticsDocument> make_schema() {
  return {"ModelStatistics", {{"model_stats", &StatisticsDocument::models}}};
}

namespace {

Response metadata_of(const Request& request, Services& services) {
  const models::ModelRef model = model_of(request, services);
  ModelMetadata document{model->spec(), {}};
  for (const models::ModelRef& version : services.models.versions(model->spec().name, request.principal))
    document.versions.push_back(std::to_string(version->spec().version));
  return json_of(200, document);
}

Response statistics_of(const std::vector<models::ModelRef>& all) {
  StatisticsDocument out;
  for (const models::ModelRef& model : all) out.models.push_back({model->spec(), model->batcher().statistics()});
  return json_of(200, out);
}

}  // namespace

Schemas model_metadata_schemas() {
  return {&schema<ServerMetadata>(), &schema<ModelMetadata>(), &schema<ModelConfig>(), &schema<StatisticsDocument>()};
}

std::vector<Route> model_metadata_routes(Services& services, const ProcessFacts& facts) {
  const auto server = [version = facts.version](Request&) {
    return json_of(200, ServerMetadata{"meshd",
                                       version,
                                       {"binary_tensor_data", "model_configuration", "model_repository",
                                        "model_repository(unload_dependents)", "statistics"}});
  };
  const auto metadata = [&services](Request& request) { return metadata_of(request, services); };
  const auto config = [&services](Request& request) {
    return json_of(200, ModelConfig{model_of(request, services)->spec()});
  };
  return {
      {"GET", "/v2", "getServerMetadata", BodyPolicy::kNone, RunOn::kReactor, Access::kReader, server},
      {"GET", "/v2/", "getServerMetadataAsPublished", BodyPolicy::kNone, RunOn::kReactor, Access::kReader, server},
      {"GET", "/v2/models/{name}", "getModelMetadata", BodyPolicy::kNone, RunOn::kReactor, Access::kReader, metadata},
      {"GET", "/v2/models/{name}/versions/{version}", "getModelVersionMetadata", BodyPolicy::kNone, RunOn::kReactor,
       Access::kReader, metadata},
      {"GET", "/v2/models/{name}/config", "getModelConfig", BodyPolicy::kNone, RunOn::kReactor, Access::kReader,
       config},
      {"GET", "/v2/models/{name}/versions/{version}/config", "getModelVersionConfig", BodyPolicy::kNone,
       RunOn::kReactor, Access::kReader, config},
      {"GET", "/v2/models/stats", "getStatistics", BodyPolicy::kNone, RunOn::kWorker, Access::kReader,
       [&services](Request& request) { return statistics_of(services.models.visible(request.principal)); }},
      {"GET", "/v2/models/{name}/stats", "getModelStatistics", BodyPolicy::kNone, RunOn::kWorker, Access::kReader,
       [&services](Request& request) {
         return statistics_of(services.models.versions(request.capture("name"), request.principal));
       }},
      {"GET", "/v2/models/{name}/versions/{version}/stats", "getModelVersionStatistics", BodyPolicy::kNone,
       RunOn::kWorker, Access::kReader,
       [&services](Request& request) { return statistics_of({model_of(request, services)}); }},
  };
}

}  // namespace meshd::api
