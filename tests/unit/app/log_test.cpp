#include "api/app/serving/log.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <thread>

namespace meshd::testing {
namespace {

/// Standard error as a pipe that nobody reads until text() is called.
class StalledError {
 public:
  StalledError() : saved_(dup(STDERR_FILENO)) {
    EXPECT_EQ(pipe(ends_.data()), 0);
    fcntl(ends_[1], F_SETPIPE_SZ, 4096);
    dup2(ends_[1], STDERR_FILENO);
    close(ends_[1]);
  }
  ~StalledError() {
    restore();
    close(ends_[0]);
    close(saved_);
  }
  StalledError(const StalledError&) = delete;
  StalledError& operator=(const StalledError&) = delete;

  /// All that was written; only once.
  const std::string& seen() {
    restore();
    read_all();
    return all_;
  }
  /// All that is written until `log` has ended.
  std::string text(std::unique_ptr<api::Log> log) {
    std::thread ends([this, log = std::move(log)]() mutable {
      log->flush();
      log.reset();
      restore();
    });
    read_all();
    ends.join();
    return all_;
  }

 private:
  void restore() { dup2(saved_, STDERR_FILENO); }
  void read_all() {
    std::array<char, 65536> piece{};
    for (ssize_t size = 0; (size = read(ends_[0], piece.data(), piece.size())) > 0;)
      all_.append(piece.data(), static_cast<size_t>(size));
  }

  const int saved_;
  std::array<int, 2> ends_{};
  std::string all_;
};

constexpr int64_t kMiB = 1 << 20;

TEST(Log, lines_behind_a_stalled_reader_are_bounded_in_bytes) {
  StalledError error;
  auto log = std::make_unique<api::Log>(api::LogFormat::kText, "info");
  constexpr int64_t kLines = 4000;
  for (int64_t i = 0; i < kLines; ++i) log->info("request", {{"target", std::string(4000, 't')}});
  const int64_t dropped = log->dropped();
  const std::string text = error.text(std::move(log));
  EXPECT_LE(static_cast<int64_t>(text.size()), 4 * kMiB + 64 * 1024);  // and what the pipe holds
  EXPECT_GE(static_cast<int64_t>(text.size()), 3 * kMiB);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n') + dropped, kLines);
}

TEST(Log, lines_behind_a_stalled_reader_are_bounded_in_number) {
  StalledError error;
  auto log = std::make_unique<api::Log>(api::LogFormat::kText, "info");
  constexpr int64_t kLines = 10'000;
  for (int64_t i = 0; i < kLines; ++i) log->info("request", {});
  const int64_t dropped = log->dropped();
  EXPECT_GT(dropped, 0);
  const std::string text = error.text(std::move(log));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n') + dropped, kLines);
}

// The message that ends the log's thread is in the queue behind the last line, or comes while the thread sleeps.
TEST(Log, lines_of_the_end_are_written) {
  for (int i = 0; i < 60; ++i) {
    StalledError error;
    auto log = std::make_unique<api::Log>(api::LogFormat::kText, "info");
    for (int line = 0; line <= i % 3; ++line) log->info("stopped", {});
    if (i % 2 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(i % 4));
    std::thread ends([&] { log.reset(); });
    ends.join();
    const std::string& seen = error.seen();
    EXPECT_EQ(std::count(seen.begin(), seen.end(), '\n'), i % 3 + 1) << i;
  }
}

TEST(Log, long_text_of_a_field_is_shortened_in_both_formats) {
  for (const api::LogFormat format : {api::LogFormat::kText, api::LogFormat::kJson}) {
    StalledError error;
    auto log = std::make_unique<api::Log>(format, "info");
    log->info("request", {{"detail", std::string(10'000, 'd')}, {"status", 200}});
    const std::string text = error.text(std::move(log));
    EXPECT_LT(text.size(), 4500U);
    EXPECT_NE(text.find("dddd\u2026"), std::string::npos);
    EXPECT_NE(text.find("status"), std::string::npos);
  }
}

TEST(Log, shortened_text_keeps_its_characters_whole) {
  EXPECT_EQ(api::shortened("abcdef", 6), "abcdef");
  EXPECT_EQ(api::shortened("abcdefg", 6), "abc\u2026");
  EXPECT_EQ(api::shortened("ab\u00e9defg", 6), "ab\u2026");  // the letter has two bytes, of which one would fit
}

}  // namespace
}  // namespace meshd::testing
