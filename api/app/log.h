// The server's log: one line an event, as text or JSON, written by a thread of its own behind a bounded queue; what
// does not fit is counted and dropped, never waited for.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace meshd::api {

enum class LogFormat : uint8_t { kText, kJson };

/// Any thread.
class Log {
 public:
  Log(LogFormat format, const std::string& level);
  ~Log();

  using Field = std::pair<std::string_view, std::string>;
  /// An event by name, with fields: info("request", {{"request_id", id}, ...}).
  void debug(std::string_view event, std::initializer_list<Field> fields);
  void info(std::string_view event, std::initializer_list<Field> fields);
  void warn(std::string_view event, std::initializer_list<Field> fields);
  void error(std::string_view event, std::initializer_list<Field> fields);
  /// Writes out what is queued.
  void flush();
  [[nodiscard]] int64_t dropped() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace meshd::api
