// The server's log: one line an event, as text or JSON, written by a thread of its own, within 10 ms, behind a
// queue that is bounded by lines and by bytes; what does not fit is counted and dropped, never waited for.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace meshd::api {

enum class LogFormat : uint8_t { kText, kJson };

/// Any thread.
class Log {
 public:
  Log(LogFormat format, const std::string& level);
  ~Log();

  /// A field of a line: text (an empty one is left out, a long one is shortened), or a number or boolean, which JSON
  /// lines have as such.
  struct Field {
    Field(std::string_view field, std::string text) : name(field), value(std::move(text)) {}
    Field(std::string_view field, const char* text) : name(field), value(std::string(text)) {}
    Field(std::string_view field, bool is_set) : name(field), value(is_set) {}
    Field(std::string_view field, double number) : name(field), value(number) {}
    template <std::integral T>
    Field(std::string_view field, T number) : name(field), value(static_cast<int64_t>(number)) {}

    std::string_view name;
    std::variant<std::string, int64_t, double, bool> value;
  };
  /// An event by name, with fields: info("request", {{"request_id", id}, {"status", 200}, ...}).
  void debug(std::string_view event, std::initializer_list<Field> fields);
  void info(std::string_view event, std::initializer_list<Field> fields);
  void warn(std::string_view event, std::initializer_list<Field> fields);
  void error(std::string_view event, std::initializer_list<Field> fields);
  /// Waits, for two seconds at most, until what is queued is written.
  void flush();
  /// Lines that did not fit the queue, or could not be written.
  [[nodiscard]] int64_t dropped() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// `text`, or its beginning and an ellipsis, which are at most `most_bytes` together. Characters of UTF-8 stay whole.
std::string shortened(std::string text, size_t most_bytes);

}  // namespace meshd::api
