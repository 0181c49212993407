// infeed, outfeed, send and recv. Between a program and its client they are effects that take from or give to a queue;
// a send and a recv of the same program are a collective_permute.
#include <algorithm>

#include "service/ops/collective/host_transfers.h"
#include "service/partition/lower/lowering.h"

namespace meshd::partition {
namespace {

// What the text says on the op about each of these results.
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

}  // namespace

void Lowering::lower_host_transfer(const ir::Op& op, const Scope& scope) {
  const std::vector<ir::Type> operand_types = types_of(op.operands);
  const std::vector<ir::Type> result_types = types_of(op.results);
  const ops::TransferInfo info = ops::host_transfer_of(
      op.name, {operand_types, result_types, &op.attributes, op.regions, &module_main_, &op.location});
  if (info.way == ops::TransferKind::kSend) return sent_[info.channel].push_back(&op);
  if (info.way == ops::TransferKind::kRecv) return lower_pair(op, scope);
  EffectPoint point;
  point.form = info.way == ops::TransferKind::kIn ? EffectForm::kInfeed : EffectForm::kOutfeed;
  point.callback = -1;
  point.queue = info.queue;
  point.ordered = true;
  if (info.way == ops::TransferKind::kIn) point.result_shardings = said_of(op, info.value_results);
  append_effect(op, std::move(point), info.value_operands, info.value_results, scope);
}

// A recv gives what its send took; who gets whose value is said by source_target_pairs. One device may send to itself
// without saying so.
void Lowering::lower_pair(const ir::Op& recv, const Scope& scope) {
  const auto info_of = [&](const ir::Op& op, const std::vector<ir::Type>& operands,
                           const std::vector<ir::Type>& results) {
    return ops::host_transfer_of(op.name, {operands, results, &op.attributes, op.regions, &module_main_, &op.location});
  };
  const std::vector<ir::Type> recv_results = types_of(recv.results);
  const ops::TransferInfo taking = info_of(recv, types_of(recv.operands), recv_results);
  const ir::Op& send = *sent_.at(taking.channel).front();
  sent_.at(taking.channel).pop_front();
  const std::vector<ir::Type> send_operands = types_of(send.operands);
  const ops::TransferInfo giving = info_of(send, send_operands, types_of(send.results));

  std::vector<ir::Type> given;
  std::vector<ir::Type> taken;
  for (const int i : giving.value_operands) given.push_back(send_operands[static_cast<size_t>(i)]);
  for (const int i : taking.value_results) taken.push_back(recv_results[static_cast<size_t>(i)]);
  const std::string channel = "channel " + std::to_string(taking.channel);
  if (given != taken) {
    ir::fail("invalid_program", recv.location,
             channel + ": the recv has other types than the send in line " + std::to_string(send.location.line));
  }
  const ir::Op& speaker = taking.has_pairs ? recv : send;
  if (!taking.has_pairs && !giving.has_pairs && builder_.view(scope.view).position_count() > 1) {
    ir::fail("invalid_program", recv.location,
             channel + ": source_target_pairs are missing; on several devices they say who sends to whom");
  }
  const ir::Attribute* pairs = ir::find(speaker.attributes, "source_target_pairs");
  if (taking.has_pairs && giving.has_pairs) {
    const auto ints = [](const ir::Op& op) {
      return ir::dense_ints(*ir::find(op.attributes, "source_target_pairs")->as<ir::DenseAttr>());
    };
    if (ints(recv) != ints(send)) {
      ir::fail("invalid_program", recv.location,
               channel + ": source_target_pairs differ from those of the send in line " +
                   std::to_string(send.location.line));
    }
  }
  for (size_t i = 0; i < taken.size(); ++i) {
    const ir::ValueId from = send.operands[static_cast<size_t>(giving.value_operands[i])];
    const ir::ValueId to = recv.results[static_cast<size_t>(taking.value_results[i])];
    if (!taking.has_pairs && !giving.has_pairs) {
      define(to, local(from));
      continue;
    }
    ir::Op permute;
    permute.code = ops::code_of(ops::pair_op());
    permute.name = std::string(ops::pair_op().name);
    permute.operands = {from};
    permute.results = {to};
    permute.attributes = {{"source_target_pairs", *pairs}};
    permute.location = recv.location;
    lower_collective(permute, ops::pair_op(), scope);
  }
}

}  // namespace meshd::partition
