// Kills a working process at random moments, opens its folder again and compares with what was acknowledged. Some kills
// follow each other without a look in between, so that recovery is killed too. SEED in the environment repeats a run.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <random>
#include <string>

#include "tests/recovery/kill_history.h"
#include "tests/recovery/kill_protocol.h"
#include "tests/support/effort.h"
#include "tests/support/storage_fixture.h"

namespace meshd::testing {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kPatience{60};

/// When to kill: after so many lines, or after so much time, whichever its plan says.
struct Moment {
  int64_t lines = 0;
  std::chrono::microseconds time{};
};

class Child {
 public:
  Child(const std::string& folder, const std::string& seed) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
    process_ = ::fork();
    if (process_ == 0) {
      ::dup2(ends[1], STDOUT_FILENO);
      ::execl(MESHD_KILL_CHILD, MESHD_KILL_CHILD, folder.c_str(), seed.c_str(), nullptr);
      ::_exit(127);
    }
    ::close(ends[1]);
    pipe_ = ends[0];
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() { ::close(pipe_); }

  // Hands lines to `history` until the moment has come, kills, then hands over what was still in the pipe. Returns the
  // signal that ended the child, 0 if it ended by itself.
  int kill_at(const Moment& moment, KillHistory& history) {
    const auto deadline = Clock::now() + (moment.lines > 0 ? Clock::duration(kPatience) : Clock::duration(moment.time));
    int64_t lines = 0;
    while ((moment.lines == 0 || lines < moment.lines) && wait_readable(deadline)) {
      const int64_t got = read_lines(history);
      if (got < 0) break;
      lines += got;
    }
    ::kill(process_, SIGKILL);
    while (read_lines(history) >= 0) {
    }
    int status = 0;
    ::waitpid(process_, &status, 0);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  }

 private:
  [[nodiscard]] bool wait_readable(Clock::time_point deadline) const {
    const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(deadline - Clock::now());
    if (left.count() <= 0) return false;
    pollfd entry{pipe_, POLLIN, 0};
    const timespec timeout{static_cast<time_t>(left.count() / 1'000'000'000),
                           static_cast<long>(left.count() % 1'000'000'000)};
    return ::ppoll(&entry, 1, &timeout, nullptr) > 0;
  }

  // -1 at the end of the pipe.
  int64_t read_lines(KillHistory& history) {
    std::array<char, 4096> buffer{};
    const ssize_t got = ::read(pipe_, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) return 0;
    if (got <= 0) return -1;
    text_.append(buffer.data(), static_cast<size_t>(got));
    int64_t lines = 0;
    for (size_t end = text_.find('\n'); end != std::string::npos; end = text_.find('\n')) {
      history.note(text_.substr(0, end));
      text_.erase(0, end + 1);
      ++lines;
    }
    return lines;
  }

  pid_t process_ = 0;
  int pipe_ = -1;
  std::string text_;
};

uint64_t choose_seed() {
  const char* given = std::getenv("SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
}

TEST(Kill, nothing_acknowledged_is_lost_or_torn_by_kill_9) {
  const TempFolder folder;
  const std::string data = folder.path() + "/data";
  const uint64_t seed = choose_seed();
  SCOPED_TRACE("SEED=" + std::to_string(seed));
  RecordProperty("seed", std::to_string(seed));
  std::mt19937_64 random(seed);
  KillHistory history;
  const int kills = by_effort(30, 200, 2000);
  for (int kill = 0; kill < kills; ++kill) {
    Child child(data, std::to_string(seed) + "-" + std::to_string(kill));
    Moment moment;
    if (random() % 3 == 0) {
      moment.time = std::chrono::microseconds(random() % 60'000);  // often before or while it recovers
    } else {
      moment.lines = 1 + static_cast<int64_t>(random() % 300);
    }
    ASSERT_EQ(child.kill_at(moment, history), SIGKILL) << "the child ended by itself at kill " << kill;
    if (kill + 1 < kills && random() % 3 == 0) continue;
    OpenStore store(data);
    const std::vector<std::string> wrong = history.check(*store);
    ASSERT_TRUE(wrong.empty()) << wrong.size() << " rules broken after kill " << kill << ", first: " << wrong.front();
  }
  EXPECT_GT(history.acknowledged(), kills * 10);
  RecordProperty("acknowledged", static_cast<int>(history.acknowledged()));
}

}  // namespace
}  // namespace meshd::testing
