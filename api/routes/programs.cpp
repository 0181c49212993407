// /v1/programs: program texts, read and verified when they are stored.
#include "api/codecs/program_codec.h"
#include "api/routes/routes.h"

namespace meshd::api {

Schemas program_schemas() {
  return {&program_input_schema(), &schema<ProgramDocument>(), &JsonCodec<Page<ProgramDocument>>::of()};
}

std::vector<Route> program_routes(Services& services) {
  return {
      {"POST", "/v1/programs", "createProgram", BodyPolicy::kProgram, RunOn::kWorker, Access::kUser,
       [&services](Request& request) {
         std::string body = body_text(request, BodyPolicy::kProgram);
         const std::string type(request.headers.get("Content-Type").value_or("application/json"));
         std::string name(request.query.get("name").value_or(""));
         ProgramUpload upload;
         if (type.starts_with("text/plain")) {
           upload.text = std::move(body);
           upload.names.name = std::move(name);
         } else if (type.starts_with("application/json")) {
           upload = decode_program(Json::parse(std::move(body), {}, &request.memory), std::move(name));
         } else {
           throw core::Error("unsupported_media_type",
                             "send -H 'Content-Type: application/json' with {\"format\", \"text\"}, or text/plain with "
                             "the text itself");
         }
         const auto [stored, fresh] =
             services.programs.put(upload.format, upload.text, upload.names, request.principal);
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
