// /v1/programs/{id}:explain, :partition, :stablehlo and :suggest: static explanations of programs.
#include <fmt/core.h>

#include <chrono>
#include <span>

#include "api/codecs/explain/explain_codec.h"
#include "api/fields/accept.h"
#include "api/routes/routes.h"
#include "service/jobs/inspect.h"

namespace meshd::api {
namespace {

// A longer search returns what it has found by then.
constexpr std::chrono::seconds kLongestSearch{10};

// The body of a request that places a program; none at all is the same as {}.
jobs::JobRequest read_assignment(Request& request, Services& services, const compile::ParsedRef& program) {
  MeshFinder meshes(services.meshes, request.principal);
  return decode_assignment(optional_body_json(request, BodyPolicy::kJson), program, services.compiler, meshes);
}

constexpr std::string_view kFormatOnly[] = {"format"};
constexpr std::string_view kFormatAndStages[] = {"format", "stages"};

// The form that ?format= or else Accept selects, the first of the names that matches.
std::string chosen_form(const Request& request, const std::vector<std::pair<std::string, std::string>>& forms,
                        std::span<const std::string_view> known = kFormatOnly) {
  request.query.require_known(known);
  std::string names;
  for (const auto& [name, type] : forms) names += fmt::format("{}{} ({})", names.empty() ? "" : ", ", name, type);
  if (const auto format = request.query.get("format")) {
    for (const auto& [name, type] : forms) {
      if (*format == name) return name;
    }
    throw core::Error("invalid_query", fmt::format("format: '{}' is not one of {}", *format, names));
  }
  std::vector<std::string_view> offered;
  for (const auto& [name, type] : forms) offered.push_back(type);
  if (const auto best = preferred_media(request, offered)) return forms[*best].first;
  throw core::Error("not_acceptable",
                    fmt::format("there is {}; Accept: {} takes none of them", names, request.headers.joined("Accept")));
}

// The program that every device runs.
struct PartitionedProgram {
  std::string program;
  int64_t devices = 0;
  std::string text;
};

}  // namespace

template <>
Schema<PartitionedProgram> make_schema() {
  using Doc = PartitionedProgram;
  return {"PartitionedProgram",
          {{"program", &Doc::program},
           {"devices", &Doc::devices},
           {"format", [](const Doc&) { return "stablehlo"; }, {.words = {"stablehlo"}}},
           {"text", &Doc::text}}};
}

Schemas explain_schemas() {
  return {&schema<PlacementInput>(), &schema<ExplanationDocument>(), &schema<PartitionedProgram>(),
          &schema<SuggestionsDocument>()};
}

std::vector<Route> explain_routes(Services& services) {
  return {
      {"POST", "/v1/programs/{id}:explain", "explainProgram", BodyPolicy::kJson, RunOn::kWorker, Access::kReader,
       [&services](Request& request) {
         const std::string form =
             chosen_form(request, {{"json", "application/json"}, {"text", "text/plain"}, {"svg", "image/svg+xml"}},
                         kFormatAndStages);
         const auto list = request.query.get("stages");
         if (list && form != "json") throw core::Error("invalid_query", "stages: only the answer in JSON has them");
         const auto stages = list ? compile::read_stage_names(*list) : std::vector<std::string_view>();
         const auto stored = services.programs.get(request.capture("id"), request.principal);
         const jobs::JobRequest asked = read_assignment(request, services, stored.parsed);
         const auto [explanation, snapshots] = core::in_text(asked.program->text, {}, [&] {
           return jobs::explain(asked, services.compiler.settings(), stages, services.processes);
         });
         Response out = form == "text"  ? text(200, explanation_text(explanation))
                        : form == "svg" ? content(200, "image/svg+xml", explanation_svg(explanation))
                                        : json_of(200, ExplanationDocument{explanation, snapshots});
         return std::move(out).with("Vary", "Accept");
       }},
      {"POST", "/v1/programs/{id}:partition", "partitionProgram", BodyPolicy::kJson, RunOn::kWorker, Access::kReader,
       [&services](Request& request) {
         const std::string form = chosen_form(request, {{"text", "text/plain"}, {"json", "application/json"}});
         const auto stored = services.programs.get(request.capture("id"), request.principal);
         const jobs::JobRequest asked = read_assignment(request, services, stored.parsed);
         const jobs::DeviceProgram program =
             core::in_text(asked.program->text, {}, [&] { return jobs::device_program(asked); });
         Response out = form == "text"
                            ? text(200, program.text)
                            : json_of(200, PartitionedProgram{stored.id, program.device_count, program.text});
         return std::move(out).with("Vary", "Accept");
       }},
      {"POST", "/v1/programs/{id}:stablehlo", "lowerProgram", BodyPolicy::kJson, RunOn::kWorker, Access::kReader,
       [&services](Request& request) {
         static_cast<void>(chosen_form(request, {{"text", "text/plain"}}));
         const auto stored = services.programs.get(request.capture("id"), request.principal);
         return text(200, jobs::stablehlo_text(read_assignment(request, services, stored.parsed)));
       }},
      {"POST", "/v1/programs/{id}:suggest", "suggestShardings", BodyPolicy::kJson, RunOn::kWorker, Access::kReader,
       [&services](Request& request) {
         static_cast<void>(chosen_form(request, {{"json", "application/json"}}));
         const auto stored = services.programs.get(request.capture("id"), request.principal);
         const jobs::JobRequest asked = read_assignment(request, services, stored.parsed);
         const auto end = services.clock.steady() + kLongestSearch;
         const compile::Suggestions found = jobs::suggest(asked, services.compiler.settings(), [&] {
           return services.clock.steady() >= end || request.client_gone();
         });
         return json_of(200, SuggestionsDocument{found, *asked.program});
       }},
  };
}

}  // namespace meshd::api
