// A client that sends any bytes at all, and reads answers strictly. One thread sends; the same or another one receives.
// With MESHD_TEST_TRANSPORT=tls in the environment it sends them in TLS records (tests/http/transport.h).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace meshd::http_test {

class TlsClient;

struct Answer {
  int status = 0;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;

  /// The value of the first field of that name (any case), or "".
  [[nodiscard]] std::string header(std::string_view name) const;
};

class RawClient {
 public:
  using Milliseconds = std::chrono::milliseconds;
  static constexpr Milliseconds kPatience{5000};

  /// A socket that is not connected yet.
  RawClient();
  /// Connects; throws std::runtime_error if that fails.
  explicit RawClient(uint16_t port, const std::string& address = "127.0.0.1") : RawClient() { connect(port, address); }
  ~RawClient();
  RawClient(RawClient&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)),
        tls_(std::move(other.tls_)),
        pending_(std::move(other.pending_)),
        begin_(other.begin_) {}
  RawClient& operator=(RawClient&&) = delete;

  void connect(uint16_t port, const std::string& address = "127.0.0.1");
  /// The two halves of connect(): TCP alone, and a handshake over it.
  void connect_socket(uint16_t port, const std::string& address = "127.0.0.1");
  void start_tls();
  /// Sends everything; false if the server closed before all was sent.
  bool send(std::string_view bytes);
  void finish_sending();
  /// One answer; `to_head` answers have no body. Nothing when the connection ends or `patience` is over before it is
  /// whole.
  std::optional<Answer> receive(bool to_head = false, Milliseconds patience = kPatience);
  /// True if the server closes within `patience`, with no more bytes before.
  bool closed(Milliseconds patience = kPatience);
  /// Bytes as they come, until `enough` are there, the end or the end of patience.
  std::string receive_bytes(size_t enough, Milliseconds patience = kPatience);
  /// Waits until `text` has come, and returns everything up to its end; "" if it does not come.
  std::string receive_until(std::string_view text, Milliseconds patience = kPatience);
  [[nodiscard]] int fd() const { return fd_; }
  /// How many times recv() returned bytes.
  [[nodiscard]] int receives() const { return receives_; }

 private:
  enum class More { kBytes, kEnd, kTimeout };
  More read_more(std::chrono::steady_clock::time_point deadline);
  /// What came, at most `size` bytes: none (0) when nothing did, below 0 at the end.
  ssize_t read_some(char* destination, size_t size, std::chrono::steady_clock::time_point deadline);

  /// Takes the next `size` bytes of what is pending.
  std::string take(size_t size);

  int fd_ = -1;
  std::shared_ptr<TlsClient> tls_;  ///< null: the socket's own bytes
  std::string pending_;
  size_t begin_ = 0;  ///< of what is pending and not taken
  int receives_ = 0;
};

}  // namespace meshd::http_test
