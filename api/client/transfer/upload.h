// Sends an array's bytes to an operation: small ones at once, others as a resumable upload (docs/arrays.md), which goes
// on where a lost connection cut it off and is refused before its bytes are sent.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "api/client/text/progress_bar.h"
#include "api/client/transfer/connection.h"
#include "api/client/transfer/input.h"

namespace meshd::client {

/// An operation whose body is array bytes.
struct UploadTarget {
  std::string method;
  std::string target;
  std::vector<std::pair<std::string, std::string>> headers = {};
};

/// The response of the operation. A file of any size takes 256 KiB of memory, standard input 8 MiB.
Answer upload(Connection& connection, const UploadTarget& target, Input& input, ProgressBar& bar);

}  // namespace meshd::client
