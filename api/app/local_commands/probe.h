// The health check of a container: one GET /readyz.
#pragma once

#include <string>

namespace meshd::api {

struct ProbeOptions {
  std::string address = "127.0.0.1:8080";  ///< ADDRESS:PORT, with http:// or https:// before it or without
  std::string ca_file;                     ///< PEM; trusted by https:// instead of the system's; empty: the system's
  bool skips_verification = false;         ///< any certificate will do
};

/// True when the server answers 200 within two seconds; prints the response on standard output.
bool probe(const ProbeOptions& options);

}  // namespace meshd::api
