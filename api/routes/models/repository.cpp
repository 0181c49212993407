// /v2/repository: which models there are, and whether they take requests.
#include "api/codecs/model_codec.h"
#include "api/codecs/runs/inference_codec.h"
#include "api/routes/models/model_paths.h"

namespace meshd::api {
namespace {

struct IndexEntry {
  std::string name, version;
  models::Model::Status status;
};

struct IndexRequest {
  std::optional<bool> ready;
};

struct LoadRequest {
  const Json* parameters = nullptr;
};

}  // namespace

template <>
Schema<IndexEntry> make_schema() {
  using Doc = IndexEntry;
  return {"RepositoryIndexEntry",
          {{"name", &Doc::name},
           {"version", &Doc::version},
           {"state",
            [](const Doc& doc) { return models::to_string(doc.status.state); },
            {.words = {"LOADING", "READY", "UNAVAILABLE"}}},
           {"reason", [](const Doc& doc) -> std::string_view { return doc.status.reason; }}}};
}

template <>
Schema<IndexRequest> make_schema() {
  return {"RepositoryIndexRequest", {{"ready", &IndexRequest::ready}}};
}

template <>
Schema<LoadRequest> make_schema() {
  return {"RepositoryModelRequest", {{"parameters", &LoadRequest::parameters, {.like = map_of<const Json*>}}}};
}

namespace {

Response index_of(Request& request, Services& services) {
  const auto wanted = read_json<IndexRequest>(optional_body_json(request, BodyPolicy::kJson), "invalid_request");
  std::vector<IndexEntry> out;
  for (const models::ModelRef& model : services.models.visible(request.principal)) {
    const models::ModelSpec& spec = model->spec();
    IndexEntry entry{spec.name, std::to_string(spec.version), model->status()};
    if (!wanted.ready.value_or(false) || entry.status.state == models::ModelState::kReady)
      out.push_back(std::move(entry));
  }
  return json(200, to_json(out));
}

// The client of Triton sends unload_dependents, which concerns ensembles; there are none.
void read_load_request(Request& request, Services& services) {
  // That there is no such model is said before what is wrong with the body, as for every id of a path.
  static_cast<void>(services.models.find(request.capture("name"), std::nullopt, request.principal));
  const Json body = optional_body_json(request, BodyPolicy::kJson);
  const auto wanted = read_json<LoadRequest>(body, "invalid_request");
  core::Diagnostics wrong;
  const JsonObject* parameters =
      wanted.parameters == nullptr ? nullptr : expect_object(*wanted.parameters, "/parameters", wrong);
  wrong.throw_if_any("invalid_request");
  if (parameters == nullptr) return;
  for (const auto& [name, value] : *parameters) {
    if (name == "unload_dependents") continue;
    throw core::Error(
        "unsupported_extension",
        "loading a model with a configuration or files of the request is not supported: PUT /v1/models/NAME",
        {{"/parameters/" + pointer_token(name), "is not supported"}});
  }
}

// The protocol wants 200, not 204.
Response empty() { return {}; }

}  // namespace

Schemas model_schemas() {
  Schemas out = model_metadata_schemas();
  out.insert(out.end(), {&model_input_schema(), &schema<ModelDocument>(), &JsonCodec<Page<ModelDocument>>::of(),
                         &inference_request_schema(), &inference_response_schema(), &schema<IndexEntry>(),
                         &schema<IndexRequest>(), &schema<LoadRequest>()});
  return out;
}

std::vector<Route> repository_routes(Services& services) {
  return {
      {"POST", "/v2/repository/index", "getRepositoryIndex", BodyPolicy::kInference, RunOn::kWorker, Access::kReader,
       [&services](Request& request) { return index_of(request, services); }},
      {"POST", "/v2/repository/models/{name}/load", "loadModel", BodyPolicy::kInference, RunOn::kWorker, Access::kUser,
       [&services](Request& request) {
         const std::string& name = request.capture("name");
         read_load_request(request, services);
         services.models.load(name, request.principal, request.waiter);
         return empty();
       }},
      {"POST", "/v2/repository/models/{name}/unload", "unloadModel", BodyPolicy::kInference, RunOn::kWorker,
       Access::kUser,
       [&services](Request& request) {
         const std::string& name = request.capture("name");
         read_load_request(request, services);
         services.models.unload(name, request.principal);
         return empty();
       }},
  };
}

}  // namespace meshd::api
