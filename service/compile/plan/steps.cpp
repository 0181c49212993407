// Steps of single ops, which fusion left alone.
#include "service/compile/plan/collectives.h"
#include "service/compile/plan/plan_builder.h"
#include "service/core/error.h"

namespace meshd::compile {
namespace {

using partition::LocalKind;

ops::PreparedKernel prepare_kernel(const PlanBuilder& builder, const LocalOp& op) {
  if (op.def == nullptr) throw core::Error("internal", "an op without a row");
  LocalView local(*builder.program, op);
  if (!op.results.empty()) local.view.copies = builder.tables[builder.value(op.results[0]).table].count();
  const ops::Body body = ops::body_of(*op.def, local.view);
  const auto* kernel = std::get_if<ops::LocalKernel>(&body);
  if (kernel == nullptr || kernel->prepare == nullptr) {
    ir::fail("unsupported_op", op.location, "'" + op.name + "' is known, but not run here yet");
  }
  return kernel->prepare(local.view);
}

// Bytes that one shard of a collective reads and writes.
double collective_bytes(const PlanBuilder& builder, const LocalOp& op) {
  double members = 1;
  if (op.kind == LocalKind::kReduceShards) {
    members = static_cast<double>(
        builder.tables.view(builder.value(op.results[0]).type.layout.view).distinct_count(op.reduced));
  } else if (op.kind == LocalKind::kGroup && !op.groups.empty()) {
    members = static_cast<double>(op.groups[0].size());
  }
  double bytes = 0;
  for (const LocalId id : op.results) bytes += static_cast<double>(builder.value(id).bytes) * (1 + members);
  return bytes;
}

StepKind kind_of(LocalKind kind) {
  switch (kind) {
    case LocalKind::kReshard:
    case LocalKind::kHalo:
    case LocalKind::kReduceShards:
    case LocalKind::kGroup:
      return StepKind::kCollective;
    case LocalKind::kWhile:
      return StepKind::kWhile;
    case LocalKind::kCase:
      return StepKind::kCase;
    case LocalKind::kEffect:
      return StepKind::kEffect;
    case LocalKind::kOp:
    case LocalKind::kConstant:
    case LocalKind::kPosition:
    case LocalKind::kMask:
    case LocalKind::kView:
      break;
  }
  return StepKind::kKernel;
}

}  // namespace

BuilderStep make_step(PlanBuilder& builder, const LocalOp& op, std::optional<ops::PreparedKernel> kernel) {
  BuilderStep step;
  step.kind = kind_of(op.kind);
  step.op = &op;
  step.name = op.name;
  step.location = op.location;
  if (op.location.line > 0) step.lines.push_back(op.location.line);
  step.reason = op.reason;
  step.operands = op.operands;
  if (step.kind != StepKind::kKernel && step.kind != StepKind::kCollective) return step;
  step.results = op.results;
  if (!step.results.empty()) step.table = builder.value(step.results[0]).table;
  switch (op.kind) {
    case LocalKind::kReshard:
      step.collective = reshard_maker(step.operands[0], step.results[0]);
      break;
    case LocalKind::kHalo:
      step.collective = halo_maker(op);
      break;
    case LocalKind::kReduceShards:
      step.collective = reduce_shards_maker(builder, op);
      break;
    case LocalKind::kGroup:
      step.collective = group_maker(builder, op);
      break;
    default:
      step.kernel = kernel ? *std::move(kernel) : prepare_kernel(builder, op);
      if (step.kernel.uses_offsets && !step.results.empty()) set_offsets(builder, step, step.results[0]);
  }
  if (step.kind == StepKind::kCollective) step.kernel.bytes = collective_bytes(builder, op);
  return step;
}

}  // namespace meshd::compile
