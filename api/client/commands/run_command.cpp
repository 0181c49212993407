#include <fmt/core.h>
#include <unistd.h>

#include <cstdio>
#include <string_view>

#include "api/client/commands/commands.h"
#include "api/client/commands/place_document.h"
#include "api/client/documents/array_path.h"
#include "api/client/documents/effect_text.h"
#include "api/client/documents/listing.h"
#include "api/client/documents/output_format.h"
#include "api/client/documents/placement.h"
#include "api/client/documents/program_source.h"
#include "api/client/text/terminal_text.h"
#include "api/client/text/value_text.h"
#include "api/client/transfer/download.h"
#include "api/client/transfer/form.h"
#include "service/core/ids.h"

namespace meshd::client {
namespace {

constexpr std::string_view kArrayPrefix = "array:";

/// A stored array, a file (with #MEMBER of a .npz or safetensors file), standard input, or JSON.
Json argument_document(Connection& connection, Form& form, const std::string& text, size_t position) {
  if (core::looks_like_id(text, "arr")) return {{"array", text}};
  if (text.starts_with(kArrayPrefix)) {
    return {{"array", field_text(array_document(connection, text.substr(kArrayPrefix.size())), "id")}};
  }
  const std::string part = fmt::format("argument{}", position);
  if (text == "-" || ::access(text.c_str(), F_OK) == 0) {
    form.add_file(part, text);
    return {{"part", part}};
  }
  const Json value = Json::parse(text, nullptr, false);
  if (!value.is_discarded()) return value;
  const size_t hash = text.rfind('#');
  if (hash != std::string::npos && ::access(text.substr(0, hash).c_str(), F_OK) == 0) {
    form.add_file(part, text.substr(0, hash));
    return {{"part", part}, {"member", text.substr(hash + 1)}};
  }
  throw Failure(kNoInput, fmt::format("'{}' is no file, no number or list, and no stored array (those are {}NAME or "
                                      "arr_...)",
                                      text, kArrayPrefix));
}

Json run_request(Connection& connection, Form& form, const RunOptions& options) {
  Json out;
  const ProgramSource source = program_source(options.program, options.format);
  if (!source.id.empty()) {
    out["program"] = {{"id", source.id}};
  } else if (!source.artifact.empty()) {
    form.add_bytes("program", source.filename, source.artifact);
    out["program"] = {{"part", "program"}};
  } else {
    out["program"] = {{"format", source.format}, {"text", source.text}};
  }
  out["arguments"] = Json::array();
  for (size_t i = 0; i < options.arguments.size(); ++i) {
    out["arguments"].push_back(argument_document(connection, form, options.arguments[i], i));
  }
  add_place(out, options.place, true);
  if (!options.session.empty()) out["session"] = options.session;
  if (!options.effects.empty()) out["effects"] = options.effects;
  if (options.deadline > 0) out["deadline"] = options.deadline;
  if (options.is_least_loaded) out["devices"] = "least_loaded";
  if (options.is_stored || !options.names.empty()) {
    out["results"]["encoding"] = "array";
    if (!options.names.empty()) out["results"]["names"] = options.names;
  }
  return out;
}

void print_effects(const Json& answer) {
  for (const Json& effect : answer.value("effects", Json::array())) {
    std::fprintf(stderr, "%s\n", text_for(STDERR_FILENO, effect_text(effect)).c_str());
  }
  for (const Json& warning : answer.value("warnings", Json::array())) {
    std::fprintf(stderr, "warning: %s\n", warning.get<std::string>().c_str());
  }
}

void print_answer(const RunOptions& options, const Json& answer) {
  const Json& results = answer.at("results");
  for (size_t i = 0; i < results.size(); ++i) {
    const Json& result = results[i];
    if (result.contains("array")) {
      const std::string name = i < options.names.size() ? options.names[i] : "";
      print(fmt::format("{}  {}\n", name.empty() ? field_text(result, "array") : name, type_text(result)));
    } else if (result.contains("data")) {
      print(value_text(shortened(result["data"])) + "\n");
    }
  }
}

}  // namespace

int run_program(const CommonOptions& server, const RunOptions& options) {
  Connection connection(server);
  Form form;
  const Json request = run_request(connection, form, options);
  Ask ask{.method = "POST", .target = "/v1/run"};
  form.fill(ask, request);
  const bool has_file = !options.output.empty() || !options.output_format.empty();
  if (has_file && (options.is_asynchronous || request.contains("results"))) {
    throw Failure(kUsage, "--output is for results that come back: not with --async, --store or --name");
  }
  ProgressBar bar(options.program, !server.is_quiet && !server.is_json);
  const int64_t total = size_of(ask.body);
  ask.sent = [&](int64_t sent) { bar.bytes(sent, total); };
  if (has_file) {
    const std::string output = options.output.empty() ? "-" : options.output;
    const std::string format = output_format(options.output_format, output, "npy");
    if (format == "raw") {
      throw Failure(kUsage, "results are written as .npy (one), .npz, .safetensors or .json: --format says which");
    }
    ask.headers.emplace_back("Accept", media_type(format));
    Output file(output);
    const Answer head = download(connection, std::move(ask), file, bar);
    bar.clear();
    const std::string told = head.header("meshd-answer");
    if (!told.empty()) print_effects(Json::parse(told));
    return kDone;
  }
  if (options.is_asynchronous) ask.headers.emplace_back("Prefer", "respond-async");
  const Answer answer = connection.send(ask);
  bar.clear();
  const Json document = Json::parse(answer.body);
  if (server.is_json) {
    print(document.dump() + "\n");
  } else if (answer.status == 202) {
    print(field_text(document, "id") + "\n");
  } else {
    print_effects(document);
    print_answer(options, document);
  }
  return kDone;
}

}  // namespace meshd::client
