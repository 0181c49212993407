#include "service/ops/collective/collective_groups.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <string>

#include "service/ops/checks.h"

namespace meshd::ops {
namespace {

struct Matrix {
  int64_t rows = 0;
  int64_t columns = 0;
  std::vector<int64_t> values;
};

Matrix matrix_of(const OpView& view, const std::string& op, std::string_view name) {
  const ir::Attribute* attribute = ir::find(attributes_of(view), name);
  if (attribute == nullptr) reject(view, op + ": attribute '" + std::string(name) + "' is missing");
  const auto* dense = attribute->as<ir::DenseAttr>();
  if (dense == nullptr) {
    reject(view, "unsupported_attribute", op + ": '" + std::string(name) + "' is read as dense<[[...]]> only");
  }
  if (dense->type.rank() != 2) {
    reject(view,
           fmt::format("{}: '{}' must have two dimensions, got tensor<{}>", op, name, tensor::to_string(dense->type)));
  }
  return {dense->type.dims[0], dense->type.dims[1], ir::dense_ints(*dense)};
}

/// The specification's labels of an op's constraints on groups; they differ from op to op.
struct GroupChecks {
  std::string_view op;
  std::string_view distinct;
  std::string_view complete;
  std::string_view in_range;
  std::string_view global_ids;
};
constexpr GroupChecks kGroupChecks[] = {
    {"all_gather", "all_gather C2: ids in replica_groups must be distinct",
     "all_gather C3: replica_groups must name each device", "all_gather C4: ids in replica_groups must be devices",
     "all_gather C5: use_global_device_ids needs a channel"},
    {"all_reduce", "all_reduce C1: ids in replica_groups must be distinct",
     "all_reduce C2: replica_groups must name each device", "all_reduce C3: ids in replica_groups must be devices",
     "all_reduce C4: use_global_device_ids needs a channel"},
    {"reduce_scatter", "reduce_scatter C3: ids in replica_groups must be distinct",
     "reduce_scatter C4: replica_groups must name each device",
     "reduce_scatter C5: ids in replica_groups must be devices",
     "reduce_scatter C6: use_global_device_ids needs a channel"},
    {"all_to_all",
     "all_to_all C5: ids in replica_groups must be distinct",
     "all_to_all C6: replica_groups must name each device",
     "all_to_all C7: ids in replica_groups must be devices",
     {}},
    {"collective_broadcast",
     "collective_broadcast C1: ids in replica_groups must be distinct",
     "collective_broadcast: replica_groups must name each device",
     "collective_broadcast C2: ids in replica_groups must be devices",
     {}},
};

/// The row of `op`; messages of an op without a row name it and no label.
std::string group_check(std::string_view op, std::string_view GroupChecks::*which, const char* otherwise) {
  for (const GroupChecks& row : kGroupChecks) {
    if (row.op == op && !(row.*which).empty()) return std::string(row.*which);
  }
  return std::string(op) + ": " + otherwise;
}

std::string distinct_ids(std::string_view op) {
  return group_check(op, &GroupChecks::distinct, "ids in replica_groups must be distinct");
}
std::string ids_in_range(std::string_view op) {
  return group_check(op, &GroupChecks::in_range, "ids in replica_groups must be devices");
}

std::vector<std::vector<int64_t>> groups_of_one(int64_t position_count) {
  std::vector<std::vector<int64_t>> groups;
  for (int64_t i = 0; i < position_count; ++i) groups.push_back({i});
  return groups;
}

std::vector<std::vector<int64_t>> one_group(int64_t position_count) {
  std::vector<int64_t> all(static_cast<size_t>(position_count));
  for (int64_t i = 0; i < position_count; ++i) all[static_cast<size_t>(i)] = i;
  return {std::move(all)};
}

size_t id_count(const std::vector<std::vector<int64_t>>& groups) {
  size_t count = 0;
  for (const auto& group : groups) count += group.size();
  return count;
}

void expect_positions(const OpView& view, const std::string& op, const std::vector<std::vector<int64_t>>& groups,
                      int64_t position_count) {
  for (const auto& group : groups) {
    for (const int64_t id : group) {
      if (id < position_count) continue;
      reject(view, fmt::format("{} below {}, got {}", ids_in_range(op), position_count, id));
    }
  }
  // Ids are distinct and in range by now, so that counting them is enough.
  if (static_cast<int64_t>(id_count(groups)) == position_count) return;
  reject(view, fmt::format("{}, there are {}, they name {}",
                           group_check(op, &GroupChecks::complete, "replica_groups must name each device"),
                           position_count, id_count(groups)));
}

}  // namespace

int64_t channel_of(const OpView& view) {
  const ir::AttributeList& attributes = attributes_of(view);
  if (const ir::Attribute* attribute = ir::find(attributes, "channel_handle")) {
    if (const auto* handle = attribute->as<ir::DictAttr>()) return ir::int_or(handle->entries, "handle", 0);
  }
  return ir::int_or(attributes, "channel_id", 0);
}

std::vector<std::vector<int64_t>> replica_groups_of(const OpView& view, std::string_view op) {
  const std::string name(op);
  const Matrix matrix = matrix_of(view, name, "replica_groups");
  std::vector<std::vector<int64_t>> groups;
  std::set<int64_t> seen;
  for (int64_t row = 0; row < matrix.rows; ++row) {
    std::vector<int64_t> group;
    for (int64_t column = 0; column < matrix.columns; ++column) {
      const int64_t id = matrix.values[static_cast<size_t>(row * matrix.columns + column)];
      if (id == -1) continue;  // padding of shorter groups
      if (id < 0) reject(view, fmt::format("{}, got {}", ids_in_range(op), id));
      if (!seen.insert(id).second) reject(view, fmt::format("{}, got {} twice", distinct_ids(op), id));
      group.push_back(id);
    }
    if (!group.empty()) groups.push_back(std::move(group));
  }
  return groups;
}

int64_t written_group_size(const OpView& view, std::string_view op) {
  size_t size = 0;
  for (const auto& group : replica_groups_of(view, op)) size = std::max(size, group.size());
  return static_cast<int64_t>(size);
}

std::vector<std::vector<int64_t>> partition_group_positions(const OpView& view, std::string_view op,
                                                            int64_t position_count) {
  std::vector<std::vector<int64_t>> groups = replica_groups_of(view, op);
  if (groups.empty()) return one_group(position_count);
  if (channel_of(view) <= 0 && id_count(groups) == 1 && position_count > 1) return groups_of_one(position_count);
  expect_positions(view, std::string(op), groups, position_count);
  return groups;
}

std::vector<std::vector<int64_t>> replica_group_positions(const OpView& view, std::string_view op,
                                                          int64_t position_count) {
  const bool global = ir::bool_or(attributes_of(view), "use_global_device_ids", false);
  if (global && channel_of(view) <= 0) {
    reject(view, group_check(op, &GroupChecks::global_ids, "use_global_device_ids needs a channel"));
  }
  std::vector<std::vector<int64_t>> groups = replica_groups_of(view, op);
  if (groups.empty()) return one_group(position_count);
  const bool replica_ids = !global && id_count(groups) == 1 && position_count > 1;
  if (replica_ids) return channel_of(view) > 0 ? one_group(position_count) : groups_of_one(position_count);
  expect_positions(view, std::string(op), groups, position_count);
  return groups;
}

std::vector<std::vector<int64_t>> source_target_pairs_of(const OpView& view) {
  const Matrix matrix = matrix_of(view, "collective_permute", "source_target_pairs");
  if (matrix.columns != 2 && matrix.rows != 0) {
    reject(view,
           fmt::format("collective_permute C1: source_target_pairs must have two columns, got {}", matrix.columns));
  }
  std::vector<std::vector<int64_t>> pairs;
  std::set<int64_t> sources;
  std::set<int64_t> targets;
  for (int64_t row = 0; row < matrix.rows; ++row) {
    const int64_t source = matrix.values[static_cast<size_t>(2 * row)];
    const int64_t target = matrix.values[static_cast<size_t>(2 * row + 1)];
    if (source < 0 || target < 0) reject(view, "collective_permute C4: source_target_pairs has a negative id");
    if (!sources.insert(source).second) {
      reject(view, fmt::format("collective_permute C2: {} is the source of two pairs", source));
    }
    if (!targets.insert(target).second) {
      reject(view, fmt::format("collective_permute C3: {} is the target of two pairs", target));
    }
    pairs.push_back({source, target});
  }
  return pairs;
}

}  // namespace meshd::ops
