#include "service/compile/plan/collectives.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "service/core/error.h"
#include "service/ops/kernel_interface.h"

namespace meshd::compile {
namespace {

// What one device does in a collective.
struct Role {
  std::shared_ptr<const ops::PreparedGroup> group;  // null: gets zeros
  const std::vector<int64_t>* members = nullptr;    // whose operands it reads
  int64_t member = 0;
};

// A collective of the text, for all devices.
struct Groups {
  std::vector<std::vector<int64_t>> senders;  // by group
  std::vector<Role> roles;                    // by flat device
  std::vector<int64_t> result_bytes;
  size_t operands = 1;
};

void run_role(const Groups& groups, const Role& role, const CollectiveCall& call) {
  if (role.group == nullptr) {
    for (size_t i = 0; i < groups.result_bytes.size(); ++i) {
      std::memset(call.results[i], 0, static_cast<size_t>(groups.result_bytes[i]));
    }
    return;
  }
  std::vector<const std::byte* const*> members;
  for (size_t i = 0; i < role.members->size(); ++i) members.push_back(call.sources + i * groups.operands);
  role.group->run({members, role.member, call.results, call.checkpoint});
}

}  // namespace

CollectiveSource source_of(const Plan& plan, int32_t operand, LocalId id, int64_t shard) {
  const PlanValue& value = plan.values[static_cast<size_t>(id)];
  CollectiveSource out;
  out.operand = operand;
  out.slot_shard = static_cast<int32_t>(plan.slot_shard(value.slot_ref, shard));
  out.shard = static_cast<int32_t>(shard);
  out.table = value.table;
  out.device = plan.table(value.table).device_of_shard[static_cast<size_t>(shard)];
  out.bytes = tensor::byte_count(value.type.local);
  return out;
}

CollectiveMaker group_maker(const PlanBuilder& builder, const LocalOp& op) {
  const LocalView local(*builder.program, op);
  const ops::Body body = ops::body_of(*op.def, local.view);
  const auto* kernel = std::get_if<ops::GroupKernel>(&body);
  if (kernel == nullptr) ir::fail("unsupported_op", op.location, "'" + op.name + "' is no collective");
  auto groups = std::make_shared<Groups>();
  groups->operands = op.operands.size();
  groups->roles.resize(static_cast<size_t>(builder.tables.device_count()));
  groups->senders.reserve(op.groups.size());
  for (const LocalId id : op.results) groups->result_bytes.push_back(builder.value(id).bytes);
  std::map<size_t, std::shared_ptr<const ops::PreparedGroup>> prepared;
  for (const auto& group : op.groups) {
    auto& made = prepared[group.size()];
    if (made == nullptr) {
      made =
          std::make_shared<const ops::PreparedGroup>(kernel->prepare(local.view, static_cast<int64_t>(group.size())));
    }
    // A pair has one source and one target; other groups give every member its output.
    groups->senders.push_back(group);
    if (kernel->is_permutation) groups->senders.back().resize(1);
    for (size_t i = kernel->is_permutation ? 1 : 0; i < group.size(); ++i) {
      groups->roles.at(static_cast<size_t>(group[i])) = {made, &groups->senders.back(), static_cast<int64_t>(i)};
    }
  }
  return [groups, operands = op.operands, result = op.results[0]](const Plan& plan) {
    Collective collective;
    const ShardTable& table = plan.table(plan.values[static_cast<size_t>(result)].table);
    for (const int32_t device : table.device_of_shard) {
      const Role& role = groups->roles[static_cast<size_t>(device)];
      std::vector<CollectiveSource> sources;
      if (role.group != nullptr) {
        for (const int64_t from : *role.members) {
          for (size_t k = 0; k < operands.size(); ++k) {
            const ShardTable& operand = plan.table(plan.values[static_cast<size_t>(operands[k])].table);
            const int32_t shard = operand.shard_of_device.at(static_cast<size_t>(from));
            sources.push_back(source_of(plan, static_cast<int32_t>(k), operands[k], std::max(shard, 0)));
          }
        }
      }
      collective.sources.push_back(std::move(sources));
      collective.work_items.push_back(1);
    }
    collective.run = [groups, devices = table.device_of_shard](const CollectiveCall& call) {
      run_role(*groups, groups->roles[static_cast<size_t>(devices[static_cast<size_t>(call.shard)])], call);
    };
    return collective;
  };
}

}  // namespace meshd::compile
