#include "api/client/documents/program_source.h"

#include <fmt/core.h>

#include <algorithm>

#include "api/client/documents/listing.h"
#include "service/core/ids.h"

namespace meshd::client {
namespace {

constexpr size_t kMostBytes = size_t{1} << 30;

/// The bytes of a text have no controls but blanks and ends of lines; those of a flatbuffer begin with them.
bool is_text(std::string_view bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](char c) {
    return static_cast<unsigned char>(c) >= ' ' || c == '\n' || c == '\r' || c == '\t' || c == '\f';
  });
}

bool looks_like_mlir(std::string_view text) {
  return text.find("func.func") != std::string_view::npos || text.find("stablehlo.") != std::string_view::npos ||
         text.find("module") != std::string_view::npos;
}

}  // namespace

ProgramSource program_source(const std::string& argument, const std::string& format) {
  ProgramSource out;
  if (core::looks_like_id(argument, "prog")) {
    out.id = argument;
    return out;
  }
  Input input(argument);
  std::string bytes = input.read_all(kMostBytes);
  if (bytes.empty()) throw Failure(kNoInput, fmt::format("{} is empty: expected a program", input.name()));
  out.filename = input.name();
  if (!is_text(bytes)) {
    out.artifact = std::move(bytes);
    return out;
  }
  if (!format.empty()) {
    out.format = format;
  } else if (argument.ends_with(".py")) {
    out.format = "numpy";
  } else {
    out.format = argument.ends_with(".mlir") || looks_like_mlir(bytes) ? "stablehlo" : "numpy";
  }
  out.text = std::move(bytes);
  return out;
}

Json stored_program(Connection& connection, const ProgramSource& source, const std::string& name) {
  if (!source.id.empty()) return get_document(connection, "/v1/programs/" + source.id);
  Ask ask{.method = "POST", .target = "/v1/programs"};
  if (!source.artifact.empty()) {
    Query query;
    query.add_given("name", name);
    ask.target += query.text();
    ask.content_type = "application/octet-stream";
    ask.body.push_back(text_part(source.artifact));
  } else {
    Json body = {{"format", source.format}, {"text", source.text}};
    if (!name.empty()) body["name"] = name;
    ask.content_type = "application/json";
    ask.body.push_back(text_part(body.dump()));
  }
  return Json::parse(connection.send(ask).body);
}

}  // namespace meshd::client
