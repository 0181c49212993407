// A body of multipart/form-data (RFC 7578): a JSON document and files, which are read as they are sent.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "api/client/text/json.h"
#include "api/client/transfer/connection.h"
#include "api/client/transfer/input.h"

namespace meshd::client {

/// One thread. Its body refers to it.
class Form {
 public:
  /// The part `name` with the bytes of a file, or all of standard input (at most 1 GiB, which is held).
  void add_file(const std::string& name, const std::string& path);
  void add_bytes(const std::string& name, std::string filename, std::string bytes);
  [[nodiscard]] bool empty() const { return parts_.empty(); }

  /// Makes `ask` send the part `request`, and behind it the files; without files a JSON document alone.
  void fill(Ask& ask, const Json& request) const;

 private:
  struct Part {
    std::string name, filename;
    std::unique_ptr<Input> file;
    std::string bytes;
  };
  std::vector<Part> parts_;
};

}  // namespace meshd::client
