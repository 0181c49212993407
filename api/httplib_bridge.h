// The only place that knows cpp-httplib. The library reads request heads (rewritten from heads that already passed
// api/head.h) and writes the heads of answers; it never sees a socket, a body, a Range or a field that its version gets
// wrong (see README.md).
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "api/head.h"
#include "api/http.h"

namespace meshd::api {

/// Immutable after construction: any thread.
class HttplibBridge {
 public:
  /// Status and fields of an answer, complete: Content-Length and Connection included.
  struct Answer {
    int status = 500;
    Headers headers;
  };

  HttplibBridge();
  ~HttplibBridge();
  HttplibBridge(const HttplibBridge&) = delete;
  HttplibBridge& operator=(const HttplibBridge&) = delete;

  /// Lets the library understand `head`, calls `answer` once from inside of it, and returns the bytes of the answer's
  /// head. Throws malformed_request, without calling `answer`, if the library reads another method or target than we
  /// did. `answer` must not throw.
  [[nodiscard]] std::string exchange(const Head& head, const std::string& peer_address, int peer_port,
                                     const std::function<Answer()>& answer) const;

  /// The bytes of an answer's head where there is no request the library could read.
  [[nodiscard]] std::string render(const Answer& answer) const;

 private:
  class Library;
  std::unique_ptr<Library> library_;
};

}  // namespace meshd::api
