// The stages between a parsed program and a plan, one function each, so that lowering, explaining and suggesting use
// the same ones.
#pragma once

#include <cstdint>
#include <vector>

#include "service/compile/pipeline.h"
#include "service/compile/plan/plan.h"
#include "service/partition/local_program.h"
#include "service/partition/partition.h"
#include "service/propagation/propagate.h"

namespace meshd::compile {

/// Propagates with the request's shardings as seeds. Throws invalid_spec where they contradict the text.
propagation::Propagated propagate_for(const ParsedProgram& parsed, const LowerRequest& request);
/// What partition is given: batch norms over sharded batches decomposed, shardings of arguments that only the text
/// shards rounded.
struct RewrittenProgram {
  ir::Module module;
  partition::PartitionInput input;  ///< `input.module` is null: the holder of this struct sets it
};
RewrittenProgram rewrite_for(const propagation::Propagated& propagated, const LowerRequest& request);
/// The local program. Throws what partition() throws.
partition::LocalProgram partition_for(const propagation::Propagated& propagated, const LowerRequest& request);
/// Token-free positions of arguments that the program gives up.
std::vector<int64_t> donated_of(const partition::LocalProgram& local);
/// The plan, with the passes of `settings` that the request allows.
PlanRef plan_for(const partition::LocalProgram& local, const LowerRequest& request, const PlanSettings& settings);

}  // namespace meshd::compile
