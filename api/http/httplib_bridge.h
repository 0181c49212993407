// The only user of cpp-httplib. The library parses request heads (rewritten from heads that already passed
// api/http/head.h) and writes status lines; it never handles a socket, a body, a Range or a field that its version gets
// wrong (see README.md). A head that the two parsers read differently is refused.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/http/head.h"

namespace meshd::api {

/// Immutable after construction: any thread.
class HttplibBridge {
 public:
  HttplibBridge();
  ~HttplibBridge();
  HttplibBridge(const HttplibBridge&) = delete;
  HttplibBridge& operator=(const HttplibBridge&) = delete;

  /// Lets the library read `head`. Throws malformed_request if it reads another method or target than we did.
  void understand(const Head& head) const;

  /// "HTTP/1.1 200 OK\r\n", as the library writes it for 200..599; taken from it once, at construction.
  [[nodiscard]] std::string_view status_line(int status) const;

 private:
  class Library;
  std::unique_ptr<Library> library_;
  std::vector<std::string> status_lines_;
};

}  // namespace meshd::api
