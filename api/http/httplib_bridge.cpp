#include "api/http/httplib_bridge.h"

#include <httplib.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "api/http/characters.h"
#include "service/core/error.h"

// The code below was checked against this version: process_request is protected, calls pre_routing_handler before it
// reads a body, and may be called by several threads at once. Another version has other internals: read them before you
// change this line.
static_assert(std::string_view(CPPHTTPLIB_VERSION) == "0.11.4",
              "api/http/httplib_bridge.cpp is written for cpp-httplib 0.11.4");

namespace meshd::api {

namespace {

constexpr int kFirstStatus = 200;
constexpr int kLastStatus = 599;
constexpr size_t kLongField = 4096;  // the library refuses lines of more than 8 KiB

/// Methods that the library's parser accepts; others get a 405 without it.
constexpr std::array<std::string_view, 8> kKnownMethods = {"GET",    "HEAD",    "POST",  "PUT",
                                                           "DELETE", "OPTIONS", "TRACE", "PATCH"};

/// Fields that the library would act upon by itself.
constexpr std::array<std::string_view, 10> kWithheld = {
    "Connection", "Content-Encoding",  "Content-Length", "Content-Type", "Expect", "Keep-Alive", "Range",
    "TE",         "Transfer-Encoding", "Upgrade"};

/// A connection in memory: the rewritten head is read from it, the response's head is written to it.
class MemoryStream final : public httplib::Stream {
 public:
  explicit MemoryStream(std::string input) : input_(std::move(input)) {}

  [[nodiscard]] bool is_readable() const override { return position_ < input_.size(); }
  [[nodiscard]] bool is_writable() const override { return true; }
  ssize_t read(char* bytes, size_t size) override {
    const size_t count = std::min(size, input_.size() - position_);
    std::memcpy(bytes, input_.data() + position_, count);
    position_ += count;
    return static_cast<ssize_t>(count);
  }
  ssize_t write(const char* bytes, size_t size) override {
    output_.append(bytes, size);
    return static_cast<ssize_t>(size);
  }
  void get_remote_ip_and_port(std::string& ip, int& port) const override {
    ip.clear();
    port = 0;
  }
  void get_local_ip_and_port(std::string& ip, int& port) const override {
    ip.clear();
    port = 0;
  }
  [[nodiscard]] socket_t socket() const override { return -1; }

  [[nodiscard]] std::string take_output() { return std::move(output_); }

 private:
  std::string input_;
  std::string output_;
  size_t position_ = 0;
};

/// The target with every '?' after the first one escaped: the library takes one only, RFC 3986 3.4 more.
std::string one_question_mark(std::string_view target) {
  const size_t query = std::min(target.find('?'), target.size() - 1) + 1;
  std::string out(target.substr(0, query));
  for (const char c : target.substr(query)) {
    if (c == '?') {
      out += "%3F";
    } else {
      out += c;
    }
  }
  return out;
}

bool is_withheld(const Headers::Field& field) {
  return field.second.size() > kLongField ||
         std::any_of(kWithheld.begin(), kWithheld.end(),
                     [&](std::string_view known) { return equal_ignoring_case(known, field.first); });
}

std::string rewrite(const Head& head, const std::string& target) {
  std::string text;
  text.reserve(512);
  text.append(head.method).append(" ").append(target).append(" HTTP/1.1\r\n");
  for (const Headers::Field& field : head.headers.fields()) {
    if (!is_withheld(field)) text.append(field.first).append(": ").append(field.second).append("\r\n");
  }
  return text.append("\r\n");
}

}  // namespace

/// The library's server with its routing replaced: what it parses is passed to the current call.
class HttplibBridge::Library final : public httplib::Server {
 public:
  Library() {
    // The hook belongs to the server, so the state of one call is passed inside its request, in a callback that the
    // library has for clients and ignores in servers.
    set_pre_routing_handler([](const httplib::Request& request, httplib::Response& response) {
      request.response_handler(response);
      return HandlerResponse::Handled;
    });
  }

  /// Reads one head from `stream` and writes a response's head to it. `call(request, response)` runs in between, once,
  /// if the library accepts the request.
  template <typename Call>
  void process(MemoryStream& stream, Call&& call) {
    bool closed = false;
    process_request(stream, true, closed, [&call](httplib::Request& request) {
      request.response_handler = [&call, &request](const httplib::Response& response) {
        // The library's object is not const, only its view of it in this callback is.
        call(request, const_cast<httplib::Response&>(response));
        return true;
      };
    });
  }
};

HttplibBridge::~HttplibBridge() = default;

HttplibBridge::HttplibBridge() : library_(std::make_unique<Library>()) {
  for (int status = kFirstStatus; status <= kLastStatus; ++status) {
    MemoryStream stream("GET / HTTP/1.1\r\n\r\n");
    library_->process(stream,
                      [status](const httplib::Request&, httplib::Response& response) { response.status = status; });
    const std::string head = stream.take_output();
    status_lines_.push_back(head.substr(0, head.find('\n') + 1));
  }
}

std::string_view HttplibBridge::status_line(int status) const {
  return status_lines_.at(static_cast<size_t>(status - kFirstStatus));
}

void HttplibBridge::understand(const Head& head) const {
  if (std::find(kKnownMethods.begin(), kKnownMethods.end(), head.method) == kKnownMethods.end()) return;
  const std::string target = one_question_mark(head.target);
  MemoryStream stream(rewrite(head, target));
  bool agreed = false;
  library_->process(stream, [&](const httplib::Request& request, httplib::Response& response) {
    agreed = request.method == head.method && request.target == target;
    response.status = kFirstStatus;
  });
  if (!agreed) throw core::Error("malformed_request", "the request's head can be read in two ways");
}

}  // namespace meshd::api
