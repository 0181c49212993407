#include "api/app/log.h"

#include <spdlog/async.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "api/codecs/json.h"
#include "service/core/clock.h"

namespace meshd::api {
namespace {

constexpr size_t kQueuedLines = 8192;

}  // namespace

struct Log::Impl {
  LogFormat format = LogFormat::kText;
  std::shared_ptr<spdlog::async_logger> logger;
  // Goes before the logger: its thread has the last lines, which hold the logger, and is over when the logger goes.
  std::shared_ptr<spdlog::details::thread_pool> pool;
  core::SystemClock clock;

  void write(spdlog::level::level_enum level, std::string_view event, std::initializer_list<Field> fields) {
    if (!logger->should_log(level)) return;
    const auto level_name = spdlog::level::to_string_view(level);
    const std::string_view level_text(level_name.data(), level_name.size());
    std::string line;
    if (format == LogFormat::kJson) {
      line = "{\"time\":" + quote(core::to_rfc3339(clock.wall())) + ",\"level\":" + quote(level_text) +
             ",\"event\":" + quote(event);
      for (const auto& [name, value] : fields) {
        if (!value.empty()) line += "," + quote(name) + ":" + quote(value);
      }
      line += "}";
    } else {
      line = core::to_rfc3339(clock.wall()) + " " + std::string(level_text) + " " + std::string(event);
      for (const auto& [name, value] : fields) {
        if (value.empty()) continue;
        // Quoted where it would not stay one word on one line.
        const bool plain = value.find_first_of(" \"\\\n\r\t=") == std::string::npos;
        line += " " + std::string(name) + "=" + (plain ? value : quote(value));
      }
    }
    logger->log(level, line);
  }
};

Log::Log(LogFormat format, const std::string& level) : impl_(std::make_unique<Impl>()) {
  impl_->format = format;
  impl_->pool = std::make_shared<spdlog::details::thread_pool>(kQueuedLines, 1);
  auto sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  impl_->logger =
      std::make_shared<spdlog::async_logger>("meshd", sink, impl_->pool, spdlog::async_overflow_policy::overrun_oldest);
  impl_->logger->set_pattern("%v");
  impl_->logger->set_level(spdlog::level::from_str(level));
  impl_->logger->flush_on(spdlog::level::warn);
}

Log::~Log() { impl_->logger->flush(); }

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

void Log::flush() { impl_->logger->flush(); }

int64_t Log::dropped() const { return static_cast<int64_t>(impl_->pool->overrun_counter()); }

}  // namespace meshd::api
