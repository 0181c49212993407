#include <fmt/core.h>

#include "api/client/commands/commands.h"
#include "api/client/documents/listing.h"
#include "api/client/documents/placement.h"
#include "api/client/text/progress_bar.h"
#include "api/client/transfer/download.h"

namespace meshd::client {
namespace {

std::string axes_text(const Json& mesh) {
  std::string sizes, names;
  for (const Json& axis : mesh.value("axes", Json::array())) {
    sizes += (sizes.empty() ? "" : "x") + field_text(axis, "size");
    names += (names.empty() ? "" : ",") + field_text(axis, "name");
  }
  return sizes + ":" + names;
}

std::string numbers_text(const Json& item, const char* field) {
  std::string out;
  for (const Json& each : item.value(field, Json::array())) out += (out.empty() ? "" : ",") + each.dump();
  return out;
}

}  // namespace

int list_meshes(const CommonOptions& server) {
  Connection connection(server);
  print_items(server, all_items(connection, "/v1/meshes"),
              {{"ID", [](const Json& item) { return field_text(item, "id"); }},
               {"AXES", axes_text},
               {"DEVICES", [](const Json& item) { return numbers_text(item, "device_ids"); }}});
  return kDone;
}

int store_mesh(const CommonOptions& server, const std::string& mesh, bool is_abstract) {
  Connection connection(server);
  Ask ask{.method = "POST", .target = "/v1/meshes", .content_type = "application/json"};
  ask.body.push_back(text_part(mesh_document(mesh, !is_abstract).dump()));
  const Json stored = Json::parse(connection.send(ask).body);
  print(server.is_json ? stored.dump() + "\n" : field_text(stored, "id") + "\n");
  return kDone;
}

int remove_mesh(const CommonOptions& server, const std::string& id) {
  Connection connection(server);
  connection.send({.method = "DELETE", .target = "/v1/meshes/" + percent_encoded(id)});
  return kDone;
}

int list_devices(const CommonOptions& server) {
  Connection connection(server);
  const Json list = get_document(connection, "/v1/devices");
  print_items(server, list.at("items"),
              {{"ID", [](const Json& item) { return field_text(item, "id"); }, true},
               {"PROCESS", [](const Json& item) { return field_text(item, "process_index"); }, true},
               {"KIND", [](const Json& item) { return field_text(item, "kind"); }},
               {"QUEUE", [](const Json& item) { return field_text(item, "queue"); }, true}});
  return kDone;
}

int show_info(const CommonOptions& server) {
  Connection connection(server);
  const Json info = get_document(connection, "/v1/info");
  const Json me = get_document(connection, "/v1/me");
  if (server.is_json) {
    print(Json{{"server", info}, {"me", me}}.dump() + "\n");
    return kDone;
  }
  print(fmt::format("server: {}, meshd {}, {} devices, {} threads\nprincipal: {}, role {}\n", connection.url(),
                    field_text(info, "version"), field_text(info, "devices"), field_text(info, "threads"),
                    field_text(me, "principal"), field_text(me, "role")));
  const Json limits = me.value("limits", Json::object());
  const Json usage = me.value("usage", Json::object());
  for (const auto& [name, used] : usage.items()) {
    const bool is_bytes = name.find("bytes") != std::string::npos;
    const auto shown = [&](const Json& value) {
      return is_bytes && value.is_number() ? bytes_text(value.get<int64_t>()) : value.dump();
    };
    const int64_t limit = limits.contains(name) && limits[name].is_number() ? limits[name].get<int64_t>() : 0;
    print(fmt::format("{}: {}{}\n", name, shown(used), limit > 0 ? " of " + shown(limits[name]) : ""));
  }
  return kDone;
}

int show_versions(const CommonOptions& server, const std::string& own) {
  constexpr int64_t kPatience = 2;
  Json out = {{"client", own}};
  try {
    CommonOptions asked = server;
    asked.timeout_seconds = server.timeout_seconds > 0 ? server.timeout_seconds : kPatience;
    Connection connection(asked);
    out["url"] = connection.url();
    out["server"] = get_document(connection, "/v1/info").value("version", "");
  } catch (const Failure& failure) {
    out["server"] = nullptr;
    out["reason"] = failure.what();
  }
  if (server.is_json) {
    print(out.dump() + "\n");
  } else if (out["server"].is_string()) {
    print(fmt::format("client: {}\nserver: {} at {}\n", own, field_text(out, "server"), field_text(out, "url")));
  } else {
    print(fmt::format("client: {}\nserver: none ({})\n", own, field_text(out, "reason")));
  }
  return kDone;
}

int make_backup(const CommonOptions& server, const std::string& name) {
  Connection connection(server);
  Query query;
  query.add_given("name", name);
  const Answer answer = connection.send({.method = "POST", .target = "/v1/admin/backup" + query.text()});
  const Json made = Json::parse(answer.body);
  print(server.is_json ? made.dump() + "\n"
                       : fmt::format("{} on the server's disk; meshd restore makes a data folder of it\n",
                                     field_text(made, "folder")));
  return kDone;
}

}  // namespace meshd::client
