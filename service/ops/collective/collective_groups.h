// Replica groups: replica_groups and source_target_pairs, checked and turned into groups of mesh positions.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "service/ops/op_def.h"

namespace meshd::ops {

/// The rows of replica_groups without their padding (-1). Throws invalid_program when it is no matrix of integers, when
/// an id is negative or occurs twice. Example: dense<[[0, 2], [1, -1]]> -> {{0, 2}, {1}}. No groups at all (dense<> :
/// tensor<0x0xi64>) means one of all.
std::vector<std::vector<int64_t>> replica_groups_of(const OpView& view, std::string_view op);

/// Size of the largest group as written: what result types are computed from. 0 when the attribute is empty (all
/// devices).
int64_t written_group_size(const OpView& view, std::string_view op);

/// Groups of mesh positions of a program that runs on `position_count` devices. Ids are partition ids; where channel
/// and flags make them replica ids (no channel, or a channel without use_global_device_ids), they are positions if they
/// cover all of them, and otherwise ids of the single replica: every position alone (no channel), or all together (a
/// channel). Throws invalid_program on ids that are no position.
std::vector<std::vector<int64_t>> replica_group_positions(const OpView& view, std::string_view op,
                                                          int64_t position_count);
/// The same where ids are partition ids as soon as there is a channel (all_to_all, collective_broadcast).
std::vector<std::vector<int64_t>> partition_group_positions(const OpView& view, std::string_view op,
                                                            int64_t position_count);

/// Pairs of collective_permute. Throws invalid_program with its labels C1 to C4.
std::vector<std::vector<int64_t>> source_target_pairs_of(const OpView& view);

/// The channel's handle; 0 when there is none.
int64_t channel_of(const OpView& view);

}  // namespace meshd::ops
