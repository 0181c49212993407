#include "service/partition/lower/lower_halo.h"

#include <algorithm>
#include <map>

#include "service/core/checked_math.h"
#include "service/partition/lower/identity.h"
#include "service/partition/lower/lowering.h"

namespace meshd::partition {
namespace {

// Rows that stand farther apart than this leave more holes to fill than are worth a block copy each.
constexpr int64_t kMostSpread = 64;
// Reads times devices up to which it is worked out what a device would fetch.
constexpr int64_t kMostCounted = int64_t{1} << 20;

// First and last place that is read.
std::pair<int64_t, int64_t> places_of(const ops::HaloRead& read) {
  const int64_t far = core::checked_add(read.start, core::checked_mul(read.along_size - 1, read.step));
  return {std::min(read.start, far), core::checked_add(std::max(read.start, far), read.extent - 1)};
}

bool has_no_elements(const ir::Type& type) {
  if (!type.is_tensor()) return true;
  const tensor::Dims& dims = type.dims();
  return std::any_of(dims.begin(), dims.end(), [](int64_t size) { return size <= 0; });
}

const ops::HaloRead* read_of(const ops::Halo& halo, size_t number, size_t dim) {
  const auto found = std::find_if(halo.reads.begin(), halo.reads.end(), [&](const ops::HaloRead& read) {
    return read.operand == number && read.operand_dim == dim;
  });
  return found == halo.reads.end() ? nullptr : &*found;
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

// One operand's rows, wanted and held, by part of what they are read along: (wanted, held) for each dimension.
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

// True when each part reads the rows that it has, all of them: windows side by side.
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

// Elements that a device lacks: of the parts that lack most of each dimension, or, of dimensions along which rows are
// fetched, of the part that `place` says; without a place always the worst.
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
  // By who is read along (0: the result, else an operand's number + 1) and which of its dimensions.
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

void keep_whole_what_moves(const ops::Halo& halo, const sharding::FactorRule& rule, std::vector<bool>& uncut) {
  for (const ops::HaloRead& read : halo.reads) {
    for (const int factor : rule.operands[read.operand][read.operand_dim]) {
      const auto number = static_cast<size_t>(factor);
      if (rule.factors[number].kind == sharding::FactorKind::kPassThrough) uncut[number] = true;
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
  // Several operands meet in one result: its parts, in all dimensions, are looked at for all of them.
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

std::vector<ops::Halo> Lowering::halos_of(const ops::OpDef& def, const ops::OpView& view) {
  if (def.halo == nullptr || std::any_of(view.operands.begin(), view.operands.end(), has_no_elements) ||
      std::any_of(view.results.begin(), view.results.end(), has_no_elements))
    return {};
  return def.halo(view);
}

bool Lowering::keep_fetchable(ops::Halo& halo, const ir::Op& op, const std::optional<ops::Combine>& combine) const {
  if (halo.needs_kernel && input_.plain_ops) return false;
  const bool is_spread = std::any_of(halo.reads.begin(), halo.reads.end(),
                                     [](const ops::HaloRead& read) { return read.spread > kMostSpread; });
  const auto reads = static_cast<int64_t>(halo.reads.size());
  if (is_spread || reads > kMostCounted / builder_.program().device_count()) return false;
  // Reads along one dimension go together: a window's several operands.
  std::vector<std::pair<std::optional<size_t>, size_t>> refused;
  for (const ops::HaloRead& read : halo.reads) {
    if (halo.is_move || read.beyond != ops::Beyond::kOperand) continue;
    const int64_t rows = module_main_.type_of(op.operands[read.operand]).dims()[read.operand_dim];
    const auto [first, last] = places_of(read);
    if (read.spread == 1 && first >= 0 && last < rows) continue;
    const ir::DenseAttr* start = builder_.constant_of(local(op.operands[read.beyond_operand]));
    const kernels::ScalarOp by = combine ? combine->ops.front() : kernels::ScalarOp::kCopy;
    if (combine && (is_idempotent(by) || (start != nullptr && is_identity(*start, by)))) continue;
    refused.emplace_back(read.summed_operand, read.along_dim);
  }
  std::erase_if(halo.reads, [&](const ops::HaloRead& read) {
    return std::find(refused.begin(), refused.end(), std::pair(read.summed_operand, read.along_dim)) != refused.end();
  });
  return !halo.reads.empty();
}

void Lowering::append_halo(std::vector<LocalId> operands, std::vector<std::vector<HaloDim>> halos, LocalId made,
                           const ir::Location& location, const std::string& reason) {
  LocalOp op;
  op.kind = LocalKind::kHalo;
  op.name = "halo_exchange";
  op.operands = std::move(operands);
  op.results = {made};
  op.halos = std::move(halos);
  op.location = location;
  op.reason = reason;
  builder_.append(std::move(op));
}

void Lowering::emit_fetching(const ops::Halo& halo, const ir::Op& op, const ops::OpDef& def, const ops::OpView& view,
                             std::vector<LocalId> operands, const std::vector<ShardLayout>& result_layouts,
                             sharding::SubAxisSet partial) {
  const sharding::MeshView& mesh_view = builder_.view(result_layouts[0].view);
  // Where operand i lies by the rule: cut as what it is read along.
  const auto place_by_rule = [&](size_t i) {
    ShardLayout out = builder_.layout(operands[i]);
    for (const ops::HaloRead& read : halo.reads) {
      if (read.operand != i) continue;
      const ShardLayout along =
          read.summed_operand ? builder_.layout(operands[*read.summed_operand]) : result_layouts[0];
      out.dims[read.operand_dim] = along.dims[read.along_dim];
    }
    return out;
  };
  const auto stands_beyond = [&](const ops::HaloRead& read) -> std::optional<LocalId> {
    const tensor::DType dtype = view.operands[read.operand].dtype();
    if (read.beyond == ops::Beyond::kOperand) return operands[read.beyond_operand];
    if (read.beyond == ops::Beyond::kNothing) return std::nullopt;
    const std::vector<std::byte> zero(static_cast<size_t>(tensor::size_bytes(dtype)));
    return builder_.add_scalar(dtype, zero, result_layouts[0].view, op.location);
  };

  if (halo.is_move) {
    std::vector<LocalId> sources;
    std::vector<std::vector<HaloDim>> halos;
    sharding::SubAxisSet outer = 0;
    for (size_t i = 0; i < operands.size(); ++i) {
      const bool is_read = std::any_of(halo.reads.begin(), halo.reads.end(),
                                       [&](const ops::HaloRead& read) { return read.operand == i; });
      if (!is_read) continue;
      sources.push_back(operands[i]);
      halos.push_back(halo_dims(halo, i, mesh_view, view.operands[i].dims(), place_by_rule(i)));
    }
    if (const std::optional<LocalId> beyond = stands_beyond(halo.reads.front())) sources.push_back(*beyond);
    for (const LocalId id : sources) outer |= builder_.type(id).outer();
    const ir::ValueId result = op.results.front();
    const LocalId made = builder_.add_value(module_main_.type_of(result).tensor, result_layouts[0], outer,
                                            module_main_.values[static_cast<size_t>(result)].name);
    append_halo(std::move(sources), std::move(halos), made, op.location, op.name);
    return define(result, made);
  }

  std::vector<ops::HaloRead> fetched;
  std::vector<LocalId> blocks = operands;
  for (size_t i = 0; i < operands.size(); ++i) {
    const ShardLayout to = place_by_rule(i);
    std::optional<LocalId> beyond;
    bool is_fetched = false;
    tensor::Dims whole = view.operands[i].dims();
    const tensor::Dims rows = fetched_dims(halo, i, mesh_view, whole, to);
    for (size_t d = 0; d < to.dims.size(); ++d) {
      const ops::HaloRead* read = fetched_read(halo, i, d, to);
      if (read == nullptr) continue;
      if (!is_fetched) beyond = stands_beyond(*read);
      is_fetched = true;
      whole[d] = core::checked_mul(rows[d], sharding::part_count(mesh_view, to.dims[d]));
      fetched.push_back(*read);
    }
    if (!is_fetched) continue;
    std::vector<HaloDim> dims = halo_dims(halo, i, mesh_view, view.operands[i].dims(), to);
    if (builder_.layout(operands[i]) == to && reads_own_rows(mesh_view, to, view.operands[i].dims(), dims, rows))
      continue;
    const sharding::SubAxisSet outer =
        builder_.type(operands[i]).outer() | (beyond ? builder_.type(*beyond).outer() : 0);
    blocks[i] = builder_.add_value({view.operands[i].dtype(), whole}, to, outer, builder_.value(operands[i]).name);
    std::vector<LocalId> sources{operands[i]};
    if (beyond) sources.push_back(*beyond);
    append_halo(std::move(sources), {std::move(dims)}, blocks[i], op.location,
                "operand " + std::to_string(i) + " of " + op.name);
  }
  ir::Op local_op = op;
  local_op.attributes = halo.localize(view, fetched);
  emit(local_op, def, std::move(blocks), result_layouts, partial);
}

}  // namespace meshd::partition
