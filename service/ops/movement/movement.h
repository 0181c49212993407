// The movement family, split by what its functions do: shapes (movement_infer.cpp), factor rules (movement_rules.cpp),
// kernels (movement_prepare.cpp), rows of other shards (movement_halos.cpp), reading (movement_reads.cpp); the rows are
// in movement.cpp. Private to the family.
#pragma once

#include <vector>

#include "service/ops/op_def.h"

namespace meshd::ops {

std::vector<ir::Type> infer_reshape(const OpView& view);
std::vector<ir::Type> infer_transpose(const OpView& view);
std::vector<ir::Type> infer_broadcast_in_dim(const OpView& view);
std::vector<ir::Type> infer_slice(const OpView& view);
std::vector<ir::Type> infer_dynamic_slice(const OpView& view);
std::vector<ir::Type> infer_dynamic_update_slice(const OpView& view);
std::vector<ir::Type> infer_concatenate(const OpView& view);
std::vector<ir::Type> infer_pad(const OpView& view);
std::vector<ir::Type> infer_reverse(const OpView& view);
std::vector<ir::Type> infer_iota(const OpView& view);

sharding::FactorRule reshape_rule(const OpView& view);
sharding::FactorRule transpose_rule(const OpView& view);
sharding::FactorRule broadcast_in_dim_rule(const OpView& view);
sharding::FactorRule slice_rule(const OpView& view);  ///< pad too
sharding::FactorRule dynamic_slice_rule(const OpView& view);
sharding::FactorRule dynamic_update_slice_rule(const OpView& view);
sharding::FactorRule concatenate_rule(const OpView& view);
sharding::FactorRule reverse_rule(const OpView& view);

PreparedKernel prepare_reshape(const OpView& local);
PreparedKernel prepare_transpose(const OpView& local);
PreparedKernel prepare_broadcast_in_dim(const OpView& local);
PreparedKernel prepare_slice(const OpView& local);
PreparedKernel prepare_dynamic_slice(const OpView& local);
PreparedKernel prepare_dynamic_update_slice(const OpView& local);
PreparedKernel prepare_concatenate(const OpView& local);
/// Fuse::concatenation of concatenate.
PreparedKernel prepare_concatenate_of(const OpView& local, const std::vector<std::optional<StridedView>>& views,
                                      const std::vector<ComputedOperands>& computed);
PreparedKernel prepare_pad(const OpView& local);
PreparedKernel prepare_reverse(const OpView& local);
PreparedKernel prepare_iota(const OpView& local);

/// How fused chains read through an op instead of running it.
IndexingMap read_reshape(const OpView& local);
IndexingMap read_broadcast_in_dim(const OpView& local);
IndexingMap read_slice(const OpView& local);
IndexingMap read_reverse(const OpView& local);
int64_t iota_dim(const OpView& local);

/// Which rows of other shards they take.
std::vector<Halo> slice_halo(const OpView& view);
std::vector<Halo> pad_halo(const OpView& view);
std::vector<Halo> reverse_halo(const OpView& view);
std::vector<Halo> concatenate_halo(const OpView& view);

/// Dimensions that are sliced in full end where the shard ends.
ir::AttributeList localize_slice(const OpView& global, const OpView& local);
/// slice_sizes of the local result.
ir::AttributeList localize_dynamic_slice(const OpView& global, const OpView& local);
/// Adds the global dims, to which start indices are clamped.
ir::AttributeList localize_dynamic_update_slice(const OpView& global, const OpView& local);

/// Reverse mode (movement_vjp.cpp). That of reshape and transpose is their inverse; slices and pads undo each other.
std::vector<Contribution> vjp_broadcast_in_dim(const Vjp& v);
std::vector<Contribution> vjp_concatenate(const Vjp& v);
std::vector<Contribution> vjp_dynamic_slice(const Vjp& v);
std::vector<Contribution> vjp_dynamic_update_slice(const Vjp& v);
std::vector<Contribution> vjp_pad(const Vjp& v);
std::vector<Contribution> vjp_reshape(const Vjp& v);
std::vector<Contribution> vjp_reverse(const Vjp& v);
std::vector<Contribution> vjp_slice(const Vjp& v);
std::vector<Contribution> vjp_transpose(const Vjp& v);

}  // namespace meshd::ops
