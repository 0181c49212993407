#include <fmt/core.h>

#include "api/client/commands/commands.h"
#include "api/client/documents/array_path.h"
#include "api/client/documents/listing.h"
#include "api/client/documents/placement.h"
#include "api/client/text/progress_bar.h"
#include "api/client/transfer/download.h"

namespace meshd::client {

int list_arrays(const CommonOptions& server, const ListOptions& options) {
  Connection connection(server);
  Query query;
  query.add_given("prefix", options.prefix).add_given("session", options.session);
  print_items(server, all_items(connection, "/v1/arrays", query),
              {{"NAME", [](const Json& item) { return field_text(item, "name"); }},
               {"TYPE", [](const Json& item) { return type_text(item); }},
               {"SIZE", [](const Json& item) { return bytes_text(item.value("bytes", int64_t{0})); }, true},
               {"SPEC", [](const Json& item) { return spec_text(item.value("sharding", Json())); }},
               {"STATE", [](const Json& item) { return field_text(item, "state"); }},
               {"ID", [](const Json& item) { return field_text(item, "id"); }}});
  return kDone;
}

int show_array(const CommonOptions& server, const std::string& name) {
  Connection connection(server);
  const Json array = array_document(connection, name);
  print_document(server, array);
  if (server.is_json) return kDone;
  print(connection.send({.target = array_path(field_text(array, "id")) + "/sharding.txt"}).body);
  return kDone;
}

int remove_arrays(const CommonOptions& server, const RemoveOptions& options) {
  Connection connection(server);
  for (const std::string& name : options.names) {
    if (options.is_recursive) {
      // "data" are the arrays below data/, never those of data2/.
      Query query;
      query.add("prefix", name.ends_with('/') ? name : name + "/");
      const Answer answer = connection.send({.method = "DELETE", .target = "/v1/arrays" + query.text()});
      if (server.is_json) {
        print(answer.body);
      } else if (!server.is_quiet) {
        print(fmt::format("{}: {} deleted\n", name, Json::parse(answer.body).value("deleted", int64_t{0})));
      }
      continue;
    }
    if (name.ends_with('/'))
      throw Failure(kUsage, fmt::format("'{}' is a prefix: --recursive deletes all of it", name));
    try {
      connection.send({.method = "DELETE", .target = array_path(name)});
    } catch (const Failure& failure) {
      const Json problem = Json::parse(failure.document(), nullptr, false);
      if (!options.ignores_missing || !problem.is_object() || problem.value("status", 0) != 404) throw;
    }
  }
  return kDone;
}

}  // namespace meshd::client
