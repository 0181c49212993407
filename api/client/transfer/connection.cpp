#include "api/client/transfer/connection.h"

#include <fmt/core.h>
#include <httplib.h>
#include <netinet/tcp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "api/client/text/problem_text.h"
#include "api/client/text/terminal_text.h"
#include "service/core/ascii.h"

namespace meshd::client {
namespace {

constexpr time_t kConnectSeconds = 10;
constexpr time_t kAnyTime = 365 * 86'400;
constexpr time_t kWriteSeconds = 300;  ///< a server that takes no byte of a body for so long is lost
constexpr size_t kPieceBytes = 256 << 10;
constexpr size_t kMostOfATokenFile = 64 << 10;

/// A server that is gone without a word is noticed within about two minutes.
void keep_alive(socket_t socket) {
  const auto set = [socket](int level, int name, int value) {
    ::setsockopt(socket, level, name, &value, sizeof(value));
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 60);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 15);
  set(IPPROTO_TCP, TCP_KEEPCNT, 4);
}

std::string token_path(const CommonOptions& options) {
  const char* home = std::getenv("HOME");
  const bool is_at_home = options.token_file.starts_with("~/") && home != nullptr;
  return is_at_home ? home + options.token_file.substr(1) : options.token_file;
}

bool has_token_file(const CommonOptions& options) { return options.token.empty() && !options.token_file.empty(); }

std::string token_of(const CommonOptions& options) {
  if (!has_token_file(options)) return options.token;
  Input file(token_path(options));
  const std::string text = file.read_all(kMostOfATokenFile);
  const std::string token = text.substr(0, text.find_first_of("\r\n"));
  if (token.empty() || token.find_first_of(" \t") != std::string::npos) {
    throw Failure(kNoInput, fmt::format("{}: expected a token alone on the first line", options.token_file));
  }
  return token;
}

std::string why(httplib::Error error, const std::string& url) {
  using Error = httplib::Error;
  switch (error) {
    case Error::Connection:
    case Error::ConnectionTimeout:
      return fmt::format("no server answers at {}; --url and MESHD_URL say where it is", url);
    case Error::SSLConnection:
      return fmt::format("no TLS connection to {}", url);
    case Error::SSLLoadingCerts:
      return "the certificates of --ca cannot be read";
    case Error::SSLServerVerification:
      return fmt::format("the certificate of {} is not trusted; --ca names the file of the one that signed it", url);
    case Error::Canceled:
      return "the request was ended";
    default:
      return fmt::format("the connection to {} was lost", url);
  }
}

/// Gives cpp-httplib the bytes of a body at an offset.
bool write_piece(const Body& body, size_t offset, httplib::DataSink& sink) {
  auto at = static_cast<int64_t>(offset);
  for (const BodyPart& part : body) {
    if (at >= part.size) {
      at -= part.size;
      continue;
    }
    const auto most = static_cast<size_t>(std::min<int64_t>(part.size - at, kPieceBytes));
    if (part.file == nullptr) return sink.write(part.text.data() + at, most);
    const std::string bytes = part.file->read_at(part.offset + at, most);
    // A file that is shorter than it was: nothing that could be sent would be what was announced.
    return bytes.size() == most && sink.write(bytes.data(), bytes.size());
  }
  return false;
}

/// Status and fields; the body stays where it is.
Answer head_of(const httplib::Response& response) {
  Answer out;
  out.status = response.status;
  for (const auto& [name, value] : response.headers) {
    std::string lower = name;
    std::transform(lower.begin(), lower.end(), lower.begin(), core::to_lower);
    out.headers.emplace(std::move(lower), value);
  }
  return out;
}

}  // namespace

void warn_of_open_token_file(const CommonOptions& options, const char* command) {
  if (!has_token_file(options) || options.is_json) return;
  struct stat info {};
  // A pipe, as <(pass show meshd) makes one, has no permissions that count.
  if (::stat(token_path(options).c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return;
  if ((info.st_mode & (S_IRWXG | S_IRWXO)) == 0) return;
  const std::string path = text_for(STDERR_FILENO, options.token_file);
  std::fprintf(stderr,
               "meshd %s: warning: %s is open to others than its owner (mode %04o), and who has the token acts as "
               "you: chmod 600 %s\n",
               command, path.c_str(), static_cast<unsigned>(info.st_mode & 07777), path.c_str());
}

BodyPart text_part(std::string text) {
  BodyPart out;
  out.size = static_cast<int64_t>(text.size());
  out.text = std::move(text);
  return out;
}

int64_t size_of(const Body& body) {
  int64_t out = 0;
  for (const BodyPart& part : body) out += part.size;
  return out;
}

std::string Answer::header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? std::string() : found->second;
}

Connection::Connection(const CommonOptions& options) {
  url_ = options.url.find("://") == std::string::npos ? "http://" + options.url : options.url;
  const size_t host = url_.find("://") + 3;
  while (url_.size() > host && url_.ends_with('/')) url_.pop_back();
  const size_t path = std::min(url_.find('/', host), url_.size());
  prefix_ = url_.substr(path);
  client_ = std::make_unique<httplib::Client>(url_.substr(0, path));
  if (!client_->is_valid() || path == host) {
    throw Failure(kUsage, fmt::format("'{}' is no address of a server: expected http://HOST:PORT or https://HOST:PORT",
                                      options.url));
  }
  const time_t patience = options.timeout_seconds > 0 ? options.timeout_seconds : kAnyTime;
  client_->set_connection_timeout(kConnectSeconds);
  client_->set_read_timeout(patience);
  client_->set_write_timeout(options.timeout_seconds > 0 ? patience : kWriteSeconds);
  client_->set_keep_alive(true);
  client_->set_tcp_nodelay(true);
  client_->set_url_encode(false);
  client_->set_decompress(false);
  client_->set_socket_options(keep_alive);
  if (!options.ca_file.empty()) client_->set_ca_cert_path(options.ca_file.c_str());
  client_->enable_server_certificate_verification(!options.skips_verification);
  const std::string token = token_of(options);
  if (!token.empty()) client_->set_bearer_token_auth(token);
}

Connection::~Connection() = default;

Answer Connection::send(const Ask& ask) {
  httplib::Request request;
  request.method = ask.method;
  request.path = prefix_ + ask.target;
  for (const auto& [name, value] : ask.headers) request.headers.emplace(name, value);
  request.headers.emplace("Accept-Encoding", "identity");
  request.headers.emplace("User-Agent", "meshd");
  if (!ask.content_type.empty()) request.headers.emplace("Content-Type", ask.content_type);
  // What a callback throws ends the request and goes on behind the library, which was not written for it.
  std::exception_ptr thrown;
  const auto guarded = [&thrown](const auto& callback) {
    try {
      return callback();
    } catch (...) {
      thrown = std::current_exception();
      return false;
    }
  };
  const int64_t size = size_of(ask.body);
  if (size > 0) {
    request.content_length_ = static_cast<size_t>(size);
    request.content_provider_ = [&](size_t offset, size_t, httplib::DataSink& sink) {
      return guarded([&] {
        if (ask.sent) ask.sent(static_cast<int64_t>(offset));
        return write_piece(ask.body, offset, sink);
      });
    };
  }
  Answer out;
  request.response_handler = [&](const httplib::Response& response) {
    out = head_of(response);
    return true;
  };
  request.content_receiver = [&](const char* data, size_t length, uint64_t, uint64_t) {
    return guarded([&] {
      if (ask.receiver && out.status < 400) return ask.receiver(out, std::string_view(data, length));
      out.body.append(data, length);
      return true;
    });
  };
  const httplib::Result result = client_->send(request);
  if (thrown) std::rethrow_exception(thrown);
  // The handler is not called for what has no body: HEAD, 204.
  if (result && out.status == 0) out = head_of(*result);
  // A refusal whose connection is closed behind it is an answer all the same.
  if (!result && out.status < 400) throw Disconnected(kUnavailable, why(result.error(), url_));
  if (out.status >= 400) throw failure_of(out.status, out.body);
  return out;
}

void Connection::stop() { client_->stop(); }

std::string percent_encoded(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool is_alphanumeric = (c >= '0' && c <= '9') || (core::to_lower(c) >= 'a' && core::to_lower(c) <= 'z');
    if (is_alphanumeric || std::string_view("-._~").find(c) != std::string_view::npos) {
      out.push_back(c);
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

Query& Query::add(const char* name, std::string_view value) {
  text_ += fmt::format("{}{}={}", text_.empty() ? "?" : "&", name, percent_encoded(value));
  return *this;
}

Query& Query::add_given(const char* name, std::string_view value) { return value.empty() ? *this : add(name, value); }

}  // namespace meshd::client
