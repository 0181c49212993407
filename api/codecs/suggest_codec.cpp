// POST /v1/programs/{id}:suggest: the answer.
#include <cmath>

#include "api/codecs/explain_codec.h"
#include "api/codecs/mesh_codec.h"

namespace meshd::api {
namespace {

std::string cost_json(const compile::Cost& cost) {
  std::string out = "{\"flops\":";
  append_integer(out, static_cast<int64_t>(std::llround(cost.flops)));
  out += ",\"bytes_touched\":";
  append_integer(out, static_cast<int64_t>(std::llround(cost.bytes_touched)));
  out += ",\"bytes_moved\":";
  append_integer(out, cost.bytes_moved);
  out += ",\"peak_bytes\":";
  append_integer(out, cost.peak_bytes);
  out += ",\"seconds\":";
  append_double(out, cost.seconds());
  return out + "}";
}

std::string suggestion_json(const compile::Suggestion& suggestion, const compile::ParsedProgram& program) {
  const bool several = compile::real_meshes(*program.module).size() > 1;
  const auto sharding = [&](size_t i) {
    const auto& one = suggestion.in_shardings[i];
    return one ? sharding_document(one, program.argument(i).type.rank(), several) : std::string("null");
  };
  std::string out = "{\"in_shardings\":[";
  for (size_t i = 0; i < suggestion.in_shardings.size(); ++i) out += (i ? "," : "") + sharding(i);
  out += "],\"changed\":[";
  for (size_t i = 0; i < suggestion.changed.size(); ++i) out += (i ? "," : "") + std::to_string(suggestion.changed[i]);
  out += "],\"cost\":" + cost_json(suggestion.cost) + ",\"reasons\":[";
  for (size_t i = 0; i < suggestion.reasons.size(); ++i) out += (i ? "," : "") + quote(suggestion.reasons[i]);
  return out + "]}";
}

}  // namespace

std::string suggestions_json(const compile::Suggestions& suggestions, const compile::ParsedProgram& program) {
  std::string out =
      "{\"program\":" + quote(program.id) + ",\"now\":" + cost_json(suggestions.now) + ",\"suggestions\":[";
  for (size_t i = 0; i < suggestions.better.size(); ++i)
    out += (i ? "," : "") + suggestion_json(suggestions.better[i], program);
  return out + "],\"tried\":" + std::to_string(suggestions.tried) +
         ",\"complete\":" + (suggestions.was_cut_short ? "false" : "true") + "}";
}

}  // namespace meshd::api
