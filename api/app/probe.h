// What a container's health check runs: one GET /readyz.
#pragma once

#include <string>

namespace meshd::api {

/// True when the server at ADDRESS:PORT answers 200 within two seconds; says what it got on standard output.
bool probe(const std::string& address);

}  // namespace meshd::api
