// Prefer (RFC 7240): what a client would like, and Preference-Applied. Unknown preferences are passed over. Pure; any
// thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "api/http/http.h"

namespace meshd::api {

/// The supported preferences. The first of several of the same name counts, as the RFC requires.
struct Preferences {
  bool respond_async = false;           ///< 202 at once
  std::optional<int64_t> wait_seconds;  ///< 202 after so long; at most kLongestWaitSeconds
  enum class Return { kNothing, kMinimal, kRepresentation };
  Return wanted = Return::kNothing;  ///< of the document of what was made
};

inline constexpr int64_t kLongestWaitSeconds = 60;

/// Reads the request's Prefer fields. Never throws: what is not understood is no preference.
Preferences preferences_of(const Request& request);

/// Adds a word to Preference-Applied.
void note_applied(Response& response, std::string_view preference);

/// return=minimal: a response 201 or 202 with a Location loses its document; return=representation is noted. Others
/// stay.
void apply_return_preference(const Request& request, Response& response);

}  // namespace meshd::api
