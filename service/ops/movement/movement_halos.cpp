// Rows that slices, pads, reversals and concatenations take from other shards.
#include "service/ops/checks.h"
#include "service/ops/movement/movement.h"

namespace meshd::ops {
namespace {

using tensor::Dims;

std::vector<Halo> moves(std::vector<HaloRead> reads) {
  if (reads.empty()) return {};
  return {{std::move(reads), true}};
}

}  // namespace

std::vector<Halo> slice_halo(const OpView& view) {
  const Dims& in = view.operands[0].dims();
  const std::vector<int64_t> starts = ir::ints(attributes_of(view), "start_indices");
  const std::vector<int64_t> strides = ir::ints(attributes_of(view), "strides");
  std::vector<HaloRead> reads;
  for (size_t d = 0; d < in.size(); ++d) {
    if (in[d] == view.results[0].dims()[d]) continue;
    reads.push_back({.operand_dim = d,
                     .along_dim = d,
                     .along_size = view.results[0].dims()[d],
                     .start = starts[d],
                     .step = strides[d]});
  }
  return moves(std::move(reads));
}

std::vector<Halo> pad_halo(const OpView& view) {
  const std::vector<int64_t> low = ir::ints(attributes_of(view), "edge_padding_low");
  const std::vector<int64_t> high = ir::ints(attributes_of(view), "edge_padding_high");
  const std::vector<int64_t> interior = ir::ints(attributes_of(view), "interior_padding");
  std::vector<HaloRead> reads;
  for (size_t d = 0; d < low.size(); ++d) {
    if (low[d] == 0 && high[d] == 0 && interior[d] == 0) continue;
    reads.push_back({.operand_dim = d,
                     .along_dim = d,
                     .along_size = view.results[0].dims()[d],
                     .start = -low[d],
                     .spread = core::checked_add(interior[d], 1),
                     .beyond = Beyond::kOperand,
                     .beyond_operand = 1});
  }
  return moves(std::move(reads));
}

std::vector<Halo> reverse_halo(const OpView& view) {
  std::vector<HaloRead> reads;
  for (const int64_t dim : ir::ints(attributes_of(view), "dimensions")) {
    const auto d = static_cast<size_t>(dim);
    const int64_t size = view.results[0].dims()[d];
    reads.push_back({.operand_dim = d, .along_dim = d, .along_size = size, .start = size - 1, .step = -1});
  }
  return moves(std::move(reads));
}

std::vector<Halo> concatenate_halo(const OpView& view) {
  const auto d = static_cast<size_t>(ir::int_or(attributes_of(view), "dimension", 0));
  std::vector<HaloRead> reads;
  int64_t before = 0;
  for (size_t i = 0; i < view.operands.size(); ++i) {
    reads.push_back(
        {.operand = i, .operand_dim = d, .along_dim = d, .along_size = view.results[0].dims()[d], .start = -before});
    before += view.operands[i].dims()[d];
  }
  return moves(std::move(reads));
}

}  // namespace meshd::ops
