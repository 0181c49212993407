#include "storage/rows/rows.h"

#include <fmt/core.h>

#include "storage/rows/row_words.h"

namespace meshd::storage {

std::string donated_reason(std::string_view taker) { return "taken by " + std::string(taker); }

// The tables end the search: a state without a word cannot be made.
std::string_view to_string(ArrayState state) { return kArrayStates[static_cast<size_t>(state)]; }
std::string_view to_string(Durability durability) { return kDurabilities[static_cast<size_t>(durability)]; }
std::string_view to_string(SessionState state) { return kSessionStates[static_cast<size_t>(state)]; }
std::string_view to_string(OnError on_error) { return kOnErrors[static_cast<size_t>(on_error)]; }
std::string_view to_string(EffectMode mode) { return kEffectModes[static_cast<size_t>(mode)]; }
std::string_view to_string(WebhookState state) { return kWebhookStates[static_cast<size_t>(state)]; }
std::string_view to_string(JobState state) { return kJobStates[static_cast<size_t>(state)]; }

std::optional<Durability> durability_from(std::string_view word) { return find_word<Durability>(kDurabilities, word); }
std::optional<EffectMode> effect_mode_from(std::string_view word) { return find_word<EffectMode>(kEffectModes, word); }
std::optional<JobState> job_state_from(std::string_view word) { return find_word<JobState>(kJobStates, word); }

std::string states_before(JobState to) {
  std::string out;
  for (const JobTransition& one : kJobTransitions) {
    if (one.from && one.to == to) out += fmt::format("{}'{}'", out.empty() ? "(" : ", ", to_string(*one.from));
  }
  return out + ")";
}

void check_limit(int64_t limit) {
  if (limit >= 1 && limit <= kMaxPageSize) return;
  throw core::Error("invalid_query", fmt::format("limit must be between 1 and {}, got {}", kMaxPageSize, limit));
}

}  // namespace meshd::storage
