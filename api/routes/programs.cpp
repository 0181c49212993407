// /v1/programs: program texts, read and verified when they are stored.
#include "api/codecs/explain_codec.h"
#include "api/codecs/json.h"
#include "api/codecs/mesh_codec.h"
#include "api/codecs/trees.h"
#include "api/routes/routes.h"
#include "service/compile/explain/declared_effects.h"

namespace meshd::api {
namespace {

std::string parameter_json(const ir::Parameter& parameter) {
  std::string out = "{\"dtype\":\"" + std::string(tensor::name(parameter.type.dtype())) +
                    "\",\"shape\":" + integer_list(parameter.type.dims());
  if (parameter.sharding) out += ",\"sharding\":" + sharding_document(parameter.sharding, parameter.type.rank(), true);
  if (!parameter.result_info.empty()) out += ",\"name\":" + quote(parameter.result_info);
  if (parameter.aliases_output || parameter.is_donor) out += ",\"donated\":true";
  return out + "}";
}

// Callbacks of the program: what a request may bind.
std::string effects_json(const compile::ParsedProgram& parsed) {
  std::string out;
  for (const auto& [info, line] : compile::find_callbacks(parsed)) {
    out += (out.empty() ? "" : ",") + std::string("{\"callback\":") + std::to_string(info.index) +
           ",\"ordered\":" + (info.ordered ? "true" : "false") +
           ",\"side_effect\":" + (info.has_side_effect ? "true" : "false") +
           ",\"answers\":" + (info.value_results.empty() ? "false" : "true") + ",\"line\":" + std::to_string(line) +
           "}";
  }
  return out;
}

// Which inputs the program reads, and which it may overwrite because they are donated (behaviour E19).
std::string input_effects_json(const compile::ParsedProgram& parsed) {
  const std::vector<bool> is_read = compile::find_read_arguments(parsed);
  std::string out;
  for (size_t i = 0; i < parsed.arguments.size(); ++i) {
    const ir::Parameter& parameter = parsed.flat->main().arguments[parsed.arguments[i]];
    const auto add = [&](const char* kind) {
      out += (out.empty() ? "" : ",") + std::string("{\"index\":") + std::to_string(i) + ",\"kind\":\"" + kind + "\"}";
    };
    if (is_read[i]) add("read");
    if (parameter.aliases_output || parameter.is_donor) add("write");
  }
  return out;
}

std::string program_document(const registry::StoredProgram& stored, bool with_text) {
  std::string out = "{\"id\":" + quote(stored.id) + ",\"name\":" + quote(stored.name) +
                    ",\"format\":\"stablehlo\",\"created\":" + quote(core::to_rfc3339(stored.created));
  if (!stored.doc.empty()) out += ",\"doc\":" + quote(stored.doc);
  if (!stored.in_tree.empty()) out += ",\"in_tree\":" + stored.in_tree;
  if (!stored.out_tree.empty()) out += ",\"out_tree\":" + stored.out_tree;
  if (stored.parsed != nullptr) {
    const compile::ParsedProgram& parsed = *stored.parsed;
    out += ",\"arguments\":[";
    for (size_t i = 0; i < parsed.arguments.size(); ++i) out += (i ? "," : "") + parameter_json(parsed.argument(i));
    out += "],\"results\":[";
    for (size_t i = 0; i < parsed.results.size(); ++i) out += (i ? "," : "") + parameter_json(parsed.result(i));
    out += "],\"meshes\":[";
    const auto real = compile::real_meshes(*parsed.module);
    for (size_t i = 0; i < real.size(); ++i) {
      out += (i ? "," : "") + std::string("{\"name\":") + quote("@" + real[i]->name) +
             ",\"mesh\":" + quote(mesh::to_sdy(*real[i]->mesh)) + "}";
    }
    out += "],\"input_effects\":[" + input_effects_json(parsed);
    out += "],\"effects\":[" + effects_json(parsed) + "],\"cannot_run\":" + not_run_json(compile::find_not_run(parsed));
    if (with_text) out += ",\"text\":" + quote(parsed.text);
  }
  return out + "}";
}

void check_tree(const std::string& tree, size_t values, const char* field, const char* what) {
  if (tree.empty()) return;
  const int64_t leaves = leaf_count(Json::parse(tree), Leaves::kStars);
  if (leaves != static_cast<int64_t>(values)) {
    throw core::Error("invalid_request", std::string("/") + field + ": the tree has " + std::to_string(leaves) +
                                             " leaves, the program has " + std::to_string(values) + " " + what);
  }
}

std::pair<registry::StoredProgram, bool> put_program(Services& services, const std::string& format,
                                                     const std::string& text, const registry::ProgramNames& names,
                                                     const std::string& principal) {
  const compile::ParsedRef parsed = services.compiler.parse(format, text);
  check_tree(names.in_tree, parsed->arguments.size(), "in_tree", "arguments");
  check_tree(names.out_tree, parsed->results.size(), "out_tree", "results");
  return services.programs.put(format, text, names, principal);
}

}  // namespace

std::vector<Route> program_routes(Services& services) {
  return {
      {"POST", "/v1/programs", "createProgram", BodyPolicy::kProgram, RunOn::kWorker, Access::kUser,
       [&services](Request& request) {
         const std::string body = request.body().read_all(body_limit(BodyPolicy::kProgram));
         const std::string type(request.headers.get("Content-Type").value_or("application/json"));
         std::string format = "stablehlo", program_text;
         registry::ProgramNames names;
         names.name = std::string(request.query.get("name").value_or(""));
         if (type.starts_with("text/plain")) {
           program_text = body;
         } else if (type.starts_with("application/json")) {
           core::Diagnostics wrong;
           const Json document = Json::parse(body);
           ObjectReader reader(document, "", wrong);
           format = reader.string("format").value_or(format);
           names.name = reader.string("name").value_or(names.name);
           names.doc = reader.string("doc").value_or("");
           if (const Json* tree = reader.field("in_tree")) names.in_tree = tree_json(*tree, "/in_tree");
           if (const Json* tree = reader.field("out_tree")) names.out_tree = tree_json(*tree, "/out_tree");
           const auto given = reader.string("text");
           if (!given && reader.field("text") == nullptr) reader.missing("text");
           reader.finish();
           wrong.throw_if_any("invalid_request");
           program_text = *given;
         } else {
           throw core::Error("unsupported_media_type",
                             "send -H 'Content-Type: application/json' with {\"format\", \"text\"}, or text/plain with "
                             "the text itself");
         }
         const auto [stored, fresh] = put_program(services, format, program_text, names, request.principal);
         return json(fresh ? 201 : 200, program_document(stored, false)).with("Location", "/v1/programs/" + stored.id);
       }},
      {"GET", "/v1/programs", "listPrograms", BodyPolicy::kNone, RunOn::kWorker, Access::kReader,
       [&services](Request& request) {
         const auto page = services.programs.list(request.principal, page_of(request));
         std::vector<std::string> items;
         for (const auto& stored : page.items) items.push_back(program_document(stored, false));
         return list_response(request, items, page.next);
       }},
      {"GET", "/v1/programs/{id}", "getProgram", BodyPolicy::kNone, RunOn::kWorker, Access::kReader,
       [&services](Request& request) {
         return json(200, program_document(services.programs.get(request.capture("id"), request.principal), true));
       }},
      {"DELETE", "/v1/programs/{id}", "deleteProgram", BodyPolicy::kNone, RunOn::kWorker, Access::kUser,
       [&services](Request& request) {
         services.programs.remove(request.capture("id"), request.principal);
         return no_content();
       }},
  };
}

}  // namespace meshd::api
