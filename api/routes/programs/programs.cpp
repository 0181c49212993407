// /v1/programs: program texts and artifacts, read and verified when they are stored.
#include "api/codecs/artifact_codec.h"
#include "api/codecs/files/file_kinds.h"
#include "api/codecs/files/form.h"
#include "api/codecs/program_codec.h"
#include "api/fields/media_type.h"
#include "api/routes/routes.h"

namespace meshd::api {

Schemas program_schemas() {
  return {&program_input_schema(), &schema<ProgramDocument>(), &JsonCodec<Page<ProgramDocument>>::of()};
}

namespace {

ProgramUpload read_upload(Request& request, std::string body, std::string name) {
  const std::string type = media_type_of(request.headers);
  const bool is_object = body.find_first_not_of(" \t\r\n") == body.find('{');
  if (type == "application/json" || (is_open_media(type) && is_object)) {
    static_cast<void>(resolve_file_kind("application/json", "", body));  // refuses bytecode by its name
    return decode_program(Json::parse(std::move(body), {}, &request.memory), std::move(name), &request.memory);
  }
  if (is_open_media(type)) return decode_artifact(body, std::move(name), &request.memory);
  if (type == kFormMedia) {
    const std::vector<FormPart> parts = read_form(request.headers.joined("Content-Type"), body);
    if (parts.size() != 1)
      throw core::Error("malformed_body", "a form with a program has one part, the artifact: curl -F file=@f.bin");
    return decode_artifact(parts[0].data, std::move(name), &request.memory);
  }
  if (type != "text/plain") {
    throw core::Error("unsupported_media_type",
                      "send -H 'Content-Type: application/json' with {\"format\", \"text\"}, text/plain with the text "
                      "itself, or application/octet-stream with an artifact: MLIR bytecode, or what jax.export writes");
  }
  if (file_kind_of(body) == FileKind::kMlirBytecode) {
    throw core::Error("malformed_body",
                      "the type text/plain names text, and the bytes are MLIR bytecode; send application/octet-stream");
  }
  ProgramUpload out;
  out.text = std::move(body);
  out.names.name = std::move(name);
  return out;
}

}  // namespace

std::vector<Route> program_routes(Services& services) {
  return {
      {"POST", "/v1/programs", "createProgram", BodyPolicy::kProgram, RunOn::kWorker, Access::kUser,
       [&services](Request& request) {
         std::string body = body_text(request, BodyPolicy::kProgram);
         std::string name(request.query.get("name").value_or(""));
         const ProgramUpload upload = read_upload(request, std::move(body), std::move(name));
         const auto [stored, fresh] = core::in_text({}, upload.pointer, [&] {
           return services.programs.put(upload.format, upload.text, upload.names, request.principal);
         });
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
         const registry::StoredProgram stored = services.programs.get(request.capture("id"), request.principal);
         PageBudget(request).admit(static_cast<int64_t>(stored.parsed->text.size()));
         return json_of(200, ProgramDocument{stored, true});
       }},
      {"DELETE", "/v1/programs/{id}", "deleteProgram", BodyPolicy::kNone, RunOn::kWorker, Access::kUser,
       [&services](Request& request) {
         services.programs.remove(request.capture("id"), request.principal);
         return no_content();
       }},
  };
}

}  // namespace meshd::api
