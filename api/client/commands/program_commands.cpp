#include <fmt/core.h>

#include <cstdio>

#include "api/client/commands/commands.h"
#include "api/client/commands/place_document.h"
#include "api/client/documents/listing.h"
#include "api/client/documents/placement.h"
#include "api/client/documents/program_source.h"
#include "api/client/transfer/download.h"

namespace meshd::client {
namespace {

Json explain_request(const ExplainOptions& options, const std::string& format) {
  Json out = Json::object();
  add_place(out, options.place, false);
  for (const std::string& argument : options.arguments) {
    Json type = type_document(argument);
    // StableHLO has its types; only sizes can be open.
    if (format == "numpy") {
      out["arguments"].push_back(std::move(type));
    } else {
      if (!type.is_object() || !type.contains("shape")) {
        throw Failure(kUsage, fmt::format("'{}': expected the type of an argument, such as float32[5,2]", argument));
      }
      out["shapes"].push_back(type["shape"]);
    }
  }
  return out;
}

}  // namespace

int explain_program(const CommonOptions& server, const ExplainOptions& options) {
  Connection connection(server);
  const Json program = stored_program(connection, program_source(options.program, options.format));
  const bool is_partition = options.view == "partition";
  Ask ask{.method = "POST", .content_type = "application/json"};
  ask.target = fmt::format("/v1/programs/{}:{}", field_text(program, "id"), is_partition ? "partition" : "explain");
  ask.target += Query().add("format", server.is_json ? "json" : options.view == "svg" ? "svg" : "text").text();
  ask.body.push_back(text_part(explain_request(options, field_text(program, "format")).dump()));
  print(connection.send(ask).body);
  return kDone;
}

int list_programs(const CommonOptions& server) {
  Connection connection(server);
  print_items(server, all_items(connection, "/v1/programs"),
              {{"ID", [](const Json& item) { return field_text(item, "id"); }},
               {"NAME", [](const Json& item) { return field_text(item, "name"); }},
               {"FORMAT", [](const Json& item) { return field_text(item, "format"); }},
               {"CREATED", [](const Json& item) { return time_text(item, "created"); }}});
  return kDone;
}

int store_program(const CommonOptions& server, const std::string& program, const std::string& format,
                  const std::string& name) {
  Connection connection(server);
  const Json stored = stored_program(connection, program_source(program, format), name);
  if (server.is_json) {
    print(stored.dump() + "\n");
    return kDone;
  }
  print(field_text(stored, "id") + "\n");
  for (const Json& place : stored.value("cannot_run", Json::array())) {
    std::fprintf(stderr, "line %s: %s\n", field_text(place, "line").c_str(), field_text(place, "detail").c_str());
  }
  return kDone;
}

int show_program(const CommonOptions& server, const std::string& id) {
  Connection connection(server);
  const Json program = get_document(connection, "/v1/programs/" + percent_encoded(id));
  if (server.is_json) {
    print(program.dump() + "\n");
    return kDone;
  }
  std::string text = field_text(program, "text");
  if (!text.ends_with('\n')) text += '\n';
  print(text);
  return kDone;
}

int remove_program(const CommonOptions& server, const std::string& id) {
  Connection connection(server);
  connection.send({.method = "DELETE", .target = "/v1/programs/" + percent_encoded(id)});
  return kDone;
}

}  // namespace meshd::client
