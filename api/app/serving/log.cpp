#include "api/app/serving/log.h"

#include <spdlog/async.h>
#include <spdlog/details/null_mutex.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <future>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>
#include <system_error>
#include <thread>
#include <utility>

#include "api/app/serving/log_queue.h"
#include "service/core/clock.h"

namespace meshd::api {
namespace {

using Fields = std::initializer_list<Log::Field>;

constexpr int64_t kQueuedLines = 8192;
constexpr int64_t kQueuedBytes = 4 << 20;  // of text, behind a reader that has stalled
constexpr size_t kLongestText = 4096;      // of a field: the detail of an error may quote what a client sent
constexpr std::chrono::seconds kFarewell{2};
// After it has written what was queued, the log's thread sleeps for so long before it looks again: lines that come
// meanwhile wake nobody, and are written together. Waking a thread is most of what a line costs its request.
constexpr std::chrono::milliseconds kWriteInterval{10};
constexpr size_t kMostKept = size_t{64} << 10;  // bytes of lines that are to be written together
constexpr std::string_view kEllipsis = "\u2026";

/// With \u00e9 and U+FFFD where a byte is no UTF-8: whatever a client sent, a line is one line.
std::string dump(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

bool is_left_out(const Log::Field& field) {
  const auto* text = std::get_if<std::string>(&field.value);
  return text != nullptr && text->empty();
}

std::string plain(const std::string& text) {
  const bool is_a_word = text.find_first_of(" \"\\\n\r\t=") == std::string::npos;
  return is_a_word ? text : dump(text);
}
std::string plain(bool is_set) { return is_set ? "true" : "false"; }
template <typename Number>
std::string plain(Number number) {
  return dump(number);
}

std::string cut(const std::string& text) { return shortened(text, kLongestText); }
template <typename Number>
Number cut(Number number) {
  return number;
}

std::string as_json(const std::string& time, std::string_view level, std::string_view event, Fields fields) {
  nlohmann::ordered_json line{{"time", time}, {"level", level}, {"event", event}};
  for (const Log::Field& field : fields) {
    if (!is_left_out(field))
      std::visit([&](const auto& value) { line[std::string(field.name)] = cut(value); }, field.value);
  }
  return dump(line);
}

std::string as_text(const std::string& time, std::string_view level, std::string_view event, Fields fields) {
  std::string line = time + " " + std::string(level) + " " + std::string(event);
  for (const Log::Field& field : fields) {
    if (is_left_out(field)) continue;
    line += " " + std::string(field.name) + "=";
    std::visit([&](const auto& value) { line += plain(cut(value)); }, field.value);
  }
  return line;
}

/// Writes to standard error past stdio, whose lock everybody would wait for at the end of the process while nobody
/// reads. Of the one thread of the queue.
class StandardError final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  /// `account` has each line until it is written; `pool` has the queue, and calls this.
  StandardError(std::shared_ptr<QueueAccount> account, spdlog::details::thread_pool& pool)
      : account_(std::move(account)), pool_(pool) {}
  /// Writes the lines that waited for another one, where spdlog's message to end its thread came instead.
  ~StandardError() override {
    if (count_ > 0) write_lines();
  }
  StandardError(const StandardError&) = delete;
  StandardError& operator=(const StandardError&) = delete;

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    ++count_;
    bytes_ += static_cast<int64_t>(message.payload.size());
    try {
      formatter_->format(message, lines_);
    } catch (const std::bad_alloc&) {
      account_->add_lost(1);
    }
    const bool is_last = pool_.queue_size() == 0;
    if (!is_last && lines_.size() < kMostKept) return;
    write_lines();
    if (is_last) std::this_thread::sleep_for(kWriteInterval);
  }

  void write_lines() {
    std::string_view left(lines_.data(), lines_.size());
    while (!left.empty()) {
      const std::string_view some = left.substr(0, whole_lines(left));
      if (!write(some)) account_->add_lost(std::count(some.begin(), some.end(), '\n'));
      left.remove_prefix(some.size());
    }
    lines_.clear();
    account_->leave(std::exchange(count_, 0), std::exchange(bytes_, 0));
  }

  // The length of the first lines: of no more than a pipe takes at once (POSIX, PIPE_BUF), so that those of several
  // processes are not mixed; of one line at least.
  static size_t whole_lines(std::string_view lines) {
    if (lines.size() <= PIPE_BUF) return lines.size();
    const size_t last = lines.rfind('\n', PIPE_BUF - 1);
    return (last != std::string_view::npos ? last : std::min(lines.find('\n'), lines.size() - 1)) + 1;
  }

  // False: a disk that is full, a reader that is gone.
  static bool write(std::string_view left) {
    while (!left.empty()) {
      const ssize_t done = ::write(STDERR_FILENO, left.data(), left.size());
      if (done < 0 && errno == EINTR) continue;
      if (done < 0) return false;
      left.remove_prefix(static_cast<size_t>(done));
    }
    return true;
  }

  void flush_() override {}

  const std::shared_ptr<QueueAccount> account_;
  spdlog::details::thread_pool& pool_;
  // Not written yet; the account has them.
  spdlog::memory_buf_t lines_;
  int64_t count_ = 0;
  int64_t bytes_ = 0;
};

}  // namespace

struct Log::Impl {
  LogFormat format = LogFormat::kText;
  std::shared_ptr<QueueAccount> account = std::make_shared<QueueAccount>(kQueuedLines, kQueuedBytes);
  std::shared_ptr<spdlog::async_logger> logger;
  // Destroyed before the logger: its thread has the last lines, which hold the logger, and has ended when the logger is
  // destroyed.
  std::shared_ptr<spdlog::details::thread_pool> pool;
  core::SystemClock clock;

  void write(spdlog::level::level_enum level, std::string_view event, std::initializer_list<Field> fields) {
    if (!logger->should_log(level)) return;
    const auto level_name = spdlog::level::to_string_view(level);
    const std::string_view level_text(level_name.data(), level_name.size());
    const std::string time = core::to_rfc3339(clock.wall());
    const std::string line = format == LogFormat::kJson ? as_json(time, level_text, event, fields)
                                                        : as_text(time, level_text, event, fields);
    if (account->enter(static_cast<int64_t>(line.size()))) logger->log(level, line);
  }
};

Log::Log(LogFormat format, const std::string& level) : impl_(std::make_unique<Impl>()) {
  impl_->format = format;
  impl_->pool = std::make_shared<spdlog::details::thread_pool>(static_cast<size_t>(kQueuedLines), 1);
  impl_->logger =
      std::make_shared<spdlog::async_logger>("meshd", std::make_shared<StandardError>(impl_->account, *impl_->pool),
                                             impl_->pool, spdlog::async_overflow_policy::overrun_oldest);
  impl_->logger->set_pattern("%v");
  impl_->logger->set_level(spdlog::level::from_str(level));
}

Log::~Log() {
  // Its thread and its sink write the lines that are left. Where nobody reads them any more, as when a pipe is full,
  // they are given up, so that the process ends.
  auto written = std::make_shared<std::promise<void>>();
  std::future<void> done = written->get_future();
  try {
    std::thread([left = std::shared_ptr<Impl>(std::move(impl_)), written = std::move(written)]() mutable {
      left.reset();
      written->set_value();
    }).detach();
  } catch (const std::system_error&) {
    return;  // no thread: what it was to hold is written by now
  }
  done.wait_for(kFarewell);
}

void Log::debug(std::string_view event, std::initializer_list<Field> fields) {
  impl_->write(spdlog::level::debug, event, fields);
}

void Log::info(std::string_view event, std::initializer_list<Field> fields) {
  impl_->write(spdlog::level::info, event, fields);
}

void Log::warn(std::string_view event, std::initializer_list<Field> fields) {
  impl_->write(spdlog::level::warn, event, fields);
}

void Log::error(std::string_view event, std::initializer_list<Field> fields) {
  impl_->write(spdlog::level::err, event, fields);
}

void Log::flush() { impl_->account->wait_until_empty(kFarewell); }

int64_t Log::dropped() const { return impl_->account->lost(); }

std::string shortened(std::string text, size_t most_bytes) {
  if (text.size() <= most_bytes) return text;
  size_t kept = most_bytes - std::min(most_bytes, kEllipsis.size());
  while (kept > 0 && (static_cast<unsigned char>(text[kept]) & 0xC0U) == 0x80U) --kept;  // not within a character
  text.resize(kept);
  return text.append(kEllipsis);
}

}  // namespace meshd::api
