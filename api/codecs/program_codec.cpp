#include "api/codecs/program_codec.h"

#include <tuple>

#include "api/codecs/artifact_codec.h"
#include "api/codecs/explain/explain_codec.h"
#include "api/codecs/mesh_codec.h"
#include "api/codecs/runs/trees.h"
#include "service/compile/explain/declared_effects.h"

namespace meshd::api {
namespace {

struct ProgramInput {
  std::optional<ProgramFormat> format;
  std::optional<std::string> text, base64;
  std::optional<std::string> name, doc;
  const Json* in_tree = nullptr;
  const Json* out_tree = nullptr;
};

// A mesh that the text declares.
struct ProgramMesh {
  const ir::NamedMesh& named;
};

std::optional<Raw> tree_of(const std::string& tree) { return tree.empty() ? std::nullopt : std::optional(Raw{tree}); }

}  // namespace

template <>
Schema<ProgramInput> make_schema() {
  using In = ProgramInput;
  return {"ProgramInput",
          {{"format", &In::format},
           {"text", &In::text},
           {"base64", &In::base64},
           {"name", &In::name, {.longest = 1'024}},
           {"doc", &In::doc, {.longest = 65'536}},
           {"in_tree", &In::in_tree},
           {"out_tree", &In::out_tree}}};
}

template <>
Schema<ir::Parameter> make_schema() {
  using Doc = ir::Parameter;
  return {"Parameter",
          {{"dtype", [](const Doc& doc) { return doc.type.dtype(); }},
           {"quantized", [](const Doc& doc) { return unless_empty(doc.quantized); }},
           {"shape", [](const Doc& doc) -> std::span<const int64_t> { return doc.type.dims(); }},
           {"bounds",
            [](const Doc& doc) {
              return doc.type.is_bounded() ? std::optional(std::span<const int64_t>(doc.type.bounds)) : std::nullopt;
            }},
           {"sharding",
            [](const Doc& doc) {
              return doc.sharding ? std::optional(sharding_document(doc.sharding, doc.type.rank(), true))
                                  : std::nullopt;
            }},
           {"name", [](const Doc& doc) { return unless_empty(doc.result_info); }},
           {"donated",
            [](const Doc& doc) { return doc.aliases_output || doc.is_donor ? std::optional(true) : std::nullopt; }}}};
}

template <>
Schema<ProgramMesh> make_schema() {
  return {"ProgramMesh",
          {{"name", [](const ProgramMesh& mesh) { return "@" + mesh.named.name; }},
           {"mesh", [](const ProgramMesh& mesh) { return mesh::to_sdy(*mesh.named.mesh); }}}};
}

template <>
Schema<compile::ArgumentEffect> make_schema() {
  using Doc = compile::ArgumentEffect;
  return {"InputEffect",
          {{"index", &Doc::argument, {.low = 0}},
           {"kind", [](const Doc& doc) { return doc.is_write ? "write" : "read"; }, {.words = {"read", "write"}}}}};
}

template <>
Schema<compile::ProgramCallback> make_schema() {
  using Doc = compile::ProgramCallback;
  return {"ProgramEffect",
          {{"callback", [](const Doc& doc) { return doc.info.index; }, {.low = 0}},
           {"ordered", [](const Doc& doc) { return doc.info.ordered; }},
           {"side_effect", [](const Doc& doc) { return doc.info.has_side_effect; }},
           {"answers", [](const Doc& doc) { return !doc.info.value_results.empty(); }},
           {"line", &Doc::line, {.low = 0}}}};
}

template <>
Schema<ProgramDocument> make_schema() {
  using Doc = ProgramDocument;
  using Parsed = compile::ParsedProgram;
  return {"Program",
          {{"id", [](const Doc& doc) -> std::string_view { return doc.stored.id; }},
           {"name", [](const Doc& doc) -> std::string_view { return doc.stored.name; }},
           {"format", [](const Doc& doc) -> std::string_view { return doc.stored.format; }},
           {"parameters",
            [](const Doc& doc) {
              std::vector<std::string> names;
              if (doc.stored.parsed != nullptr && doc.stored.parsed->numpy != nullptr) {
                for (const auto& parameter : doc.stored.parsed->numpy->parameters()) names.push_back(parameter.name);
              }
              return names.empty() ? std::nullopt : std::optional(std::move(names));
            }},
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
           {"input_effects", [](const Doc& doc) { return doc.of_parsed(compile::find_argument_effects); }},
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
}

const SchemaBase& program_input_schema() { return schema<ProgramInput>(); }

namespace {

// A tree as it is kept, with the number of its leaves.
std::pair<std::string, std::optional<int64_t>> kept_tree(const Json* tree, const std::string& pointer) {
  if (tree == nullptr) return {};
  return {tree_json(*tree, pointer), leaf_count(*tree, Leaves::kStars)};
}

}  // namespace

namespace {

// Trees of an artifact, where the document has none.
void take_artifact(program::ArtifactProgram artifact, ProgramUpload& out) {
  out.text = std::move(artifact.text);
  const auto tree = [](const std::string& json, std::string& kept, std::optional<int64_t>& leaves) {
    if (json.empty() || !kept.empty()) return;
    const Json parsed = Json::parse(json);
    std::tie(kept, leaves) = kept_tree(&parsed, "");
  };
  tree(artifact.in_tree, out.names.in_tree, out.names.in_leaves);
  tree(artifact.out_tree, out.names.out_tree, out.names.out_leaves);
}

}  // namespace

ProgramUpload decode_artifact(std::string_view bytes, std::string name, core::MemoryReservation* memory) {
  ProgramUpload out;
  out.names.name = std::move(name);
  take_artifact(program::read_artifact(bytes, memory), out);
  return out;
}

ProgramUpload decode_program(const Json& document, std::string name, core::MemoryReservation* memory) {
  core::Diagnostics wrong;
  auto in = read_json<ProgramInput>(document, "", wrong);
  ProgramSource source{std::move(in.text), std::move(in.base64), std::nullopt};
  if (wrong.empty()) check_source(source, "", wrong);
  wrong.throw_if_any("invalid_request");
  ProgramUpload out;
  if (in.format) out.format = in.format->word;
  out.pointer = source.text ? "/text" : "/base64";
  if (source.text) out.text = std::move(*source.text);
  out.names.name = in.name.value_or(std::move(name));
  out.names.doc = in.doc.value_or("");
  std::tie(out.names.in_tree, out.names.in_leaves) = kept_tree(in.in_tree, "/in_tree");
  std::tie(out.names.out_tree, out.names.out_leaves) = kept_tree(in.out_tree, "/out_tree");
  if (source.is_artifact()) {
    auto artifact = read_artifact_source(source, "", nullptr, memory, wrong);
    wrong.throw_if_any("invalid_request");
    take_artifact(std::move(*artifact), out);
  }
  return out;
}

}  // namespace meshd::api
