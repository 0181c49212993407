// /v1/programs: program texts, read and verified when they are stored.
#include <tuple>

#include "api/codecs/explain_codec.h"
#include "api/codecs/job_codec.h"
#include "api/codecs/mesh_codec.h"
#include "api/codecs/trees.h"
#include "api/routes/routes.h"
#include "service/compile/explain/declared_effects.h"

namespace meshd::api {
namespace {

struct ProgramInput {
  std::optional<ProgramFormat> format;
  std::string text;
  std::optional<std::string> name, doc;
  const Json* in_tree = nullptr;
  const Json* out_tree = nullptr;
};

// A mesh that the text declares.
struct ProgramMesh {
  const ir::NamedMesh& named;
};

// `with_text`: where one program is asked for.
struct ProgramDocument {
  const registry::StoredProgram& stored;
  bool with_text = false;

  // Something of the program itself, which lists leave out.
  template <typename Make>
  [[nodiscard]] auto of_parsed(const Make& make) const {
    return stored.parsed == nullptr ? std::nullopt : std::optional(make(*stored.parsed));
  }
};

// What the program does to an argument: reads it, or may overwrite it because it is donated (behaviour E19).
struct InputEffect {
  size_t argument = 0;
  bool is_write = false;
};

std::vector<InputEffect> input_effects_of(const compile::ParsedProgram& parsed) {
  const std::vector<bool> is_read = compile::find_read_arguments(parsed);
  std::vector<InputEffect> out;
  for (size_t i = 0; i < parsed.arguments.size(); ++i) {
    const ir::Parameter& parameter = parsed.flat->main().arguments[parsed.arguments[i]];
    if (is_read[i]) out.push_back({i, false});
    if (parameter.aliases_output || parameter.is_donor) out.push_back({i, true});
  }
  return out;
}

std::optional<Raw> tree_of(const std::string& tree) { return tree.empty() ? std::nullopt : std::optional(Raw{tree}); }

}  // namespace

template <>
const Schema<ProgramInput>& schema() {
  using In = ProgramInput;
  static const Schema<In> kSchema{"ProgramInput",
                                  {{"format", &In::format},
                                   {"text", &In::text},
                                   {"name", &In::name},
                                   {"doc", &In::doc},
                                   {"in_tree", &In::in_tree},
                                   {"out_tree", &In::out_tree}}};
  return kSchema;
}

template <>
const Schema<ir::Parameter>& schema() {
  using Doc = ir::Parameter;
  static const Schema<Doc> kSchema{
      "Parameter",
      {{"dtype", [](const Doc& doc) { return doc.type.dtype(); }},
       {"shape", [](const Doc& doc) -> std::span<const int64_t> { return doc.type.dims(); }},
       {"sharding",
        [](const Doc& doc) {
          return doc.sharding ? std::optional(sharding_document(doc.sharding, doc.type.rank(), true)) : std::nullopt;
        }},
       {"name", [](const Doc& doc) { return unless_empty(doc.result_info); }},
       {"donated",
        [](const Doc& doc) { return doc.aliases_output || doc.is_donor ? std::optional(true) : std::nullopt; }}}};
  return kSchema;
}

template <>
const Schema<ProgramMesh>& schema() {
  static const Schema<ProgramMesh> kSchema{
      "ProgramMesh",
      {{"name", [](const ProgramMesh& mesh) { return "@" + mesh.named.name; }},
       {"mesh", [](const ProgramMesh& mesh) { return mesh::to_sdy(*mesh.named.mesh); }}}};
  return kSchema;
}

template <>
const Schema<InputEffect>& schema() {
  using Doc = InputEffect;
  static const Schema<Doc> kSchema{
      "InputEffect",
      {{"index", &Doc::argument, {.low = 0}},
       {"kind", [](const Doc& doc) { return doc.is_write ? "write" : "read"; }, {.words = {"read", "write"}}}}};
  return kSchema;
}

template <>
const Schema<compile::ProgramCallback>& schema() {
  using Doc = compile::ProgramCallback;
  static const Schema<Doc> kSchema{"ProgramEffect",
                                   {{"callback", [](const Doc& doc) { return doc.info.index; }, {.low = 0}},
                                    {"ordered", [](const Doc& doc) { return doc.info.ordered; }},
                                    {"side_effect", [](const Doc& doc) { return doc.info.has_side_effect; }},
                                    {"answers", [](const Doc& doc) { return !doc.info.value_results.empty(); }},
                                    {"line", &Doc::line, {.low = 0}}}};
  return kSchema;
}

template <>
const Schema<ProgramDocument>& schema() {
  using Doc = ProgramDocument;
  using Parsed = compile::ParsedProgram;
  static const Schema<Doc> kSchema{
      "Program",
      {{"id", [](const Doc& doc) -> std::string_view { return doc.stored.id; }},
       {"name", [](const Doc& doc) -> std::string_view { return doc.stored.name; }},
       {"format", [](const Doc&) { return "stablehlo"; }},
       {"created", [](const Doc& doc) { return doc.stored.created; }},
       {"doc", [](const Doc& doc) { return unless_empty(doc.stored.doc); }},
       {"in_tree", [](const Doc& doc) { return tree_of(doc.stored.in_tree); }},
       {"out_tree", [](const Doc& doc) { return tree_of(doc.stored.out_tree); }},
       {"arguments",
        [](const Doc& doc) {
          return doc.of_parsed([](const Parsed& parsed) {
            std::vector<ir::Parameter> out;
            for (size_t i = 0; i < parsed.arguments.size(); ++i) out.push_back(parsed.argument(i));
            return out;
          });
        }},
       {"results",
        [](const Doc& doc) {
          return doc.of_parsed([](const Parsed& parsed) {
            std::vector<ir::Parameter> out;
            for (size_t i = 0; i < parsed.results.size(); ++i) out.push_back(parsed.result(i));
            return out;
          });
        }},
       {"meshes",
        [](const Doc& doc) {
          return doc.of_parsed([](const Parsed& parsed) {
            std::vector<ProgramMesh> out;
            for (const ir::NamedMesh* mesh : compile::real_meshes(*parsed.module)) out.push_back({*mesh});
            return out;
          });
        }},
       {"input_effects", [](const Doc& doc) { return doc.of_parsed(input_effects_of); }},
       {"effects", [](const Doc& doc) { return doc.of_parsed(compile::find_callbacks); }},
       {"cannot_run",
        [](const Doc& doc) {
          return doc.of_parsed([](const Parsed& parsed) { return compile::find_not_run(parsed); });
        }},
       {"text", [](const Doc& doc) {
          return doc.with_text && doc.stored.parsed != nullptr
                     ? std::optional<std::string_view>(doc.stored.parsed->text)
                     : std::nullopt;
        }}}};
  return kSchema;
}

Schemas program_schemas() {
  return {&schema<ProgramInput>(), &schema<ProgramDocument>(), &JsonCodec<Page<ProgramDocument>>::of()};
}

namespace {

// A tree as it is kept, with the number of its leaves.
std::pair<std::string, std::optional<int64_t>> kept_tree(const Json* tree, const std::string& pointer) {
  if (tree == nullptr) return {};
  return {tree_json(*tree, pointer), leaf_count(*tree, Leaves::kStars)};
}

}  // namespace

std::vector<Route> program_routes(Services& services) {
  return {
      {"POST", "/v1/programs", "createProgram", BodyPolicy::kProgram, RunOn::kWorker, Access::kUser,
       [&services](Request& request) {
         std::string body = request.body().read_all(body_limit(BodyPolicy::kProgram));
         const std::string type(request.headers.get("Content-Type").value_or("application/json"));
         std::string format = "stablehlo", program_text;
         registry::ProgramNames names;
         names.name = std::string(request.query.get("name").value_or(""));
         if (type.starts_with("text/plain")) {
           program_text = std::move(body);
         } else if (type.starts_with("application/json")) {
           const Json document = Json::parse(std::move(body));
           auto in = read_json<ProgramInput>(document, "invalid_request");
           if (in.format) format = in.format->word;
           names.name = in.name.value_or(names.name);
           names.doc = in.doc.value_or("");
           std::tie(names.in_tree, names.in_leaves) = kept_tree(in.in_tree, "/in_tree");
           std::tie(names.out_tree, names.out_leaves) = kept_tree(in.out_tree, "/out_tree");
           program_text = std::move(in.text);
         } else {
           throw core::Error("unsupported_media_type",
                             "send -H 'Content-Type: application/json' with {\"format\", \"text\"}, or text/plain with "
                             "the text itself");
         }
         const auto [stored, fresh] = services.programs.put(format, program_text, names, request.principal);
         return json_of(fresh ? 201 : 200, ProgramDocument{stored}).with("Location", "/v1/programs/" + stored.id);
       }},
      {"GET", "/v1/programs", "listPrograms", BodyPolicy::kNone, RunOn::kWorker, Access::kReader,
       [&services](Request& request) {
         const auto page = services.programs.list(request.principal, page_of(request));
         Page<ProgramDocument> out{{}, page.next};
         for (const auto& stored : page.items) out.items.push_back({stored});
         return list_response(request, out);
       }},
      {"GET", "/v1/programs/{id}", "getProgram", BodyPolicy::kNone, RunOn::kWorker, Access::kReader,
       [&services](Request& request) {
         return json_of(200, ProgramDocument{services.programs.get(request.capture("id"), request.principal), true});
       }},
      {"DELETE", "/v1/programs/{id}", "deleteProgram", BodyPolicy::kNone, RunOn::kWorker, Access::kUser,
       [&services](Request& request) {
         services.programs.remove(request.capture("id"), request.principal);
         return no_content();
       }},
  };
}

}  // namespace meshd::api
