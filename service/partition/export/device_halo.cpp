#include "service/partition/export/device_halo.h"

#include <algorithm>
#include <cstdlib>
#include <map>

#include "service/core/checked_math.h"
#include "service/partition/shard_layout.h"

namespace meshd::partition {
namespace {

// A source whose rows more devices than this need at once is all-gathered: each would take a permute of its own.
constexpr size_t kMostExchanges = 4;

class HaloWriter {
 public:
  HaloWriter(DeviceFunction& to, const LocalOp& op, std::span<const ir::ValueId> operands)
      : to_(to), writer_(to.writer()), op_(op), operands_(operands), result_(to.local().type(op.results[0])) {}

  ir::ValueId run() {
    ir::ValueId out = -1;
    for (size_t i = 0; i < op_.halos.size(); ++i) {
      ir::ValueId rows = operands_[i];
      std::vector<Window> windows;
      for (size_t d = 0; d < result_.rank(); ++d) {
        if (!is_read_in_place(i, d)) rows = fetch(rows, windows.emplace_back(window_of(i, d)));
      }
      if (i == 0 && op_.halos.size() == 1) return rows;
      for (const Window& window : windows) {
        if (out >= 0) rows = choose(window, rows, out);
      }
      out = rows;
    }
    return out;
  }

 private:
  // One dimension that is fetched, by part of the result.
  struct Window {
    size_t operand = 0;
    size_t dim = 0;
    std::vector<HaloRows> rows;
    bool is_full = true;  // all rows of all parts are rows of the operand
  };

  // The concatenated rows of every device after the exchange.
  struct Gathered {
    ir::ValueId value = -1;
    std::vector<int64_t> base;  // by part: the operand's row that is row 0
  };

  [[nodiscard]] const ShardedType& source(size_t operand) const { return to_.local().type(op_.operands[operand]); }
  [[nodiscard]] const sharding::MeshView& view() const { return to_.local().view(result_.layout.view); }
  [[nodiscard]] const std::vector<int>& sub_axes(size_t dim) const { return result_.sub_axes(dim); }
  [[nodiscard]] int64_t parts(size_t dim) const { return result_.parts(view(), dim); }
  [[nodiscard]] int64_t result_rows(size_t dim) const { return result_.local.dims[dim]; }

  [[nodiscard]] bool is_read_in_place(size_t operand, size_t d) const {
    const HaloDim& halo = op_.halos[operand][d];
    const int64_t rows = source(operand).local.dims[d];
    return halo.start == 0 && halo.row_step == 1 && halo.spread == 1 && halo.begin == 0 &&
           halo.end == source(operand).logical_dims[d] && halo.part_step == rows && rows == result_rows(d) &&
           source(operand).sub_axes(d) == sub_axes(d) && (!has_filling() || halo.end == rows * parts(d));
  }

  [[nodiscard]] Window window_of(size_t operand, size_t d) const {
    Window out{operand, d, {}, true};
    for (int64_t part = 0; part < parts(d); ++part) {
      out.rows.push_back(rows_read(op_.halos[operand][d], part, result_rows(d)));
      out.is_full = out.is_full && out.rows.back().count == result_rows(d);
    }
    return out;
  }

  // ---- scalars that depend on the part

  ir::ValueId by_part(size_t dim, const std::vector<int64_t>& table) {
    if (std::all_of(table.begin(), table.end(), [&](int64_t entry) { return entry == table.front(); }))
      return writer_.integer(table.front());
    const ir::ValueId here = to_.part(result_.layout.view, sub_axes(dim));
    return writer_.reshape(writer_.block(writer_.integers(table), 0, here, 1), {});
  }

  // ---- ops

  // Rows [begin, end) of one dimension, each `stride`-th.
  ir::ValueId slice(ir::ValueId value, size_t dim, int64_t begin, int64_t end, int64_t stride) {
    tensor::Dims limits = writer_.type(value).dims();
    if (begin == 0 && end == limits[dim] && stride == 1) return value;
    std::vector<int64_t> starts(limits.size(), 0);
    std::vector<int64_t> strides(limits.size(), 1);
    starts[dim] = begin;
    limits[dim] = end;
    strides[dim] = stride;
    return writer_.slice(value, starts, limits, strides);
  }

  ir::ValueId pad(ir::ValueId value, size_t dim, int64_t low, int64_t high, int64_t interior) {
    if (low == 0 && high == 0 && interior == 0) return value;
    tensor::Dims dims = writer_.type(value).dims();
    const tensor::DType dtype = writer_.type(value).dtype();
    std::vector<int64_t> lows(dims.size(), 0), highs(dims.size(), 0), interiors(dims.size(), 0);
    lows[dim] = low;
    highs[dim] = high;
    interiors[dim] = interior;
    dims[dim] = low + high + (dims[dim] - 1) * (interior + 1) + 1;
    return writer_.create_one("stablehlo.pad", {value, writer_.zero({dtype, {}})}, ir::Type::of({dtype, dims}),
                              {{"edge_padding_high", ir::int_array_attr(highs)},
                               {"edge_padding_low", ir::int_array_attr(lows)},
                               {"interior_padding", ir::int_array_attr(interiors)}});
  }

  ir::ValueId reverse(ir::ValueId value, size_t dim) {
    return writer_.create_one("stablehlo.reverse", {value}, ir::Type(writer_.type(value)),
                              {{"dimensions", ir::int_array_attr({static_cast<int64_t>(dim)})}});
  }

  // The value of part from[p] for each part p of the dimension; zeros where that is -1. Each part is sent once at most.
  ir::ValueId permute(ir::ValueId value, size_t dim, const std::vector<int64_t>& from) {
    std::vector<int64_t> pairs;
    for (int64_t p = 0; p < view().position_count(); ++p) {
      tensor::Dims coords = view().coordinates(view().all(), p);
      const int64_t sender = from[static_cast<size_t>(sharding::part_index(view(), sub_axes(dim), coords))];
      if (sender < 0) continue;
      sharding::set_part(view(), sub_axes(dim), sender, coords);
      pairs.push_back(view().flat(view().distinct_index(view().all(), coords)));
      pairs.push_back(view().flat(p));
    }
    const auto count = static_cast<int64_t>(pairs.size()) / 2;
    return writer_.create_one(
        "stablehlo.collective_permute", {value}, ir::Type(writer_.type(value)),
        {{"channel_handle", to_.new_channel()}, {"source_target_pairs", {ir::dense_integers_attr(pairs, {count, 2})}}});
  }

  // ---- rows of neighbours

  // Rows of the parts from first[p] + low to first[p] + high - 1 behind one another; nothing when too many devices need
  // one part.
  std::optional<Gathered> from_neighbours(ir::ValueId value, const Window& window) {
    const HaloDim& halo = op_.halos[window.operand][window.dim];
    const int64_t own = source(window.operand).local.dims[window.dim];
    const int64_t count = parts(window.dim);
    // Counted from where a part's window begins, inside of the operand or not, so that most parts see the same
    // distances.
    std::vector<int64_t> first;
    std::map<int64_t, std::vector<int64_t>> senders;        // by distance, then part; -1: needs nothing
    std::map<int64_t, std::pair<int64_t, int64_t>> wanted;  // by distance: rows of the sender
    for (int64_t p = 0; p < count; ++p) {
      const int64_t place = halo.start + p * halo.part_step;
      const int64_t least = std::min(place, place + (result_rows(window.dim) - 1) * halo.row_step);
      first.push_back(core::floor_div(core::floor_div(least, halo.spread), own));
      const HaloRows& rows = window.rows[static_cast<size_t>(p)];
      if (rows.count == 0) continue;
      for (int64_t part = rows.first() / own; part <= rows.last() / own; ++part) {
        const HaloRows here = rows.within(part * own, (part + 1) * own);
        if (here.count == 0) continue;
        const int64_t distance = part - first.back();
        senders.try_emplace(distance, std::vector<int64_t>(static_cast<size_t>(count), -1))
            .first->second[static_cast<size_t>(p)] = part;
        const auto [found, is_new] =
            wanted.try_emplace(distance, here.first() - part * own, here.last() - part * own + 1);
        found->second.first = std::min(found->second.first, here.first() - part * own);
        found->second.second = std::max(found->second.second, here.last() - part * own + 1);
      }
    }
    const int64_t low = senders.begin()->first;
    const int64_t high = senders.rbegin()->first;
    std::vector<ir::ValueId> blocks;
    for (int64_t distance = low; distance <= high; ++distance) {
      // Blocks in the middle are sent unsliced, so that the rows are contiguous.
      const int64_t begin = distance == low ? wanted[low].first : 0;
      const int64_t end = distance == high ? wanted[high].second : own;
      const auto found = senders.find(distance);
      const ir::ValueId block = slice(value, window.dim, begin, end, 1);
      if (found == senders.end()) {
        blocks.push_back(block);  // never read
        continue;
      }
      const std::optional<ir::ValueId> sent = send(block, window.dim, found->second);
      if (!sent) return std::nullopt;
      blocks.push_back(*sent);
    }
    Gathered out{writer_.concatenate(blocks, static_cast<int64_t>(window.dim)), {}};
    for (const int64_t part : first) out.base.push_back((part + low) * own + wanted[low].first);
    return out;
  }

  // Blocks of parts from[p], in as many permutes as the most requested part has readers.
  std::optional<ir::ValueId> send(ir::ValueId block, size_t dim, const std::vector<int64_t>& from) {
    std::map<int64_t, size_t> sent;
    std::vector<std::vector<int64_t>> rounds;
    std::vector<int64_t> round_of(from.size(), 0);
    bool stays = true;
    for (size_t p = 0; p < from.size(); ++p) {
      if (from[p] < 0) continue;
      stays = stays && from[p] == static_cast<int64_t>(p);
      const size_t round = sent[from[p]]++;
      if (round == kMostExchanges) return std::nullopt;
      if (round == rounds.size()) rounds.emplace_back(from.size(), -1);
      rounds[round][p] = from[p];
      round_of[p] = static_cast<int64_t>(round);
    }
    if (stays) return block;
    ir::ValueId out = permute(block, dim, rounds.front());
    for (size_t round = 1; round < rounds.size(); ++round) {
      const ir::ValueId other = permute(block, dim, rounds[round]);
      const ir::ValueId is_here =
          writer_.compare(by_part(dim, round_of), "EQ", writer_.integer(static_cast<int64_t>(round)));
      out = writer_.create_one("stablehlo.select", {is_here, other, out}, ir::Type(writer_.type(out)));
    }
    return out;
  }

  ir::ValueId fetch(ir::ValueId value, const Window& window) {
    const size_t dim = window.dim;
    const HaloDim& halo = op_.halos[window.operand][dim];
    const bool is_wanted =
        std::any_of(window.rows.begin(), window.rows.end(), [](const HaloRows& rows) { return rows.count > 0; });
    if (!is_wanted) {
      tensor::Dims dims = writer_.type(value).dims();
      const tensor::DType dtype = writer_.type(value).dtype();
      dims[dim] = result_rows(dim);
      return writer_.broadcast(has_filling() ? operands_.back() : writer_.zero({dtype, {}}), dims);
    }
    Gathered all{value, std::vector<int64_t>(static_cast<size_t>(parts(dim)), 0)};
    if (!source(window.operand).sub_axes(dim).empty()) {
      std::optional<Gathered> near = from_neighbours(value, window);
      if (near) {
        all = std::move(*near);
      } else {
        all.value = to_.gather(value, result_.layout.view, dim, sub_axes(dim));
      }
    }
    // The window's offset among the rows; its rows are spaced by the row step.
    const int64_t width = (result_rows(dim) - 1) * std::abs(halo.row_step) + 1;
    std::vector<int64_t> starts;
    std::optional<std::pair<int64_t, int64_t>> range;
    for (int64_t p = 0; p < parts(dim); ++p) {
      const int64_t place = halo.start + p * halo.part_step;
      const int64_t least = std::min(place, place + (result_rows(dim) - 1) * halo.row_step);
      starts.push_back(least - all.base[static_cast<size_t>(p)] * halo.spread);
      if (window.rows[static_cast<size_t>(p)].count == 0) continue;
      if (!range) range.emplace(starts.back(), starts.back());
      range->first = std::min(range->first, starts.back());
      range->second = std::max(range->second, starts.back());
    }
    const int64_t have = (writer_.type(all.value).dims()[dim] - 1) * halo.spread + 1;
    const int64_t low = std::max<int64_t>(0, -range->first);
    const int64_t high = std::max<int64_t>(0, range->second + width - have);
    for (int64_t& start : starts) start = std::clamp(start, range->first, range->second) + low;
    ir::ValueId out = pad(all.value, dim, low, high, halo.spread - 1);
    out = writer_.block(out, dim, by_part(dim, starts), width);
    out = slice(out, dim, 0, width, std::abs(halo.row_step));
    if (halo.row_step < 0) out = reverse(out, dim);
    if (!has_filling() || window.is_full) return out;
    return choose(window, out, writer_.broadcast(operands_.back(), writer_.type(out).dims()));
  }

  [[nodiscard]] bool has_filling() const { return operands_.size() > op_.halos.size(); }

  // `rows` where the operand has rows, `others` elsewhere.
  ir::ValueId choose(const Window& window, ir::ValueId rows, ir::ValueId others) {
    const int64_t count = result_rows(window.dim);
    std::vector<int64_t> begin, end;
    for (const HaloRows& read : window.rows) {
      begin.push_back(read.count == 0 ? count : read.to);
      end.push_back(read.count == 0 ? count : read.to + (read.count - 1) * read.to_step + 1);
    }
    const int64_t step = window.rows.empty() ? 1 : step_of(window);
    const ir::ValueId row = writer_.iota({tensor::DType::kInt64, {count}}, 0);
    const ir::ValueId first = writer_.broadcast(by_part(window.dim, begin), {count});
    const auto both = [&](ir::ValueId left, ir::ValueId right) { return writer_.binary("stablehlo.and", left, right); };
    ir::ValueId is_real = both(writer_.compare(row, "GE", first),
                               writer_.compare(row, "LT", writer_.broadcast(by_part(window.dim, end), {count})));
    if (step > 1) {
      const ir::ValueId behind = writer_.binary("stablehlo.subtract", row, first);
      const ir::ValueId rest =
          writer_.binary("stablehlo.remainder", behind, writer_.broadcast(writer_.integer(step), {count}));
      is_real = both(is_real, writer_.compare(rest, "EQ", writer_.broadcast(writer_.integer(0), {count})));
    }
    const tensor::Dims dims = writer_.type(rows).dims();
    const ir::AttributeList along{{"broadcast_dimensions", ir::int_array_attr({static_cast<int64_t>(window.dim)})}};
    const ir::ValueId everywhere =
        writer_.create_one("stablehlo.broadcast_in_dim", {is_real}, ir::Type::of({tensor::DType::kBool, dims}), along);
    return writer_.create_one("stablehlo.select", {everywhere, rows, others}, ir::Type(writer_.type(rows)));
  }

  static int64_t step_of(const Window& window) {
    for (const HaloRows& read : window.rows) {
      if (read.count > 0) return read.to_step;
    }
    return 1;
  }

  DeviceFunction& to_;
  DeviceWriter& writer_;
  const LocalOp& op_;
  std::span<const ir::ValueId> operands_;
  const ShardedType& result_;
};

}  // namespace

ir::ValueId write_halo(DeviceFunction& to, const LocalOp& op, std::span<const ir::ValueId> operands) {
  return HaloWriter(to, op, operands).run();
}

}  // namespace meshd::partition
