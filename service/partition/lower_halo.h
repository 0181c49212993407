// An op that reads its neighbours' rows, cut along the dimension all the same: the rule that says so, where its
// operands have to lie, which rows a device fetches and what that moves. Pure.
#pragma once

#include <span>
#include <vector>

#include "service/ops/op_def.h"
#include "service/partition/factor_choice.h"
#include "service/partition/halo_dim.h"

namespace meshd::partition {

/// The op's rule where rows of neighbours are fetched: each dimension that reads so has a factor of its own, as large
/// as what it is read along (pass-through, or a reduction where that is summed over); factors that stood there before
/// stay whole wherever else they are.
sharding::FactorRule halo_rule(const ops::Halo& halo, const sharding::FactorRule& rule);

/// Without fetching, a dimension that reads its neighbours cannot be cut, whatever its factor says: a pad by 1 and -1
/// keeps its size and moves all rows.
void keep_whole_what_moves(const ops::Halo& halo, const sharding::FactorRule& rule, std::vector<bool>& uncut);

/// Where operand `number` has to lie for the result to be made, `to` being its layout by the rule: a dimension of
/// which every device has all rows stays so. `is_made_anew`: it lies wherever it is wanted.
ShardLayout fetched_from(const ops::Halo& halo, size_t number, const sharding::MeshView& view,
                         const OpTensor& op_tensor, const ShardLayout& to, bool is_made_anew);

/// Rows of every dimension of operand `number` that parts read; `to` is the operand's layout by the
/// rule. Dimensions that nobody fetches are read as they lie.
std::vector<HaloDim> halo_dims(const ops::Halo& halo, size_t number, const sharding::MeshView& view,
                               std::span<const int64_t> operand_dims, const ShardLayout& to);
/// How many rows there are of each dimension in one part of what is fetched.
tensor::Dims fetched_dims(const ops::Halo& halo, size_t number, const sharding::MeshView& view,
                          std::span<const int64_t> operand_dims, const ShardLayout& to);
/// The read of a dimension of an operand that is fetched under this layout, or null: a window's only where it is
/// cut.
const ops::HaloRead* fetched_read(const ops::Halo& halo, size_t number, size_t dim, const ShardLayout& to);

/// About how many elements a device lacks of what it reads of operands `op_tensors`, of which `read` are looked at,
/// whose layouts by the rule are `to`. Operands that one result is put together from count together.
double fetched_elements(const ops::Halo& halo, std::span<const size_t> read, const sharding::MeshView& view,
                        std::span<const OpTensor> op_tensors, std::span<const ShardLayout> to);

}  // namespace meshd::partition
