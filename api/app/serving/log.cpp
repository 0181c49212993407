#include "api/app/serving/log.h"

#include <spdlog/async.h>
#include <spdlog/details/null_mutex.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <future>
#include <memory>
#include <nlohmann/json.hpp>
#include <system_error>
#include <thread>
#include <utility>

#include "service/core/clock.h"

namespace meshd::api {
namespace {

using Fields = std::initializer_list<Log::Field>;

constexpr size_t kQueuedLines = 8192;
constexpr std::chrono::seconds kFarewell{2};
constexpr std::chrono::milliseconds kLookAgain{1};

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

std::string as_json(const std::string& time, std::string_view level, std::string_view event, Fields fields) {
  nlohmann::ordered_json line{{"time", time}, {"level", level}, {"event", event}};
  for (const Log::Field& field : fields) {
    if (!is_left_out(field)) std::visit([&](const auto& value) { line[std::string(field.name)] = value; }, field.value);
  }
  return dump(line);
}

std::string as_text(const std::string& time, std::string_view level, std::string_view event, Fields fields) {
  std::string line = time + " " + std::string(level) + " " + std::string(event);
  for (const Log::Field& field : fields) {
    if (is_left_out(field)) continue;
    line += " " + std::string(field.name) + "=";
    std::visit([&](const auto& value) { line += plain(value); }, field.value);
  }
  return line;
}

/// Writes to standard error past stdio, whose lock everybody would wait for at the end of the process while nobody
/// reads. Of the one thread of the queue.
class StandardError final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  /// Counts in `taken` the lines that are no longer in the queue, in `lost` those of them that cannot be written.
  StandardError(std::shared_ptr<std::atomic<int64_t>> taken, std::shared_ptr<std::atomic<int64_t>> lost)
      : taken_(std::move(taken)), lost_(std::move(lost)) {}

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    write(message);
    ++*taken_;
  }

  void write(const spdlog::details::log_msg& message) {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    std::string_view left(line.data(), line.size());
    while (!left.empty()) {
      const ssize_t done = ::write(STDERR_FILENO, left.data(), left.size());
      if (done < 0 && errno == EINTR) continue;
      if (done < 0) {  // a disk that is full, a reader that is gone
        ++*lost_;
        return;
      }
      left.remove_prefix(static_cast<size_t>(done));
    }
  }
  void flush_() override {}

  const std::shared_ptr<std::atomic<int64_t>> taken_;
  const std::shared_ptr<std::atomic<int64_t>> lost_;
};

}  // namespace

struct Log::Impl {
  LogFormat format = LogFormat::kText;
  std::atomic<int64_t> queued{0};
  std::shared_ptr<std::atomic<int64_t>> taken = std::make_shared<std::atomic<int64_t>>(0);
  std::shared_ptr<std::atomic<int64_t>> lost = std::make_shared<std::atomic<int64_t>>(0);
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
    ++queued;
    logger->log(level, format == LogFormat::kJson ? as_json(time, level_text, event, fields)
                                                  : as_text(time, level_text, event, fields));
  }
};

Log::Log(LogFormat format, const std::string& level) : impl_(std::make_unique<Impl>()) {
  impl_->format = format;
  impl_->pool = std::make_shared<spdlog::details::thread_pool>(kQueuedLines, 1);
  impl_->logger =
      std::make_shared<spdlog::async_logger>("meshd", std::make_shared<StandardError>(impl_->taken, impl_->lost),
                                             impl_->pool, spdlog::async_overflow_policy::overrun_oldest);
  impl_->logger->set_pattern("%v");
  impl_->logger->set_level(spdlog::level::from_str(level));
  impl_->logger->flush_on(spdlog::level::warn);
}

Log::~Log() {
  impl_->logger->flush();
  // Its thread writes the lines that are left. Where nobody reads them any more, as when a pipe is full, they are given
  // up, so that the process ends.
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

void Log::flush() {
  // The logger's own flush queues a request and does not wait for it.
  const int64_t queued = impl_->queued;
  const auto end = std::chrono::steady_clock::now() + kFarewell;
  while (*impl_->taken + static_cast<int64_t>(impl_->pool->overrun_counter()) < queued &&
         std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(kLookAgain);
}

int64_t Log::dropped() const { return static_cast<int64_t>(impl_->pool->overrun_counter()) + *impl_->lost; }

}  // namespace meshd::api
