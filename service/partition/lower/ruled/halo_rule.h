// Halo exchange: keeps an op sharded along a dimension of which it reads its neighbours' rows (windows, convolutions,
// slices, pads, reversals, concatenations), after GSPMD (arXiv:2105.04663). Here the exchange is one op (kHalo) that
// fetches exactly the rows that a part reads; device_halo.h writes it as collective_permutes. Pure.
//
// Invariant: what is fetched is described by numbers that are the same for all parts; a device's part is an input.
//
// Steps:
//   1. halo_rule: each dimension that is read so gets a factor of its own, so that least_moving() may shard it.
//   2. fetched_elements: the price of a choice, for the device that lacks most.
//   3. fetched_from: the layout that an operand needs before the exchange.
//   4. halo_dims, fetched_dims: which rows each part reads, and how many rows its block has.
//   5. emit_fetching (lower_halo.h) appends the exchanges, then the op without padding on what was fetched
//      (OpDef::halo's localize). An op that only moves rows is the exchange itself. Parts that read just their own rows
//      need none.
//
// Example, mesh x=4, maximum over windows of 3, stride 1, padding 1, 16 rows: parts of 4 result rows, blocks of 6 rows.
//   part 0 reads places -1 to 4: rows 0 to 4, place -1 is filled;  it has rows 0 to 3 and fetches row 4
//   part 1 reads rows 3 to 8;                                      it has rows 4 to 7 and fetches rows 3 and 8
//   The window then runs on 6 rows without padding -> 4 rows. Replicating the dimension would fetch 12 rows.
// Example, mesh x=2, slice [2:8] of 8 rows, parts of 3 result rows:
//   part 0 reads rows 2 to 4, has rows 0 to 3 and fetches row 4;  part 1 reads rows 5 to 7, has rows 4 to 7
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "service/ops/op_def.h"
#include "service/partition/halo_dim.h"
#include "service/partition/lower/ruled/factor_choice.h"

namespace meshd::partition {

/// The op's rule where rows of neighbours are fetched. Each dimension that is read so has a factor of its own, of the
/// size of what it is read along (pass-through, or a reduction where that is summed over). The factors that it replaces
/// become need-replication.
sharding::FactorRule halo_rule(const ops::Halo& halo, const sharding::FactorRule& rule);

/// Without fetching, a dimension that reads its neighbours stays unsharded, whatever kind its factor is: a pad by 1 and
/// -1 keeps its size and moves all rows.
void keep_moved_unsharded(const ops::Halo& halo, const sharding::FactorRule& rule, std::vector<bool>& unsharded);

/// The layout that operand `number` needs before the exchange, `to` being its layout by the rule: a dimension that is
/// replicated stays replicated. `is_made_anew`: the operand can be computed again in any layout.
ShardLayout fetched_from(const ops::Halo& halo, size_t number, const sharding::MeshView& view,
                         const OpTensor& op_tensor, const ShardLayout& to, bool is_made_anew);

/// Rows of every dimension of operand `number` that parts read; `to` is the operand's layout by the rule. Dimensions
/// along which nothing is fetched are read part by part.
std::vector<HaloDim> halo_dims(const ops::Halo& halo, size_t number, const sharding::MeshView& view,
                               std::span<const int64_t> operand_dims, const ShardLayout& to);
/// Number of rows of each dimension in one fetched part.
tensor::Dims fetched_dims(const ops::Halo& halo, size_t number, const sharding::MeshView& view,
                          std::span<const int64_t> operand_dims, const ShardLayout& to);
/// The order of a halo's reads: by operand and dimension.
inline bool is_read_before(const ops::HaloRead& a, const ops::HaloRead& b) {
  return std::pair(a.operand, a.operand_dim) < std::pair(b.operand, b.operand_dim);
}
/// The read of a dimension of an operand that is fetched under this layout, or null: a window's only where it is
/// sharded. The halo's reads are ordered.
const ops::HaloRead* fetched_read(const ops::Halo& halo, size_t number, size_t dim, const ShardLayout& to);

/// Estimate of the elements that a device lacks of what it reads. `read`: the numbers of the operands that count, among
/// `op_tensors`; `to`: their layouts by the rule. Operands that make up one result (concatenate) count together.
double fetched_elements(const ops::Halo& halo, std::span<const size_t> read, const sharding::MeshView& view,
                        std::span<const OpTensor> op_tensors, std::span<const ShardLayout> to);

/// First and last place that is read.
std::pair<int64_t, int64_t> places_of(const ops::HaloRead& read);
/// True when each part reads the rows that it has, all of them: windows side by side. `dims` and `rows` are halo_dims()
/// and fetched_dims().
bool reads_own_rows(const sharding::MeshView& view, const ShardLayout& layout, std::span<const int64_t> operand_dims,
                    std::span<const HaloDim> dims, std::span<const int64_t> rows);

}  // namespace meshd::partition
