#include "service/partition/lower/ruled/lower_halo.h"

#include <fmt/core.h>

#include <algorithm>

#include "service/core/checked_math.h"
#include "service/kernels/elementwise/scalar_op.h"
#include "service/partition/lower/builder/local_ops.h"
#include "service/partition/lower/ruled/emit.h"
#include "service/partition/lower/ruled/halo_rule.h"
#include "service/partition/lower/ruled/identity.h"

namespace meshd::partition {
namespace {

// Rows farther apart than this leave more gaps to fill than a block copy each costs.
constexpr int64_t kMostSpread = 64;
// Reads times devices up to which it is worked out what a device would fetch.
constexpr int64_t kMostCounted = int64_t{1} << 20;

bool has_no_elements(const ir::Type& type) {
  if (!type.is_tensor()) return true;
  const tensor::Dims& dims = type.dims();
  return std::any_of(dims.begin(), dims.end(), [](int64_t size) { return size <= 0; });
}

// A halo exchange whose result is `made`.
void append_halo(LoweringContext& context, std::vector<LocalId> operands, std::vector<std::vector<HaloDim>> halos,
                 LocalId made, const ir::Location& location, const std::string& reason) {
  LocalOp op;
  op.kind = LocalKind::kHalo;
  op.name = "halo_exchange";
  op.operands = std::move(operands);
  op.results = {made};
  op.halos = std::move(halos);
  op.location = location;
  op.reason = reason;
  context.builder.append(std::move(op));
}

}  // namespace

std::vector<ops::Halo> halos_of(const ops::OpDef& def, const ops::OpView& view) {
  if (def.halo == nullptr || std::any_of(view.operands.begin(), view.operands.end(), has_no_elements) ||
      std::any_of(view.results.begin(), view.results.end(), has_no_elements))
    return {};
  std::vector<ops::Halo> halos = def.halo(view);
  for (ops::Halo& halo : halos) std::sort(halo.reads.begin(), halo.reads.end(), is_read_before);
  return halos;
}

bool keep_fetchable(const LoweringContext& context, ops::Halo& halo, const ir::Op& op,
                    const std::optional<ops::Combine>& combine) {
  const bool is_spread = std::any_of(halo.reads.begin(), halo.reads.end(),
                                     [](const ops::HaloRead& read) { return read.spread > kMostSpread; });
  const auto reads = static_cast<int64_t>(halo.reads.size());
  if (is_spread || reads > kMostCounted / context.builder.program().device_count()) return false;
  // Reads along one dimension go together: a window's several operands.
  std::vector<std::pair<std::optional<size_t>, size_t>> refused;
  for (const ops::HaloRead& read : halo.reads) {
    if (halo.is_move || read.beyond != ops::Beyond::kOperand) continue;
    const int64_t rows = context.main.type_of(op.operands[read.operand]).dims()[read.operand_dim];
    const auto [first, last] = places_of(read);
    if (read.spread == 1 && first >= 0 && last < rows) continue;
    const ir::DenseAttr* start = constant_of(context.builder, context.local(op.operands[read.beyond_operand]));
    const kernels::ScalarOp by = combine ? combine->ops.front() : kernels::ScalarOp::kCopy;
    if (combine && (is_idempotent(by) || (start != nullptr && is_identity(*start, by)))) continue;
    refused.emplace_back(read.summed_operand, read.along_dim);
  }
  std::erase_if(halo.reads, [&](const ops::HaloRead& read) {
    return std::find(refused.begin(), refused.end(), std::pair(read.summed_operand, read.along_dim)) != refused.end();
  });
  return !halo.reads.empty();
}

void emit_fetching(LoweringContext& context, const ops::Halo& halo, const ir::Op& op, const ops::OpDef& def,
                   const ops::OpView& view, std::vector<LocalId> operands,
                   const std::vector<ShardLayout>& result_layouts, sharding::SubAxisSet partial) {
  Builder& builder = context.builder;
  const sharding::MeshView& mesh_view = builder.view(result_layouts[0].view);
  // The layout that the rule gives operand i: sharded like the tensor that it is read along.
  const auto place_by_rule = [&](size_t i) {
    ShardLayout out = builder.layout(operands[i]);
    for (const ops::HaloRead& read : halo.reads) {
      if (read.operand != i) continue;
      const ShardLayout along =
          read.summed_operand ? builder.layout(operands[*read.summed_operand]) : result_layouts[0];
      out.dims[read.operand_dim] = along.dims[read.along_dim];
    }
    return out;
  };
  const auto stands_beyond = [&](const ops::HaloRead& read) -> std::optional<LocalId> {
    const tensor::DType dtype = view.operands[read.operand].dtype();
    if (read.beyond == ops::Beyond::kOperand) return operands[read.beyond_operand];
    if (read.beyond == ops::Beyond::kNothing) return std::nullopt;
    const std::vector<std::byte> zero(static_cast<size_t>(tensor::size_bytes(dtype)));
    return add_scalar(builder, dtype, zero, result_layouts[0].view, op.location);
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
    for (const LocalId id : sources) outer |= builder.type(id).outer();
    const ir::ValueId result = op.results.front();
    const LocalId made = context.add_value(result, result_layouts[0], outer);
    append_halo(context, std::move(sources), std::move(halos), made, op.location, op.name);
    return context.define(result, made);
  }

  std::vector<ops::HaloRead> fetched;
  std::vector<LocalId> blocks = operands;
  for (size_t i = 0; i < operands.size(); ++i) {
    const ShardLayout to = place_by_rule(i);
    std::optional<LocalId> beyond;
    bool is_fetched = false;
    tensor::Dims unsharded = view.operands[i].dims();
    const tensor::Dims rows = fetched_dims(halo, i, mesh_view, unsharded, to);
    for (size_t d = 0; d < to.dims.size(); ++d) {
      const ops::HaloRead* read = fetched_read(halo, i, d, to);
      if (read == nullptr) continue;
      if (!is_fetched) beyond = stands_beyond(*read);
      is_fetched = true;
      unsharded[d] = core::checked_mul(rows[d], sharding::part_count(mesh_view, to.dims[d]));
      fetched.push_back(*read);
    }
    if (!is_fetched) continue;
    std::vector<HaloDim> dims = halo_dims(halo, i, mesh_view, view.operands[i].dims(), to);
    if (builder.layout(operands[i]) == to && reads_own_rows(mesh_view, to, view.operands[i].dims(), dims, rows))
      continue;
    const sharding::SubAxisSet outer = builder.type(operands[i]).outer() | (beyond ? builder.type(*beyond).outer() : 0);
    blocks[i] = builder.add_value({view.operands[i].dtype(), unsharded}, to, outer, builder.value(operands[i]).name);
    std::vector<LocalId> sources{operands[i]};
    if (beyond) sources.push_back(*beyond);
    append_halo(context, std::move(sources), {std::move(dims)}, blocks[i], op.location,
                fmt::format("operand {} of {}", i, op.name));
  }
  ir::Op local_op = op;
  local_op.attributes = halo.localize(view, fetched);
  emit_op(context, local_op, def, std::move(blocks), result_layouts, partial);
}

}  // namespace meshd::partition
