#include <fmt/core.h>

#include <array>
#include <optional>

#include "api/client/commands/commands.h"
#include "api/client/documents/array_path.h"
#include "api/client/documents/listing.h"
#include "api/client/documents/output_format.h"
#include "api/client/text/value_text.h"
#include "api/client/transfer/download.h"

namespace meshd::client {
namespace {

/// Several arrays in one file.
std::string export_target(Connection& connection, const GetOptions& options, const std::string& format) {
  if (!options.slice.empty()) throw Failure(kUsage, "--slice is of one array");
  Query query;
  if (options.names.size() == 1) {
    query.add("prefix", options.names[0]);
  } else {
    for (const std::string& name : options.names) {
      query.add("id", field_text(array_document(connection, name), "id"));
      query.add("as", name);
    }
  }
  query.add("format", format);
  if (options.is_deflated) query.add("compression", "deflate");
  return "/v1/arrays:export" + query.text();
}

int print_values(const CommonOptions& server, Connection& connection, const GetOptions& options) {
  const std::string path = array_path(options.names[0]);
  const auto read = [&](const std::string& slice) {
    Query query;
    query.add("format", "json").add_given("slice", slice);
    return get_document(connection, path + "/data" + query.text());
  };
  if (server.is_json) {
    print(read(options.slice).dump() + "\n");
    return kDone;
  }
  if (!options.slice.empty()) {
    print(value_text(read(options.slice).at("data")) + "\n");
    return kDone;
  }
  const auto shape = get_document(connection, path).at("shape").get<std::vector<int64_t>>();
  print(value_text(summarised_data(shape, [&](const std::string& slice) { return read(slice).at("data"); })) + "\n");
  return kDone;
}

}  // namespace

int get(const CommonOptions& server, const GetOptions& options) {
  Connection connection(server);
  const bool is_several = options.names.size() > 1 || options.names[0].ends_with('/');
  if (options.output.empty() && options.format.empty()) {
    if (is_several) throw Failure(kUsage, "several arrays go to a file: -o FILE.safetensors or -o FILE.npz");
    return print_values(server, connection, options);
  }
  const std::string output = options.output.empty() ? "-" : options.output;
  const std::string format = output_format(options.format, output, is_several ? "safetensors" : "npy");
  if (is_several && format != "npz" && format != "safetensors") {
    throw Failure(kUsage,
                  fmt::format("several arrays do not go to one file of the format {}: npz and safetensors do", format));
  }
  Query query;
  // Raw bytes are what the server gives where no other format is asked for.
  query.add_given("format", format == "raw" ? "" : format).add_given("slice", options.slice);
  if (options.is_deflated) query.add("compression", "deflate");
  Ask ask{.target = is_several ? export_target(connection, options, format)
                               : array_path(options.names[0]) + "/data" + query.text()};
  if (format == "raw") ask.headers.emplace_back("Accept", "application/octet-stream");
  ProgressBar bar(options.names[0], !server.is_quiet && !server.is_json);
  Output file(output);
  const Answer head = download(connection, std::move(ask), file, bar);
  bar.clear();
  if (format == "raw" && output != "-" && !server.is_quiet) {
    print(fmt::format("{}: {}[{}], row-major\n", output, head.header("array-dtype"), head.header("array-shape")));
  }
  return kDone;
}

}  // namespace meshd::client
