#include "api/httplib_bridge.h"

#include <httplib.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "api/characters.h"
#include "service/core/error.h"

// What stands below was held against this version: process_request is protected, asks pre_routing_handler before it
// reads a body, and calls post_routing_handler before it writes. Another version has other internals: read them before
// you change this line.
static_assert(std::string_view(CPPHTTPLIB_VERSION) == "0.11.4",
              "api/httplib_bridge.cpp is written for cpp-httplib 0.11.4");

namespace meshd::api {

namespace {

/// Methods the library's reader takes; others are answered (405) without it.
constexpr std::array<std::string_view, 8> kKnownMethods = {"GET",    "HEAD",    "POST",  "PUT",
                                                           "DELETE", "OPTIONS", "TRACE", "PATCH"};

/// Fields the library acts upon by itself, in ways we do not want.
constexpr std::array<std::string_view, 10> kWithheld = {
    "Connection", "Content-Encoding",  "Content-Length", "Content-Type", "Expect", "Keep-Alive", "Range",
    "TE",         "Transfer-Encoding", "Upgrade"};

/// Memory that looks like a connection: the rewritten head is read from it, the answer's head is written to it.
class MemoryStream final : public httplib::Stream {
 public:
  MemoryStream(std::string input, const std::string& address, int port)
      : input_(std::move(input)), address_(address), port_(port) {}

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
    ip = address_;
    port = port_;
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
  const std::string& address_;
  int port_;
  size_t position_ = 0;
};

std::string rewrite(const Head& head) {
  std::string text;
  text.reserve(512);
  text.append(head.method).append(" ").append(head.target).append(" HTTP/1.1\r\n");
  for (const auto& [name, value] : head.headers.fields()) {
    const bool withheld = std::any_of(kWithheld.begin(), kWithheld.end(),
                                      [&](std::string_view known) { return equal_ignoring_case(known, name); });
    if (!withheld) text.append(name).append(": ").append(value).append("\r\n");
  }
  return text.append("\r\n");
}

}  // namespace

/// The library's server with its routing replaced: whatever it reads goes to the one call that is under way.
class HttplibBridge::Library final : public httplib::Server {
 public:
  Library() {
    // Both hooks are shared by all threads, so what belongs to one call travels inside its request, in a callback that
    // the library keeps for clients and does not look at in servers.
    set_pre_routing_handler([](const httplib::Request& request, httplib::Response& response) {
      request.response_handler(response);
      return HandlerResponse::Handled;
    });
    set_post_routing_handler(
        [](const httplib::Request& request, httplib::Response& response) { request.response_handler(response); });
  }

  /// `call(request, response)` runs twice: to handle, and just before the head is written.
  template <typename Call>
  bool process(MemoryStream& stream, Call&& call) {
    bool closed = false;
    return process_request(stream, true, closed, [&call](httplib::Request& request) {
      request.response_handler = [&call, &request](const httplib::Response& response) {
        // The library's object is not const, only its view of it in this callback is.
        return call(request, const_cast<httplib::Response&>(response));
      };
    });
  }
};

HttplibBridge::HttplibBridge() : library_(std::make_unique<Library>()) {}
HttplibBridge::~HttplibBridge() = default;

std::string HttplibBridge::exchange(const Head& head, const std::string& peer_address, int peer_port,
                                    const std::function<Answer()>& answer) const {
  if (std::find(kKnownMethods.begin(), kKnownMethods.end(), head.method) == kKnownMethods.end())
    return render(answer());
  MemoryStream stream(rewrite(head), peer_address, peer_port);
  enum class Phase { kHandle, kWrite, kDone } phase = Phase::kHandle;
  bool agreed = false;
  Answer made;
  library_->process(stream, [&](const httplib::Request& request, httplib::Response& response) {
    if (phase == Phase::kHandle) {
      phase = Phase::kWrite;
      agreed = request.method == head.method && request.target == head.target;
      if (agreed) made = answer();
      response.status = made.status;
    } else if (phase == Phase::kWrite) {
      // Here the library has added fields of its own (Keep-Alive, Accept-Ranges, Content-Length: 0): ours replace them
      // all.
      phase = Phase::kDone;
      response.headers.clear();
      for (const auto& [name, value] : made.headers.fields()) response.headers.emplace(name, value);
    }
    return true;
  });
  if (!agreed || phase != Phase::kDone) {
    throw core::Error("malformed_request", "the request's head can be read in two ways");
  }
  return stream.take_output();
}

std::string HttplibBridge::render(const Answer& answer) const {
  Head head;
  head.method = "GET";
  head.target = "/";
  return exchange(head, {}, 0, [&] { return answer; });
}

}  // namespace meshd::api
