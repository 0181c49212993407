#include <fmt/core.h>

#include <filesystem>

#include "api/client/commands/commands.h"
#include "api/client/documents/array_path.h"
#include "api/client/documents/listing.h"
#include "api/client/documents/placement.h"
#include "api/client/transfer/download.h"
#include "api/client/transfer/upload.h"

namespace meshd::client {
namespace {

using api::FileKind;

bool is_archive(FileKind kind) { return kind == FileKind::kZip || kind == FileKind::kSafetensors; }

/// Refuses kinds that no array can be made of, by their first bytes, before anything is sent.
void check_kind(Input& input, const PutOptions& options) {
  const FileKind kind = input.kind();
  if (kind == FileKind::kNpy || is_archive(kind) || !options.shape.empty()) return;
  const api::FileKindRow& row = api::file_kind_row(kind);
  if (kind != FileKind::kUnknown) {
    throw Failure(kNoInput, fmt::format("{} is {}, of which no array is made{}{}", input.name(), row.name,
                                        row.instead.empty() ? "" : ": ", row.instead));
  }
  // Raw bytes may replace those of an array, which tells their type.
  if (options.name.empty()) {
    throw Failure(kNoInput, fmt::format("{} is no .npy, .npz or safetensors file; raw bytes need --dtype and --shape",
                                        input.name()));
  }
}

Query place_of(const PutOptions& options, const std::string& mesh) {
  Query out;
  out.add_given("mesh", mesh);
  // An empty spec beside a mesh replicates the array.
  if (!mesh.empty()) out.add("spec", options.spec);
  if (mesh.empty()) out.add_given("spec", options.spec);
  out.add_given("uneven", options.refuses_uneven ? "refuse" : "");
  out.add_given("durability", options.durability);
  out.add_given("session", options.session);
  return out;
}

/// data/ and digits.npy: data/digits. Any other name is the array's own.
std::string name_of(const PutOptions& options, const std::string& file) {
  if (!options.name.empty() && !options.name.ends_with('/')) return options.name;
  if (options.name.empty()) return "";
  if (file == "-") throw Failure(kUsage, "standard input has no name: --name has to be one without '/' at its end");
  return options.name + std::filesystem::path(file).stem().string();
}

UploadTarget import_target(const PutOptions& options, Query query) {
  const bool is_prefix = options.name.empty() || options.name.ends_with('/');
  query.add_given(is_prefix ? "prefix" : "name", options.name);
  for (const std::string& each : options.spec_for) query.add("spec_for", each);
  for (const std::string& each : options.dtype_for) query.add("dtype_for", each);
  if (!options.name.empty()) query.add("unique", "true");
  if (options.is_replacing) query.add("replace", "true");
  return {"POST", "/v1/arrays:import" + query.text()};
}

UploadTarget array_target(Connection& connection, const PutOptions& options, const std::string& name, Query query) {
  query.add_given("dtype", options.dtype);
  if (!options.shape.empty() || (!options.dtype.empty() && options.slice.empty())) query.add("shape", options.shape);
  query.add_given("slice", options.slice);
  if (name.empty()) return {"POST", "/v1/arrays" + query.text()};
  UploadTarget out{"PUT", array_path(name) + "/data" + query.text()};
  if (options.is_new) out.headers.emplace_back("If-None-Match", "*");
  if (options.is_replacing) {
    try {
      const std::string tag = connection.send({.target = array_path(name)}).header("etag");
      out.headers.emplace_back("If-Match", tag);
    } catch (const Failure& failure) {
      // Nothing has the name: there is nothing to replace.
      if (failure.code() != kRefused) throw;
    }
  }
  return out;
}

void print_stored(const CommonOptions& server, const Json& array) {
  if (server.is_json) {
    print(array.dump() + "\n");
    return;
  }
  const std::string name = field_text(array, "name");
  const std::string spec = spec_text(array.value("sharding", Json()));
  print(fmt::format("{}  {}  {}{}  version {}\n", name.empty() ? field_text(array, "id") : name, type_text(array),
                    bytes_text(array.value("bytes", int64_t{0})), spec.empty() ? "" : "  spec " + spec,
                    array.value("version", int64_t{0})));
}

}  // namespace

int put(const CommonOptions& server, const PutOptions& options) {
  Connection connection(server);
  if (options.files.size() > 1 && !options.name.empty() && !options.name.ends_with('/')) {
    throw Failure(kUsage, fmt::format("several files cannot all be '{}': with '{}/' each is called by its file",
                                      options.name, options.name));
  }
  // All of them, before the first is sent.
  for (const std::string& file : options.files) {
    if (file == "-") continue;
    Input input(file);
    check_kind(input, options);
  }
  const Query place = place_of(options, mesh_id(connection, options.mesh));
  for (const std::string& file : options.files) {
    Input input(file);
    check_kind(input, options);
    ProgressBar bar(input.name(), !server.is_quiet && !server.is_json);
    const bool is_import = is_archive(input.kind()) && options.shape.empty();
    const UploadTarget target =
        is_import ? import_target(options, place) : array_target(connection, options, name_of(options, file), place);
    const Json made = Json::parse(upload(connection, target, input, bar).body);
    bar.clear();
    if (!is_import) {
      print_stored(server, made);
    } else if (server.is_json) {
      print(made.dump() + "\n");
    } else {
      for (const Json& array : made.at("items")) print_stored(server, array);
    }
  }
  return kDone;
}

}  // namespace meshd::client
