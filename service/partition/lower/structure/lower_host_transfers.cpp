#include "service/partition/lower/structure/lower_host_transfers.h"

#include <fmt/core.h>

#include <algorithm>

#include "service/ops/collective/host_transfers.h"
#include "service/partition/lower/structure/lower_collectives.h"
#include "service/partition/lower/structure/lower_effects.h"

namespace meshd::partition {
namespace {

// The shardings that the op's attributes give these results.
std::vector<std::optional<sharding::TensorSharding>> said_of(const ir::Op& op, const std::vector<int>& results) {
  std::vector<std::optional<sharding::TensorSharding>> out(results.size());
  const ir::Attribute* attribute = ir::find(op.attributes, "sdy.sharding");
  const auto* said = attribute == nullptr ? nullptr : attribute->as<ir::ShardingAttr>();
  if (said == nullptr) return out;
  for (size_t i = 0; i < results.size(); ++i) {
    const auto number = static_cast<size_t>(results[i]);
    if (number < said->shardings.size()) out[i] = said->shardings[number];
  }
  return out;
}

// A recv yields what its send took, along source_target_pairs. A single device may omit the pair with itself.
void lower_pair(LoweringContext& context, const ir::Op& recv, const Scope& scope) {
  const ops::OpInstance recv_types(context.main, recv);
  const ops::TransferInfo taking = ops::host_transfer_of(recv.name, recv_types.view);
  const ir::Op& send = *context.unmatched_sends.at(taking.channel).front();
  context.unmatched_sends.at(taking.channel).pop_front();
  const ops::OpInstance send_types(context.main, send);
  const ops::TransferInfo giving = ops::host_transfer_of(send.name, send_types.view);

  std::vector<ir::Type> given;
  std::vector<ir::Type> taken;
  for (const int i : giving.value_operands) given.push_back(send_types.operands[static_cast<size_t>(i)]);
  for (const int i : taking.value_results) taken.push_back(recv_types.results[static_cast<size_t>(i)]);
  const std::string channel = fmt::format("channel {}", taking.channel);
  if (given != taken) {
    ir::fail("invalid_program", recv.location,
             fmt::format("{}: the recv has other types than the send in line {}", channel, send.location.line));
  }
  const ir::Op& speaker = taking.has_pairs ? recv : send;
  if (!taking.has_pairs && !giving.has_pairs && context.builder.view(scope.view).position_count() > 1) {
    ir::fail("invalid_program", recv.location,
             channel + ": source_target_pairs are missing; on several devices they say who sends to whom");
  }
  const ir::Attribute* pairs = ir::find(speaker.attributes, "source_target_pairs");
  if (taking.has_pairs && giving.has_pairs) {
    const auto ints = [](const ir::Op& op) {
      return ir::dense_ints(*ir::find(op.attributes, "source_target_pairs")->as<ir::DenseAttr>());
    };
    if (ints(recv) != ints(send)) {
      ir::fail(
          "invalid_program", recv.location,
          fmt::format("{}: source_target_pairs differ from those of the send in line {}", channel, send.location.line));
    }
  }
  for (size_t i = 0; i < taken.size(); ++i) {
    const ir::ValueId from = send.operands[static_cast<size_t>(giving.value_operands[i])];
    const ir::ValueId to = recv.results[static_cast<size_t>(taking.value_results[i])];
    if (!taking.has_pairs && !giving.has_pairs) {
      context.define(to, context.local(from));
      continue;
    }
    ir::Op permute;
    permute.code = ops::code_of(ops::pair_op());
    permute.name = std::string(ops::pair_op().name);
    permute.operands = {from};
    permute.results = {to};
    permute.attributes = {{"source_target_pairs", *pairs}};
    permute.location = recv.location;
    lower_collective(context, permute, scope);
  }
}

}  // namespace

void lower_host_transfer(LoweringContext& context, const ir::Op& op, const Scope& scope) {
  const ops::OpInstance global(context.main, op);
  const ops::TransferInfo info = ops::host_transfer_of(op.name, global.view);
  if (info.way == ops::TransferKind::kSend) return context.unmatched_sends[info.channel].push_back(&op);
  if (info.way == ops::TransferKind::kRecv) return lower_pair(context, op, scope);
  EffectPoint point;
  point.form = info.way == ops::TransferKind::kIn ? EffectForm::kInfeed : EffectForm::kOutfeed;
  point.callback = -1;
  point.queue = info.queue;
  point.ordered = true;
  if (info.way == ops::TransferKind::kIn) point.result_shardings = said_of(op, info.value_results);
  append_effect(context, op, std::move(point), info.value_operands, info.value_results, scope);
}

}  // namespace meshd::partition
