// The client's connection to a server: requests whose bodies come from memory and files, responses that go to memory or
// to a receiver. cpp-httplib's client, with problem documents as failures.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/client/text/failure.h"
#include "api/client/transfer/input.h"

namespace httplib {
class Client;
}

namespace meshd::client {

/// Options that every command of the client has.
struct CommonOptions {
  std::string url = "http://127.0.0.1:8080";  ///< http:// may be left out; a path before the API's is kept
  std::string token;
  std::string token_file;  ///< its first line is the token; used where `token` is empty
  std::string ca_file;     ///< PEM; trusted by https:// instead of the system's; empty: the system's
  bool skips_verification = false;
  int64_t timeout_seconds = 0;  ///< for an answer to begin or to go on; 0: any time
  bool is_json = false;
  bool is_quiet = false;
};

/// Says on standard error that others can read the token file or change it, and how to mend that; nothing where the
/// token is from elsewhere. For people: with is_json nothing, either.
void warn_of_open_token_file(const CommonOptions& options, const char* command);

/// A part of a body: a text, or `size` bytes of a file at `offset`.
struct BodyPart {
  std::string text;
  const Input* file = nullptr;
  int64_t offset = 0;
  int64_t size = 0;
};
using Body = std::vector<BodyPart>;
BodyPart text_part(std::string text);
int64_t size_of(const Body& body);

struct Answer {
  int status = 0;
  std::multimap<std::string, std::string> headers;  ///< names in lower case
  std::string body;                                 ///< what no receiver took

  /// The value of the first such field, empty where there is none. `name` in lower case.
  [[nodiscard]] std::string header(const std::string& name) const;
};

struct Ask {
  std::string method = "GET";
  std::string target = {};  ///< "/v1/arrays?limit=10"; encoded
  std::vector<std::pair<std::string, std::string>> headers = {};
  std::string content_type = {};  ///< of the body; empty: no body
  Body body = {};
  std::function<void(int64_t)> sent = {};  ///< is told how many bytes of the body have gone
  /// Takes the body of a response below 400 by pieces, with the head; false ends the request.
  std::function<bool(const Answer&, std::string_view)> receiver = {};
};

/// No answer, or not all of it.
class Disconnected : public Failure {
 public:
  using Failure::Failure;
};

/// One thread, but for stop().
class Connection {
 public:
  /// Throws Failure kUsage for an address that is none, kNoInput for a token file that cannot be read.
  explicit Connection(const CommonOptions& options);
  ~Connection();

  /// The response. Throws Failure for statuses from 400 on, Disconnected where no whole answer came.
  Answer send(const Ask& ask);
  /// Ends a request that another thread waits for.
  void stop();

  [[nodiscard]] const std::string& url() const { return url_; }

 private:
  std::string url_;
  std::string prefix_;  ///< of the URL's path
  std::unique_ptr<httplib::Client> client_;
};

/// For a path segment or a value of a query: all but unreserved characters as %XX.
std::string percent_encoded(std::string_view text);

/// "?a=1&b=2" of what is given; values are encoded.
class Query {
 public:
  Query& add(const char* name, std::string_view value);
  /// Left out where the value is empty.
  Query& add_given(const char* name, std::string_view value);
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace meshd::client
