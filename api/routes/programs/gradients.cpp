// POST /v1/programs/{id}:grad: a program that computes gradients of another one.
#include <fmt/core.h>

#include <algorithm>

#include "api/codecs/program_codec.h"
#include "api/json/schema.h"
#include "api/routes/routes.h"

namespace meshd::api {
namespace {

struct GradientInput {
  std::optional<std::vector<int64_t>> arguments, results;
  std::optional<bool> values, cotangents;
  std::optional<std::string> name;
};

// As positions, each once; the first one where none are given.
std::vector<size_t> positions(const std::optional<std::vector<int64_t>>& given, const std::string& pointer,
                              core::Diagnostics& wrong) {
  std::vector<size_t> out;
  for (const int64_t position : given.value_or(std::vector<int64_t>{0})) {
    const auto at = static_cast<size_t>(position);
    if (std::find(out.begin(), out.end(), at) != out.end())
      wrong.add(pointer, fmt::format("position {} occurs twice", position));
    out.push_back(at);
  }
  if (out.empty()) wrong.add(pointer, "expected one position or more");
  return out;
}

}  // namespace

template <>
Schema<GradientInput> make_schema() {
  using In = GradientInput;
  return {"GradientInput",
          {{"arguments", &In::arguments, {.low = 0}},
           {"results", &In::results, {.low = 0}},
           {"values", &In::values},
           {"cotangents", &In::cotangents},
           {"name", &In::name}}};
}

Schemas gradient_schemas() { return {&schema<GradientInput>()}; }

std::vector<Route> gradient_routes(Services& services) {
  return {{"POST", "/v1/programs/{id}:grad", "differentiateProgram", BodyPolicy::kJson, RunOn::kWorker, Access::kUser,
           [&services](Request& request) {
             const auto stored = services.programs.get(request.capture("id"), request.principal);
             const Json body = optional_body_json(request, BodyPolicy::kJson);
             const auto in = read_json<GradientInput>(body, "invalid_request");
             core::Diagnostics wrong;
             const compile::DifferentiationRequest wanted{positions(in.arguments, "/arguments", wrong),
                                                          positions(in.results, "/results", wrong),
                                                          in.values.value_or(false), in.cotangents.value_or(false)};
             wrong.throw_if_any("invalid_request");
             const auto [made, fresh] = services.programs.put_gradient(stored, wanted, in.name, request.principal);
             return json_of(fresh ? 201 : 200, ProgramDocument{made, true}).with("Location", "/v1/programs/" + made.id);
           }}};
}

}  // namespace meshd::api
