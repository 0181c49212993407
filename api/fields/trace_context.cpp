#include "api/fields/trace_context.h"

#include <algorithm>

#include "api/http/characters.h"

namespace meshd::api {

namespace {

// 00-TTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTT-SSSSSSSSSSSSSSSS-FF
constexpr size_t kTrace = 3, kTraceSize = 32, kSpan = 36, kSpanSize = 16, kFlags = 53, kSize = 55;

bool is_lower_hex(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return is_digit(c) || (c >= 'a' && c <= 'f'); });
}

bool is_zero(std::string_view text) { return text.find_first_not_of('0') == std::string_view::npos; }

}  // namespace

std::optional<TraceContext> read_traceparent(std::optional<std::string_view> field, std::string_view span) {
  if (!field || field->size() < kSize) return std::nullopt;
  const std::string_view text = *field;
  const std::string_view version = text.substr(0, 2);
  // Later versions may add fields behind what is known today.
  if (version == "00" ? text.size() != kSize : text.size() > kSize && text[kSize] != '-') return std::nullopt;
  const std::string_view trace = text.substr(kTrace, kTraceSize);
  const std::string_view parent = text.substr(kSpan, kSpanSize);
  const std::string_view flags = text.substr(kFlags, 2);
  if (!is_lower_hex(version) || version == "ff" || text[2] != '-' || text[kSpan - 1] != '-' || text[kFlags - 1] != '-')
    return std::nullopt;
  if (!is_lower_hex(trace) || !is_lower_hex(parent) || !is_lower_hex(flags) || is_zero(trace) || is_zero(parent))
    return std::nullopt;
  const bool is_sampled = std::string_view("13579bdf").find(flags[1]) != std::string_view::npos;  // bit 0
  return TraceContext{std::string(trace), std::string(parent), is_sampled,
                      "00-" + std::string(trace) + "-" + std::string(span) + "-" + std::string(flags)};
}

}  // namespace meshd::api
