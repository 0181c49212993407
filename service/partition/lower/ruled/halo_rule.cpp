#include "service/partition/lower/ruled/halo_rule.h"

#include <algorithm>
#include <map>

#include "service/core/checked_math.h"

namespace meshd::partition {
namespace {

const ops::HaloRead* read_of(const ops::Halo& halo, size_t number, size_t dim) {
  const ops::HaloRead wanted{.operand = number, .operand_dim = dim};
  const auto found = std::lower_bound(halo.reads.begin(), halo.reads.end(), wanted, is_read_before);
  return found == halo.reads.end() || is_read_before(wanted, *found) ? nullptr : &*found;
}

// What one of `parts` parts reads: `count` rows from place `start` of the first part on, `row_step` places apart.
struct PartRead {
  int64_t start = 0;
  int64_t row_step = 1;
  int64_t count = 0;
};

PartRead read_of_part(const ops::Halo& halo, const ops::HaloRead& read, int64_t parts) {
  const int64_t rows = core::ceil_div(read.along_size, parts);
  if (halo.is_move) return {read.start, read.step, rows};
  const int64_t count = core::checked_add(core::checked_mul(rows - 1, read.step), read.extent);
  if (rows % read.grid != 0) return {read.start, 1, count};
  const auto modulo = [&](int64_t place) {
    const int64_t rest = place % read.grid;
    return rest < 0 ? rest + read.grid : rest;
  };
  const auto phase_of = [&](int64_t place) { return modulo(modulo(place) - modulo(read.phase)); };
  const int64_t behind =
      core::checked_add(read.start, count - 1 - read.tail);  // the last place where anything may begin
  const int64_t first = read.start + (read.grid - phase_of(read.start)) % read.grid;
  const int64_t last = behind - phase_of(behind);
  const int64_t row_step = read.tail == 0 && read.spread == read.grid ? read.grid : 1;
  return {first, row_step, (last + read.tail - first) / row_step + 1};
}

// One operand's rows by part of the tensor that they are read along: (needed, held) for each dimension.
struct Fetch {
  std::vector<std::vector<std::pair<int64_t, int64_t>>> rows;
  std::vector<char> moves;  // by dimension: rows are fetched along it
};

Fetch fetch_of(const ops::Halo& halo, size_t number, const sharding::MeshView& view, const OpTensor& op_tensor,
               const ShardLayout& from, const ShardLayout& to) {
  const std::vector<HaloDim> dims = halo_dims(halo, number, view, op_tensor.dims, to);
  const tensor::Dims rows = fetched_dims(halo, number, view, op_tensor.dims, to);
  Fetch out;
  for (size_t d = 0; d < dims.size(); ++d) {
    const int64_t own = core::ceil_div(op_tensor.dims[d], sharding::part_count(view, from.dims[d]));
    auto& parts = out.rows.emplace_back();
    out.moves.push_back(fetched_read(halo, number, d, to) != nullptr ? 1 : 0);
    for (int64_t part = 0; part < sharding::part_count(view, to.dims[d]); ++part) {
      const HaloRows read = rows_read(dims[d], part, rows[d]);
      const int64_t held = from.dims[d].empty() ? read.count : read.within(part * own, (part + 1) * own).count;
      parts.emplace_back(read.count, held);
    }
  }
  return out;
}

// How many parts the dimensions have along which rows are fetched; one for the others.
std::vector<size_t> parts_of(std::span<const Fetch> fetches) {
  std::vector<size_t> out;
  for (const Fetch& fetch : fetches) {
    out.resize(std::max(out.size(), fetch.rows.size()), 1);
    for (size_t d = 0; d < fetch.rows.size(); ++d) {
      if (fetch.moves[d] != 0) out[d] = std::max(out[d], fetch.rows[d].size());
    }
  }
  return out;
}

// Elements that a device lacks, at the part `place` of dimensions along which rows are fetched; elsewhere, or without a
// place, at the part that lacks most.
double lacking_of(const Fetch& fetch, std::span<const size_t> place) {
  double wanted = 1;
  double common = 1;
  for (size_t d = 0; d < fetch.rows.size(); ++d) {
    const auto& parts = fetch.rows[d];
    const bool is_placed = d < place.size() && fetch.moves[d] != 0;
    const auto& one = is_placed
                          ? parts[std::min(place[d], parts.size() - 1)]
                          : *std::max_element(parts.begin(), parts.end(), [](const auto& a, const auto& b) {
                              return std::pair(a.first - a.second, a.first) < std::pair(b.first - b.second, b.first);
                            });
    wanted *= static_cast<double>(one.first);
    common *= static_cast<double>(one.second);
  }
  return wanted - common;
}

}  // namespace

sharding::FactorRule halo_rule(const ops::Halo& halo, const sharding::FactorRule& rule) {
  sharding::FactorRule out = rule;
  const auto retire = [&](const std::vector<int>& factors) {
    for (const int factor : factors)
      out.factors[static_cast<size_t>(factor)].kind = sharding::FactorKind::kNeedReplication;
  };
  // By the tensor that is read along (0: the result, else an operand's number + 1) and its dimension.
  std::map<std::pair<size_t, size_t>, int> factor_of;
  for (const ops::HaloRead& read : halo.reads) {
    const std::optional<size_t> summed = read.summed_operand;
    const auto [found, is_new] =
        factor_of.try_emplace({summed ? *summed + 1 : 0, read.along_dim}, static_cast<int>(out.factors.size()));
    if (is_new) {
      const sharding::TensorFactors& along = summed ? rule.operands[*summed] : rule.results[0];
      retire(along[read.along_dim]);
      const auto kind = summed ? sharding::FactorKind::kReduction : sharding::FactorKind::kPassThrough;
      out.factors.push_back({read.along_size, kind, false});
      if (summed) {
        out.operands[*summed][read.along_dim] = {found->second};
      } else {
        for (sharding::TensorFactors& result : out.results) result[read.along_dim] = {found->second};
      }
    }
    retire(rule.operands[read.operand][read.operand_dim]);
    out.operands[read.operand][read.operand_dim] = {found->second};
  }
  return out;
}

void keep_moved_unsharded(const ops::Halo& halo, const sharding::FactorRule& rule, std::vector<bool>& unsharded) {
  for (const ops::HaloRead& read : halo.reads) {
    for (const int factor : rule.operands[read.operand][read.operand_dim]) {
      const auto number = static_cast<size_t>(factor);
      if (rule.factors[number].kind == sharding::FactorKind::kPassThrough) unsharded[number] = true;
    }
  }
}

const ops::HaloRead* fetched_read(const ops::Halo& halo, size_t number, size_t dim, const ShardLayout& to) {
  const ops::HaloRead* read = read_of(halo, number, dim);
  return read != nullptr && (halo.is_move || !to.dims[dim].empty()) ? read : nullptr;
}

ShardLayout fetched_from(const ops::Halo& halo, size_t number, const sharding::MeshView& view,
                         const OpTensor& op_tensor, const ShardLayout& to, bool is_made_anew) {
  ShardLayout out = to;
  for (size_t d = 0; d < to.dims.size(); ++d) {
    if (fetched_read(halo, number, d, to) != nullptr && (is_made_anew || op_tensor.layout.dims[d].empty()))
      out.dims[d].clear();
  }
  return is_made_anew || lacking_elements(view, op_tensor.dims, op_tensor.layout, out) == 0 ? out : to;
}

std::vector<HaloDim> halo_dims(const ops::Halo& halo, size_t number, const sharding::MeshView& view,
                               std::span<const int64_t> operand_dims, const ShardLayout& to) {
  std::vector<HaloDim> out;
  for (size_t d = 0; d < operand_dims.size(); ++d) {
    HaloDim dim;
    const int64_t parts = sharding::part_count(view, to.dims[d]);
    dim.end = operand_dims[d];
    dim.part_step = core::ceil_div(operand_dims[d], parts);
    if (const ops::HaloRead* read = fetched_read(halo, number, d, to)) {
      const auto [first, last] = places_of(*read);
      const PartRead part = read_of_part(halo, *read, parts);
      dim.start = part.start;
      dim.part_step = core::checked_mul(core::ceil_div(read->along_size, parts), read->step);
      dim.row_step = part.row_step;
      dim.spread = read->spread;
      if (first > 0) dim.begin = core::ceil_div(first, read->spread);
      dim.end = last < 0 ? 0 : std::min(dim.end, last / read->spread + 1);
    }
    out.push_back(dim);
  }
  return out;
}

tensor::Dims fetched_dims(const ops::Halo& halo, size_t number, const sharding::MeshView& view,
                          std::span<const int64_t> operand_dims, const ShardLayout& to) {
  tensor::Dims out;
  for (size_t d = 0; d < operand_dims.size(); ++d) {
    const ops::HaloRead* read = fetched_read(halo, number, d, to);
    const int64_t parts = sharding::part_count(view, to.dims[d]);
    out.push_back(read == nullptr ? core::ceil_div(operand_dims[d], parts) : read_of_part(halo, *read, parts).count);
  }
  return out;
}

double fetched_elements(const ops::Halo& halo, std::span<const size_t> read, const sharding::MeshView& view,
                        std::span<const OpTensor> op_tensors, std::span<const ShardLayout> to) {
  double brought = 0;
  std::vector<Fetch> fetches;
  for (const size_t i : read) {
    const ShardLayout from = fetched_from(halo, i, view, op_tensors[i], to[i], false);
    brought += lacking_elements(view, op_tensors[i].dims, op_tensors[i].layout, from);
    fetches.push_back(fetch_of(halo, i, view, op_tensors[i], from, to[i]));
  }
  if (fetches.size() == 1) return brought + lacking_of(fetches[0], {});
  // Several operands share one result: its parts, in all dimensions, are the same for all of them.
  const std::vector<size_t> parts = parts_of(fetches);
  double lacking = 0;
  std::vector<size_t> place(parts.size());
  for (bool is_over = false; !is_over;) {
    double here = 0;
    for (const Fetch& fetch : fetches) here += lacking_of(fetch, place);
    lacking = std::max(lacking, here);
    size_t d = place.size();
    while (d > 0 && ++place[d - 1] == parts[d - 1]) place[--d] = 0;
    is_over = d == 0;
  }
  return brought + lacking;
}

std::pair<int64_t, int64_t> places_of(const ops::HaloRead& read) {
  const int64_t far = core::checked_add(read.start, core::checked_mul(read.along_size - 1, read.step));
  return {std::min(read.start, far), core::checked_add(std::max(read.start, far), read.extent - 1)};
}

bool reads_own_rows(const sharding::MeshView& view, const ShardLayout& layout, std::span<const int64_t> operand_dims,
                    std::span<const HaloDim> dims, std::span<const int64_t> rows) {
  for (size_t d = 0; d < dims.size(); ++d) {
    const int64_t parts = sharding::part_count(view, layout.dims[d]);
    const int64_t own = core::ceil_div(operand_dims[d], parts);
    for (int64_t part = 0; part < parts; ++part) {
      const HaloRows read = rows_read(dims[d], part, rows[d]);
      if (rows[d] != own || read.count != own || read.from != part * own || read.from_step != 1 || read.to_step != 1)
        return false;
    }
  }
  return true;
}

}  // namespace meshd::partition
