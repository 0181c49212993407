// requests_bench: small runs over HTTP beside a thread that takes and sends as many bytes and looks at nothing. What is
// compared is a request without its run (Server-Timing): parse, look up, hand over, answer. One client, one kept
// connection, the whole server in this process.
//
// Each row twice, because the scheduler chooses either from one moment to the next: client and peer on a processor
// each, which have to be woken across, as between machines; and all threads on one processor, where a raw round trip is
// two changes of threads and what the server computes is all that there is to see.
//
// requests_bench [TEXT]     only rows with this in their name
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "api/app/serving/app.h"
#include "api/app/serving/freed_memory.h"
#include "api/codecs/base64.h"
#include "tests/bench/raw_server.h"
#include "tests/bench/stopwatch.h"

namespace meshd::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kRounds = 7;
constexpr std::chrono::milliseconds kRoundTime{150};

double us_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

/// Where threads run: each side on a processor of its own, or all on one.
enum class Placement : uint8_t { kTwo, kOne };

void pin(pid_t thread, const cpu_set_t& processors) { sched_setaffinity(thread, sizeof processors, &processors); }

cpu_set_t only(int processor) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(processor, &set);
  return set;
}

cpu_set_t all_but_first() {
  cpu_set_t set = only(0);
  for (unsigned processor = 1; processor < std::thread::hardware_concurrency(); ++processor) CPU_SET(processor, &set);
  CPU_CLR(0, &set);
  return set;
}

/// All threads of this process, as long as it lives.
class Pinned {
 public:
  explicit Pinned(Placement placement) {
    sched_getaffinity(0, sizeof all_, &all_);
    pin_all(placement == Placement::kOne ? only(0) : all_but_first());
    pin(0, only(0));  // the client
  }
  ~Pinned() { pin_all(all_); }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;

 private:
  static void pin_all(const cpu_set_t& set) {
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task"))
      pin(static_cast<pid_t>(std::stol(task.path().filename().string())), set);
  }
  cpu_set_t all_{};
};

/// Takes requests of a size and answers each with the same bytes, on one connection.
class RawPeer {
 public:
  RawPeer(size_t request_size, std::string answer, Placement placement) : listener_(listen_on(port_)) {
    thread_ = std::thread([this, request_size, placement, answer = std::move(answer)] {
      if (placement == Placement::kTwo) pin(0, all_but_first());
      const int fd = accept(listener_, nullptr, nullptr);
      const int on = 1;
      setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      std::vector<char> request(request_size);
      while (receive_all(fd, request) && send_all(fd, answer)) continue;
      close(fd);
    });
  }
  /// When its client is gone.
  ~RawPeer() {
    thread_.join();
    close(listener_);
  }
  RawPeer(const RawPeer&) = delete;
  RawPeer& operator=(const RawPeer&) = delete;
  [[nodiscard]] uint16_t port() const { return port_; }

 private:
  uint16_t port_ = 0;
  int listener_ = -1;
  std::thread thread_;
};

/// One connection. Requests are texts that were made before they are timed.
class Client {
 public:
  explicit Client(uint16_t port) : fd_(connect_to(port)) {}
  ~Client() { close(fd_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  /// Head and body of the answer.
  const std::string& ask(const std::string& request) {
    if (!send_all(fd_, request)) throw std::runtime_error("the server has closed the connection");
    answer_.clear();
    size_t wanted = 0;
    while (wanted == 0 || answer_.size() < wanted) {
      const ssize_t count = recv(fd_, buffer_.data(), buffer_.size(), 0);
      if (count <= 0) throw std::runtime_error("the server has closed the connection");
      answer_.append(buffer_.data(), static_cast<size_t>(count));
      const size_t head = answer_.find("\r\n\r\n");
      if (wanted != 0 || head == std::string::npos) continue;
      const size_t field = answer_.find("Content-Length: ");
      wanted = head + 4 + (field < head ? std::strtoull(answer_.c_str() + field + 16, nullptr, 10) : 0);
    }
    return answer_;
  }
  std::string id_of(const std::string& request) {
    const std::string& answer = ask(request);
    const size_t at = answer.find(R"("id":")");
    if (at == std::string::npos) throw std::runtime_error(answer);
    return answer.substr(at + 6, answer.find('"', at + 6) - at - 6);
  }

 private:
  int fd_;
  std::string answer_;
  std::vector<char> buffer_ = std::vector<char>(size_t{1} << 20);
};

std::string post(const std::string& path, std::string_view type, std::string_view body) {
  return "POST " + path + " HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: " + std::string(type) +
         "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}

/// Milliseconds of the run, from Server-Timing, as microseconds.
double run_us(const std::string& answer) {
  const size_t at = answer.find("run;dur=");
  return at == std::string::npos ? 0 : std::strtod(answer.c_str() + at + 8, nullptr) * 1000;
}

struct Times {
  double p50_us = 0, run_us = 0;
};

Times times_of(Client& client, const std::string& request) {
  std::vector<double> took, ran;
  const auto end = Clock::now() + kRoundTime;
  while (Clock::now() < end || took.size() < 8) {
    const auto start = Clock::now();
    const std::string& answer = client.ask(request);
    took.push_back(us_since(start));
    ran.push_back(run_us(answer));
  }
  return {median(took), median(ran)};
}

/// Only rows with this in their name.
std::string_view wanted;

void compare_placed(Client& client, const std::string& name, const std::string& request, const std::string& answer,
                    Placement placement) {
  const Pinned pinned(placement);
  const RawPeer peer(request.size(), answer, placement);
  Client raw(peer.port());
  std::vector<double> ratios, ours, raws, runs;
  for (int round = 0; round < kRounds; ++round) {
    const Times mine = times_of(client, request);
    const Times theirs = times_of(raw, request);
    ours.push_back(mine.p50_us);
    runs.push_back(mine.run_us);
    raws.push_back(theirs.p50_us);
    ratios.push_back((mine.p50_us - mine.run_us) / theirs.p50_us);
  }
  std::printf("%-44s %s p50 %7.1f us, of which run %7.1f; raw loopback %6.1f; without the run %.2f of it\n",
              name.c_str(), placement == Placement::kOne ? "one processor " : "two processors", median(ours),
              median(runs), median(raws), median(ratios));
}

void compare_with_raw(Client& client, const std::string& name, const std::string& request) {
  if (name.find(wanted) == std::string::npos) return;
  const std::string answer = client.ask(request);
  if (!answer.starts_with("HTTP/1.1 200")) throw std::runtime_error(answer);
  if (std::thread::hardware_concurrency() > 1) compare_placed(client, name, request, answer, Placement::kTwo);
  compare_placed(client, name, request, answer, Placement::kOne);
}

std::string value_of(size_t elements) {
  const std::vector<float> values(elements, 0.5F);
  return R"({"dtype":"float32","shape":[)" + std::to_string(elements) + R"(],"base64":")" +
         api::base64_encode(std::as_bytes(std::span(values))) + "\"}";
}

int run(const std::string& folder) {
  api::Log log(api::LogFormat::kText, "warn");
  api::AppOptions options;
  options.listen = "127.0.0.1:0";
  options.data = folder;
  options.principal.arrays = 0;  // any number: results are stored
  api::App app(options, log);
  const uint16_t port = app.start();
  {
    Client client(port);
    const auto program = [&](size_t elements) {
      const std::string type = "tensor<" + std::to_string(elements) + "xf32>";
      return client.id_of(post("/v1/programs", "text/plain",
                               "func.func @main(%a: " + type + ") -> " + type +
                                   " { %0 = stablehlo.add %a, %a : " + type + " return %0 : " + type + " }"));
    };
    compare_with_raw(client, "GET /livez", "GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
    const std::string small = program(64);
    const std::string array = client.id_of(post("/v1/arrays?dtype=float32&shape=64&durability=memory",
                                                "application/octet-stream", std::string(256, '\0')));
    const auto request = [&](const std::string& id, const std::string& argument, const std::string& rest) {
      return post("/v1/run", "application/json",
                  R"({"program":{"id":")" + id + R"("},"arguments":[)" + argument + "]" + rest + "}");
    };
    const std::string stored = R"({"array":")" + array + "\"}";
    compare_with_raw(client, "run on a stored array, 1 device", request(small, stored, ""));
    compare_with_raw(
        client, "run on a stored array, 8 devices",
        request(small, stored,
                R"(,"mesh":{"axis_names":["x"],"devices":[0,1,2,3,4,5,6,7]},"in_shardings":[{"spec":["x"]}])"));
    compare_with_raw(client, "run on a stored array, result stored in memory",
                     request(small, stored, R"(,"results":{"encoding":"array","durability":"memory"})"));
    for (const size_t kib : {8U, 48U, 128U, 1024U}) {
      const size_t elements = kib * 256;
      compare_with_raw(client, "run, " + std::to_string(kib) + " KiB each way as base64",
                       request(program(elements), value_of(elements), R"(,"results":{"encoding":"base64"})"));
    }
  }
  return app.stop() ? 0 : 1;
}

}  // namespace
}  // namespace meshd::bench

int main(int count, char** arguments) {
  if (count > 1) meshd::bench::wanted = arguments[1];
  meshd::api::return_freed_memory();  // as the binary does
  char folder[] = "/tmp/meshd-bench-XXXXXX";
  if (mkdtemp(folder) == nullptr) return 1;
  int code = 1;
  try {
    code = meshd::bench::run(folder);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "requests_bench: %s\n", error.what());
  }
  std::filesystem::remove_all(folder);
  return code;
}
