#include "api/app/local_commands/probe.h"

#include <httplib.h>

#include <cstdio>

namespace meshd::api {
namespace {

constexpr time_t kPatienceSeconds = 2;

}  // namespace

bool probe(const ProbeOptions& options) {
  const bool has_scheme = options.address.find("://") != std::string::npos;
  httplib::Client client((has_scheme ? "" : "http://") + options.address);
  if (!client.is_valid()) {
    std::printf("%s is no address of a server\n", options.address.c_str());
    return false;
  }
  client.set_connection_timeout(kPatienceSeconds);
  client.set_read_timeout(kPatienceSeconds);
  client.set_write_timeout(kPatienceSeconds);
  if (!options.ca_file.empty()) client.set_ca_cert_path(options.ca_file.c_str());
  client.enable_server_certificate_verification(!options.skips_verification);
  const httplib::Result answer = client.Get("/readyz");
  if (!answer) {
    std::printf("%s: %s\n", options.address.c_str(), httplib::to_string(answer.error()).c_str());
    return false;
  }
  std::printf("HTTP/1.1 %d %s\n", answer->status, answer->reason.c_str());
  return answer->status == 200;
}

}  // namespace meshd::api
