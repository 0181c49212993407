#include <fmt/core.h>

#include "api/client/commands/commands.h"
#include "api/client/documents/effect_text.h"
#include "api/client/documents/listing.h"
#include "api/client/transfer/download.h"

namespace meshd::client {
namespace {

std::string session_path(const std::string& id) { return "/v1/sessions/" + percent_encoded(id); }
std::string job_path(const std::string& id) { return "/v1/jobs/" + percent_encoded(id); }

std::string percent_text(const Json& job) {
  const Json progress = job.value("progress", Json());
  return progress.is_object() && progress.contains("percent") ? progress["percent"].dump() + "%" : "";
}

std::string error_code_text(const Json& job) {
  const Json error = job.value("error", Json());
  return error.is_object() ? field_text(error, "code") : "";
}

bool is_over(const std::string& state) { return state != "queued" && state != "running"; }

/// DELETE cancels a job, or deletes one that is over: it is sent for the state that was seen. Only the tag of a job
/// that runs changes with every step, so that no condition could hold: one that ends in this moment is deleted.
int end_job(const CommonOptions& server, const std::string& id, bool is_removed) {
  Connection connection(server);
  const std::string state = field_text(get_document(connection, job_path(id)), "state");
  if (is_over(state) != is_removed) {
    throw Failure(kRefused, is_removed ? fmt::format("{} is {}: meshd jobs cancel ends it first", id, state)
                                       : fmt::format("{} is {} already", id, state));
  }
  connection.send({.method = "DELETE", .target = job_path(id)});
  return kDone;
}

}  // namespace

int list_sessions(const CommonOptions& server) {
  Connection connection(server);
  print_items(server, all_items(connection, "/v1/sessions"),
              {{"ID", [](const Json& item) { return field_text(item, "id"); }},
               {"NAME", [](const Json& item) { return field_text(item, "name"); }},
               {"STATE", [](const Json& item) { return field_text(item, "state"); }},
               {"JOBS", [](const Json& item) { return field_text(item, "jobs"); }, true},
               {"EFFECTS", [](const Json& item) { return field_text(item, "last_sequence"); }, true},
               {"CREATED", [](const Json& item) { return time_text(item, "created"); }}});
  return kDone;
}

int open_session(const CommonOptions& server, const SessionOptions& options) {
  Connection connection(server);
  Json body = Json::object();
  if (!options.name.empty()) body["name"] = options.name;
  if (!options.on_error.empty()) body["on_error"] = options.on_error;
  if (!options.effects.empty()) body["effects"] = options.effects;
  Ask ask{.method = "POST", .target = "/v1/sessions", .content_type = "application/json"};
  ask.body.push_back(text_part(body.dump()));
  const Json opened = Json::parse(connection.send(ask).body);
  print(server.is_json ? opened.dump() + "\n" : field_text(opened, "id") + "\n");
  return kDone;
}

int show_session(const CommonOptions& server, const std::string& id) {
  Connection connection(server);
  print_document(server, get_document(connection, session_path(id)));
  return kDone;
}

int resume_session(const CommonOptions& server, const std::string& id) {
  Connection connection(server);
  connection.send({.method = "POST", .target = session_path(id) + ":resume"});
  return kDone;
}

int close_session(const CommonOptions& server, const std::string& id) {
  Connection connection(server);
  connection.send({.method = "DELETE", .target = session_path(id)});
  return kDone;
}

int list_jobs(const CommonOptions& server, const JobFilter& filter) {
  Connection connection(server);
  Query query;
  query.add_given("state", filter.state).add_given("session", filter.session).add_given("program", filter.program);
  print_items(server, all_items(connection, "/v1/jobs", query),
              {{"ID", [](const Json& item) { return field_text(item, "id"); }},
               {"STATE", [](const Json& item) { return field_text(item, "state"); }},
               {"DONE", percent_text, true},
               {"SESSION", [](const Json& item) { return field_text(item, "session"); }},
               {"CREATED", [](const Json& item) { return time_text(item, "created"); }},
               {"ERROR", error_code_text}});
  return kDone;
}

int show_job(const CommonOptions& server, const std::string& id) {
  Connection connection(server);
  const Json job = get_document(connection, job_path(id));
  if (!server.is_json && job.value("progress", Json()).is_object()) {
    Json shown = job;
    shown["progress"] = progress_text(job["progress"]);
    print_document(server, shown);
  } else {
    print_document(server, job);
  }
  return kDone;
}

int cancel_job(const CommonOptions& server, const std::string& id) { return end_job(server, id, false); }

int remove_job(const CommonOptions& server, const std::string& id) { return end_job(server, id, true); }

}  // namespace meshd::client
