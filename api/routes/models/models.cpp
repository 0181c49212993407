// /v1/models: programs with named inputs and outputs and values bound to the rest, which /v2 serves.
#include <fmt/core.h>

#include "api/codecs/model_codec.h"
#include "api/codecs/runs/inference_codec.h"
#include "api/routes/models/model_paths.h"
#include "api/routes/routes.h"

namespace meshd::api {

int64_t version_of(std::string_view text) {
  if (const auto version = whole_number(text)) return *version;
  throw core::Error("not_found", fmt::format("versions of models are numbers, got {}", quote(text)));
}

std::optional<int64_t> version_in(const Request& request) {
  for (const auto& [name, text] : request.captures) {
    if (name == "version") return version_of(text);
  }
  return std::nullopt;
}

std::optional<int64_t> version_asked(const Request& request) {
  request.query.require_known({"version"});
  const auto text = request.query.get("version");
  return text ? std::optional(version_of(*text)) : std::nullopt;
}

models::ModelRef model_of(const Request& request, Services& services) {
  return services.models.find(request.capture("name"), version_in(request), request.principal);
}

namespace {

ModelDocument document_for(models::ModelRef model, std::string_view reader) {
  const bool is_own = model->spec().principal == reader;
  return {std::move(model), is_own, {}};
}

Response model_document(int status, Request& request, Services& services, models::ModelRef model) {
  ModelDocument document = document_for(std::move(model), request.principal);
  for (const models::ModelRef& version : services.models.versions(document.model->spec().name, request.principal))
    document.versions.push_back(version->spec().version);
  return json_of(status, document);
}

Response put_model(Request& request, Services& services) {
  const std::string& name = request.capture("name");
  if (!models::is_model_name(name)) {
    throw core::Error("invalid_request",
                      "the name in the path: expected 1 to 128 letters, digits, '_', '-' and '.', and "
                      "not 'stats', got " +
                          quote(name));
  }
  const std::string body = body_text(request, BodyPolicy::kJson);
  models::ModelSpec spec =
      decode_model(body, request.principal, name,
                   {services.arrays, services.programs, services.compiler, services.pool, &request.memory});
  auto [model, is_new] = services.models.put(std::move(spec), request.waiter);
  const std::string location = fmt::format("/v1/models/{}?version={}", name, model->spec().version);
  return model_document(is_new ? 201 : 200, request, services, std::move(model)).with("Location", location);
}

Response list_models(Request& request, Services& services) {
  const auto page = services.models.list(request.principal, page_of(request));
  Page<ModelDocument> out{{}, page.next};
  for (const models::ModelRef& model : page.items) out.items.push_back(document_for(model, request.principal));
  return list_response(request, out);
}

}  // namespace

std::vector<Route> model_routes(Services& services, const ProcessFacts& facts) {
  std::vector<Route> out{
      {"GET", "/v1/models", "listModels", BodyPolicy::kNone, RunOn::kWorker, Access::kReader,
       [&services](Request& request) { return list_models(request, services); }},
      {"GET", "/v1/models/{name}", "getModel", BodyPolicy::kNone, RunOn::kWorker, Access::kReader,
       [&services](Request& request) {
         return model_document(
             200, request, services,
             services.models.find(request.capture("name"), version_asked(request), request.principal));
       }},
      {"PUT", "/v1/models/{name}", "putModel", BodyPolicy::kJson, RunOn::kWorker, Access::kUser,
       [&services](Request& request) { return put_model(request, services); }},
      {"DELETE", "/v1/models/{name}", "deleteModel", BodyPolicy::kNone, RunOn::kWorker, Access::kUser,
       [&services](Request& request) {
         services.models.remove(request.capture("name"), version_asked(request), request.principal);
         return no_content();
       }},
  };
  for (auto&& rows : {inference_routes(services, facts), model_metadata_routes(services, facts),
                      repository_routes(services), refused_extension_routes()}) {
    out.insert(out.end(), rows.begin(), rows.end());
  }
  return out;
}

}  // namespace meshd::api
