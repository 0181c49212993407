// Builds one function of the text of :partition: position queries, slices of values and collectives of one device.
// @main's manual computation is one function, each decomposition of a composite another.
//
// Invariant: a device's position is an input (partition_id), so that one text serves all devices. Ops that depend on it
// alone are hoisted in front of the others (prologue()).
//
// Example, mesh x=2, y=4 (position = 4 x + y): part(0, {1}) of a dimension sharded over y, in the prologue:
//   %p = stablehlo.partition_id;  %i = convert %p to i64;  %part = remainder %i, 4
// gather(%v 8x4, 0, 1, {1}) -> all_gather along dimension 1 over groups {0,1,2,3} {4,5,6,7}: 8x16.
//
// Every device runs every op, also one over a view that does not reach it: what it has then is garbage, and nobody
// reads it. Collectives need all devices in their groups, so the others get groups of their own. Example, run of 8
// devices, view x=3 over devices 0, 1, 2: an all_reduce has groups {0,1,2} {3,-1,-1} {4,-1,-1} ...; five devices make
// no groups of three, so a gather is one over all devices, of which each takes the rows of its group.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "service/partition/export/device_writer.h"
#include "service/partition/local_program.h"

namespace meshd::partition {

/// One thread. `view` is always the number of a MeshView of the local program.
class DeviceFunction {
 public:
  /// `channel`: the last channel taken in the module.
  DeviceFunction(const LocalProgram& local, int64_t& channel) : local_(local), channel_(channel), writer_(function_) {}

  [[nodiscard]] const LocalProgram& local() const { return local_; }
  [[nodiscard]] ir::Function& function() { return function_; }
  [[nodiscard]] DeviceWriter& writer() { return writer_; }
  /// The ops that have to come before all others of the body.
  [[nodiscard]] std::vector<ir::Op>& prologue() { return prologue_; }

  /// This device's number, a scalar of 64 bits.
  ir::ValueId position();
  /// Which part of a dimension sharded by `sub_axes` this device has, a scalar of 64 bits.
  ir::ValueId part(int view, const std::vector<int>& sub_axes);
  /// The row of the unsharded dimension at which this device's shard begins, a scalar of 64 bits; ir::kNoValue where
  /// the dimension is not sharded.
  ir::ValueId start(const ShardedType& type, size_t dim);

  /// True when the view is over all devices.
  [[nodiscard]] bool is_over_all(int view) const;
  /// True on the devices of the view, a scalar.
  ir::ValueId is_in(int view);

  /// channel_handle and replica_groups: groups of devices that differ in `sub_axes`, in the order of the sub-axes.
  ir::AttributeList groups(int view, const std::vector<int>& sub_axes);
  /// The groups, and others for the devices that are in none. Short ones are filled with -1, which all_reduce alone
  /// takes; needs_equal: throws unsupported_partition instead, where `location` is.
  ir::Attribute with_others(std::vector<std::vector<int64_t>> groups, bool needs_equal, const ir::Location& location);
  /// True when with_others() makes groups of one size of groups of `size` devices in the view.
  [[nodiscard]] bool has_equal_groups(int view, int64_t size) const;
  ir::Attribute new_channel();
  /// The value with all parts of a dimension behind one another (all_gather); itself where nothing shards it.
  ir::ValueId gather(ir::ValueId value, int view, size_t dim, const std::vector<int>& sub_axes);
  /// The part of `dim` that this device has; the sub-axes divide its rows.
  ir::ValueId slice(ir::ValueId value, int view, size_t dim, const std::vector<int>& sub_axes);
  /// This device's shard of an unsharded value, padded.
  ir::ValueId shard_of(ir::ValueId unsharded, const ShardedType& type);
  /// All-gathers the shards of all devices, without padding.
  ir::ValueId unsharded_of(ir::ValueId shard, const ShardedType& type);
  /// The same, on all devices: also on those that the view does not reach.
  ir::ValueId everywhere_of(ir::ValueId shard, const ShardedType& type);
  /// The value that one device has, on all.
  ir::ValueId of_device(ir::ValueId value, int64_t device);
  /// The value of the devices whose coordinates along `sub_axes` are 0.
  ir::ValueId of_first(ir::ValueId value, int view, sharding::SubAxisSet sub_axes);

 private:
  /// The groups of groups(), each in the order of the sub-axes.
  [[nodiscard]] std::vector<std::vector<int64_t>> groups_of(int view, const std::vector<int>& sub_axes) const;
  /// An entry of a table that has one for each device.
  ir::ValueId entry_of(const std::vector<int64_t>& table);
  /// The values of all devices behind one another in a new first dimension.
  ir::ValueId stacked(ir::ValueId value);
  /// gather() where the devices of the view make no groups of one size with the others.
  ir::ValueId gather_from_all(ir::ValueId value, int view, size_t dim, const std::vector<int>& sub_axes);

  const LocalProgram& local_;
  int64_t& channel_;
  ir::Function function_;
  DeviceWriter writer_;
  std::vector<ir::Op> prologue_;
  ir::ValueId position_ = ir::kNoValue;
  std::map<std::pair<int, std::vector<int>>, ir::ValueId> parts_;
};

/// Regions of the local program's function with values of `into`. Throws unsupported_partition for a region that reads
/// a value from outside.
std::vector<ir::Region> copied_regions(const std::vector<ir::Region>& from, const ir::Function& of, ir::Function& into);
/// Attributes without shardings, whose axes are manual here, and without those that only kernels read.
ir::AttributeList dialect_attributes(const ir::AttributeList& attributes);

}  // namespace meshd::partition
