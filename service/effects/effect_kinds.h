// The kinds of effect that a client may bind to a program's callbacks, one row each. The token decides whether an
// effect is ordered; a kind defines the rest (behaviours E3, E15, E17).
#pragma once

#include <span>
#include <string_view>

namespace meshd::effects {

struct EffectKind {
  std::string_view name;
  std::string_view summary;
  bool shardable = false;     ///< may be ordered on several devices: by program point, then by shard
  bool answers = false;       ///< gives values back to the program
  bool control_flow = false;  ///< allowed inside while, case and if
  bool lowerable = true;      ///< false: no callback can be bound to it: a family, or what ops do themselves (infeed)
  std::string_view parent;    ///< the wider kind it is one of; empty: none
};

/// True when `kind` is `wider` or one of its kinds, at any depth (behaviour E20).
bool is_kind_of(std::string_view kind, std::string_view wider);

/// The row of a kind, or null.
const EffectKind* find_effect_kind(std::string_view name);
std::span<const EffectKind> all_effect_kinds();

}  // namespace meshd::effects
