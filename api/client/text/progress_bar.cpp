#include "api/client/text/progress_bar.h"

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "api/client/text/terminal_text.h"

namespace meshd::client {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kEvery = std::chrono::milliseconds(100);
constexpr int kBarWidth = 24;
constexpr int kNarrow = 40;

int terminal_width() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > kNarrow ? size.ws_col : kNarrow * 2;
}

}  // namespace

std::string bytes_text(int64_t bytes) {
  static constexpr std::array<const char*, 5> kUnits = {"KiB", "MiB", "GiB", "TiB", "PiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

ProgressBar::ProgressBar(std::string label, bool is_wanted)
    : label_(std::move(label)), is_on_(is_wanted && ::isatty(STDERR_FILENO) != 0), began_(Clock::now()) {}

void ProgressBar::bytes(int64_t done, int64_t total) {
  if (!is_on_) return;
  const double seconds = std::chrono::duration<double>(Clock::now() - began_).count();
  const double rate = seconds > 0 ? static_cast<double>(done) / seconds : 0;
  std::string text = total >= 0 ? bytes_text(done) + "/" + bytes_text(total) : bytes_text(done);
  text += fmt::format("  {}/s", bytes_text(static_cast<int64_t>(rate)));
  if (total > done && rate > 0) {
    const auto left = static_cast<int64_t>(static_cast<double>(total - done) / rate);
    text += fmt::format("  {}:{:02} left", left / 60, left % 60);
  }
  const double percent = total > 0 ? 100.0 * static_cast<double>(done) / static_cast<double>(total) : -1;
  show(percent, text);
}

void ProgressBar::show(double percent, const std::string& text) {
  if (!is_on_ || (is_shown_ && Clock::now() - last_ < kEvery)) return;
  last_ = Clock::now();
  is_shown_ = true;
  std::string line = label_ + "  ";
  if (percent >= 0) {
    const int full = std::clamp(static_cast<int>(percent * kBarWidth / 100), 0, kBarWidth);
    line += fmt::format("[{:#>{}}{: >{}}] {:3.0f}%  ", "", full, "", kBarWidth - full, percent);
  }
  line += terminal_text(text);
  const auto width = static_cast<size_t>(terminal_width() - 1);
  if (line.size() > width) line.resize(width);
  std::fprintf(stderr, "\r%s\033[K", line.c_str());
  std::fflush(stderr);
}

void ProgressBar::clear() {
  if (!is_shown_) return;
  std::fprintf(stderr, "\r\033[K");
  std::fflush(stderr);
  is_shown_ = false;
}

}  // namespace meshd::client
