// W3C Trace Context: the traceparent of a request, and ours as its child. Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace meshd::api {

struct TraceContext {
  std::string trace_id;     ///< 32 hex digits: the client's, for logs and problems
  std::string client_span;  ///< 16 hex digits: whose child ours is
  bool is_sampled = true;   ///< whoever began the trace records it
  std::string parent;       ///< the traceparent of the response: the same trace, a new span of ours
};

/// Nothing when the field is absent or not what the standard allows (then it is as if it were absent). `span` is 16 hex
/// digits.
std::optional<TraceContext> read_traceparent(std::optional<std::string_view> field, std::string_view span);

}  // namespace meshd::api
