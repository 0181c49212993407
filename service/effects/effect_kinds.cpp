#include "service/effects/effect_kinds.h"

namespace meshd::effects {
namespace {

constexpr EffectKind kKinds[] = {
    {"log", "keeps the values: an entry of the session's log for each call", true, false, true},
    {"callback", "keeps the values and answers with values that the request brings", true, true, true},
};

}  // namespace

const EffectKind* find_effect_kind(std::string_view name) {
  for (const EffectKind& kind : kKinds) {
    if (kind.name == name) return &kind;
  }
  return nullptr;
}

std::span<const EffectKind> all_effect_kinds() { return kKinds; }

}  // namespace meshd::effects
