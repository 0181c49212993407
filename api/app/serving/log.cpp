#include "api/app/serving/log.h"

#include <spdlog/async.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <nlohmann/json.hpp>

#include "service/core/clock.h"

namespace meshd::api {
namespace {

using Fields = std::initializer_list<Log::Field>;

constexpr size_t kQueuedLines = 8192;

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

}  // namespace

struct Log::Impl {
  LogFormat format = LogFormat::kText;
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
    logger->log(level, format == LogFormat::kJson ? as_json(time, level_text, event, fields)
                                                  : as_text(time, level_text, event, fields));
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
