// The only place that knows cpp-httplib. The library reads request heads (rewritten from heads that already passed
// api/http/head.h) and says how an answer starts; it never sees a socket, a body, a Range or a field that its version
// gets wrong (see README.md). What both readers do not read alike is refused.
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

  /// "HTTP/1.1 200 OK\r\n", as the library writes it for 200..599; asked of it once, at construction.
  [[nodiscard]] std::string_view status_line(int status) const;

 private:
  class Library;
  std::unique_ptr<Library> library_;
  std::vector<std::string> status_lines_;
};

}  // namespace meshd::api
