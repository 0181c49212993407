// POST /v1/programs/{id}:explain: the request, and an explanation as JSON, as text for a terminal and as a picture.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "api/codecs/mesh_choice.h"
#include "api/json/schema.h"
#include "service/compile/explain/explain.h"
#include "service/compile/explain/snapshots.h"
#include "service/compile/explain/suggest.h"
#include "service/jobs/job_request.h"

namespace meshd::api {

/// Decodes {mesh | meshes, in_shardings, out_shardings, donate, shapes}, all optional; the program of the result is
/// specialised where arguments have dynamic dimensions. Throws invalid_request, invalid_mesh with JSON Pointers.
jobs::JobRequest decode_assignment(const Json& body, const compile::ParsedRef& program, compile::Compiler& compiler,
                                   MeshFinder& meshes);

struct PlacementInput;
template <>
Schema<PlacementInput> make_schema();

/// The names of a program's ops by the line at which they begin.
class OpsByLine {
 public:
  explicit OpsByLine(const ir::Module& module);

  /// Of the first op of the line; empty where there is none.
  [[nodiscard]] std::string_view at(int32_t line) const;

 private:
  std::map<int32_t, std::string_view> names_;  // in the module, which outlives this
};

/// The complete document; `functions` as in tests/conformance/propagation/README.md.
struct ExplanationDocument {
  const compile::Explanation& explanation;
  std::vector<compile::Snapshot> snapshots;  ///< `stages`, where there are some
  OpsByLine ops = OpsByLine(*explanation.parsed->module);
};
template <>
Schema<ExplanationDocument> make_schema();
/// What keeps a program from running.
template <>
Schema<compile::NotRun> make_schema();
/// Plain text: shardings beside the ops, moves below the ops that cause them, totals. No line is truncated.
std::string explanation_text(const compile::Explanation& explanation);
/// A picture (SVG) of @main: a box for each value with its shards, moves between them.
std::string explanation_svg(const compile::Explanation& explanation);

/// Costs, and shardings that can be posted back as `in_shardings`.
struct SuggestionsDocument {
  const compile::Suggestions& suggestions;
  const compile::ParsedProgram& program;
};
template <>
Schema<SuggestionsDocument> make_schema();

/// "rule of stablehlo.add at line 7": the origin of a sharding, as text.
std::string origin_text(const propagation::Origin& origin, const OpsByLine& ops);

}  // namespace meshd::api
