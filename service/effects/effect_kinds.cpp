#include "service/effects/effect_kinds.h"

namespace meshd::effects {
namespace {

constexpr EffectKind kKinds[] = {
    {"io", "what leaves or enters a program; a family, bind one of its kinds", true, false, true, false, ""},
    {"log", "keeps the values: an entry of the session's log for each call", true, false, true, true, "io"},
    {"callback",
     "keeps the values and answers with values that the request has, or that its client sends while it runs", true,
     true, true, true, "io"},
    {"record", "keeps the values, once a run: not inside control flow", true, false, false, true, "io"},
    {"infeed", "takes what a client feeds while the program runs", true, true, true, false, "io"},
    {"outfeed", "gives values to a client while the program runs", true, false, true, false, "io"},
    {"debug", "what a program tells people; a family, bind one of its kinds", false, false, true, false, ""},
    {"print", "keeps the values for people to read; ordered on one device only", false, false, true, true, "debug"},
    {"end", "how a job ended whose effects are before it; a family", true, false, true, false, ""},
    {"failed", "the job has failed: its effects end here; the name is the error's code", true, false, true, false,
     "end"},
    {"cancelled", "the job was cancelled: its effects end here", true, false, true, false, "end"},
};

}  // namespace

const EffectKind* find_effect_kind(std::string_view name) {
  for (const EffectKind& kind : kKinds) {
    if (kind.name == name) return &kind;
  }
  return nullptr;
}

bool is_kind_of(std::string_view kind, std::string_view wider) {
  for (const EffectKind* row = find_effect_kind(kind); row != nullptr; row = find_effect_kind(row->parent)) {
    if (row->name == wider) return true;
  }
  return false;
}

std::span<const EffectKind> all_effect_kinds() { return kKinds; }

}  // namespace meshd::effects
