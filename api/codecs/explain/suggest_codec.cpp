// POST /v1/programs/{id}:suggest: the response.
#include <cmath>

#include "api/codecs/explain/explain_codec.h"
#include "api/codecs/mesh_codec.h"

namespace meshd::api {
namespace {

// A sharding for an argument.
struct SuggestedSharding {
  ShardingDocument sharding;
};

struct SuggestionDocument {
  const compile::Suggestion& suggestion;
  const compile::ParsedProgram& program;
};

}  // namespace

template <>
Schema<compile::Cost> make_schema() {
  using Doc = compile::Cost;
  return {"Cost",
          {{"flops", [](const Doc& cost) { return static_cast<int64_t>(std::llround(cost.flops)); }},
           {"bytes_touched", [](const Doc& cost) { return static_cast<int64_t>(std::llround(cost.bytes_touched)); }},
           {"bytes_moved", &Doc::bytes_moved},
           {"peak_bytes", &Doc::peak_bytes},
           {"seconds", [](const Doc& cost) { return cost.seconds(); }}}};
}

template <>
Schema<SuggestedSharding> make_schema() {
  using Doc = SuggestedSharding;
  return {"SuggestedSharding",
          {{"spec", [](const Doc& doc) { return doc.sharding.spec; }},
           {"sdy", [](const Doc& doc) { return doc.sharding.sdy; }},
           {"mesh", [](const Doc& doc) { return doc.sharding.mesh; }}}};
}

template <>
Schema<SuggestionDocument> make_schema() {
  using Doc = SuggestionDocument;
  return {"Suggestion",
          {{"in_shardings",
            [](const Doc& doc) {
              const bool several = compile::real_meshes(*doc.program.module).size() > 1;
              std::vector<Nullable<SuggestedSharding>> out;
              for (size_t i = 0; i < doc.suggestion.in_shardings.size(); ++i) {
                const auto& one = doc.suggestion.in_shardings[i];
                out.emplace_back();
                if (one) out.back().value = {sharding_document(one, doc.program.argument(i).type.rank(), several)};
              }
              return out;
            }},
           {"changed", [](const Doc& doc) -> std::span<const size_t> { return doc.suggestion.changed; }},
           {"cost", [](const Doc& doc) { return doc.suggestion.cost; }},
           {"reasons", [](const Doc& doc) -> std::span<const std::string> { return doc.suggestion.reasons; }}}};
}

template <>
Schema<SuggestionsDocument> make_schema() {
  using Doc = SuggestionsDocument;
  return {"Suggestions",
          {{"program", [](const Doc& doc) -> std::string_view { return doc.program.id; }},
           {"now", [](const Doc& doc) { return doc.suggestions.now; }},
           {"suggestions",
            [](const Doc& doc) {
              std::vector<SuggestionDocument> out;
              for (const compile::Suggestion& one : doc.suggestions.better) out.push_back({one, doc.program});
              return out;
            }},
           {"tried", [](const Doc& doc) { return doc.suggestions.tried; }},
           {"complete", [](const Doc& doc) { return !doc.suggestions.is_incomplete; }}}};
}

}  // namespace meshd::api
