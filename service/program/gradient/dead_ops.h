// Dead code elimination.
#pragma once

#include "service/ir/program.h"

namespace meshd::program {

/// What happens to ops with effects whose results nobody reads.
enum class UnreadEffects { kKept, kDropped };

/// Whether the op has an effect beside its results. Terminators, which are never dropped either, have none.
bool has_effect(const ir::Function& function, const ir::Op& op);

/// Drops ops whose results nobody reads, in nested regions too. The region's terminator stays.
void remove_dead_ops(const ir::Function& function, ir::Region& region, UnreadEffects effects);

}  // namespace meshd::program
