#include "service/partition/lower/structure/channel_order.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <unordered_set>

#include "service/ir/walk.h"
#include "service/ops/collective/host_transfers.h"

namespace meshd::partition {
namespace {

ops::TransferInfo info_of(const ir::Op& op) {
  ops::OpView view;
  view.attributes = &op.attributes;
  view.location = &op.location;
  return ops::host_transfer_of(op.name, view);
}

bool uses_any(const ir::Op& op, const std::unordered_set<ir::ValueId>& values) {
  return ir::walk(op, [&](const ir::Op& each) {
    const bool uses =
        std::any_of(each.operands.begin(), each.operands.end(), [&](ir::ValueId id) { return values.contains(id); });
    return uses ? ir::WalkResult::kInterrupt : ir::WalkResult::kAdvance;
  });
}

class Order {
 public:
  void add(const ir::Op& op) {
    if (uses_any(op, missing_) || !take_send(op)) {
      missing_.insert(op.results.begin(), op.results.end());
      return late_.push_back(&op);
    }
    emit(op);
  }

  // The terminator, when everything else has been emitted.
  std::vector<const ir::Op*> finish() {
    if (!late_.empty()) {
      ir::fail("invalid_program", late_.front()->location,
               fmt::format("channel {} has a recv whose send does not come in the same block, or waits for this recv",
                           info_of(*late_.front()).channel));
    }
    return std::move(out_);
  }

 private:
  // False: a recv whose send has not come.
  bool take_send(const ir::Op& op) {
    if (!ops::is_host_transfer(op.name)) return true;
    const ops::TransferInfo info = info_of(op);
    if (info.way != ops::TransferKind::kRecv) return true;
    int64_t& sends = sends_[info.channel];
    if (sends == 0) return false;
    --sends;
    return true;
  }

  void emit(const ir::Op& op) {
    out_.push_back(&op);
    if (!ops::is_host_transfer(op.name)) return;
    const ops::TransferInfo info = info_of(op);
    if (info.way != ops::TransferKind::kSend) return;
    ++sends_[info.channel];
    if (late_.empty()) return;
    // Retries the deferred ops, in their order.
    std::vector<const ir::Op*> waited;
    waited.swap(late_);
    missing_.clear();
    for (const ir::Op* again : waited) add(*again);
  }

  std::vector<const ir::Op*> out_;
  std::vector<const ir::Op*> late_;
  std::unordered_set<ir::ValueId> missing_;  // values that ops in late_ give
  std::map<int64_t, int64_t> sends_;         // without a recv so far, by channel
};

}  // namespace

std::vector<const ir::Op*> in_channel_order(const ir::Region& region) {
  std::vector<const ir::Op*> plain;
  bool has_recv = false;
  for (const ir::Op& op : region.ops) {
    plain.push_back(&op);
    has_recv = has_recv || (ops::is_host_transfer(op.name) && info_of(op).way == ops::TransferKind::kRecv);
  }
  if (!has_recv || plain.empty()) return plain;
  Order order;
  for (size_t i = 0; i + 1 < plain.size(); ++i) order.add(*plain[i]);
  std::vector<const ir::Op*> out = order.finish();
  out.push_back(plain.back());
  return out;
}

}  // namespace meshd::partition
