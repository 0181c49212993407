#include "api/codecs/layout_picture.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

namespace meshd::api {
namespace {

using sharding::DeviceShard;
using sharding::IndexRange;
using sharding::Layout;

// One block of the last two dimensions.
struct Cell {
  std::string devices;
  IndexRange rows, columns;
};

struct Panel {
  std::string title;  // ranges of the dimensions before the last two
  size_t rows = 1, columns = 1;
  std::vector<Cell> cells;  // row-major
};

std::string range_text(const IndexRange& range) { return fmt::format("{}:{}", range.start, range.stop); }

std::vector<Panel> panels_of(const Layout& layout) {
  const size_t rank = layout.part_counts.size();
  const size_t rows = rank >= 2 ? static_cast<size_t>(layout.part_counts[rank - 2]) : 1;
  const size_t columns = rank >= 1 ? static_cast<size_t>(layout.part_counts[rank - 1]) : 1;
  std::vector<std::string> holders(static_cast<size_t>(layout.shard_count));
  for (const DeviceShard& device_shard : layout.device_shards) {
    std::string& text = holders[static_cast<size_t>(device_shard.shard)];
    text += fmt::format("{}{}", text.empty() ? "" : ",", device_shard.device);
  }
  std::vector<Panel> out;
  for (int64_t shard = 0; shard < layout.shard_count; ++shard) {
    const std::vector<IndexRange> index = layout.shard_index(shard);
    if (out.empty() || out.back().cells.size() == rows * columns) {
      out.push_back({{}, rows, columns, {}});
      for (size_t d = 0; d + 2 < rank; ++d) out.back().title += (d ? ", " : "") + range_text(index[d]);
    }
    Cell cell{holders[static_cast<size_t>(shard)], {0, 1}, {0, 1}};
    if (rank >= 2) cell.rows = index[rank - 2];
    if (rank >= 1) cell.columns = index[rank - 1];
    out.back().cells.push_back(std::move(cell));
  }
  return out;
}

void append_rule(std::string& out, size_t columns, size_t width) {
  for (size_t c = 0; c < columns; ++c) out += "+" + std::string(width, '-');
  out += "+\n";
}

constexpr int64_t kCellWidth = 88, kCellHeight = 40, kMargin = 12, kTitle = 18, kSummaryWidth = 720;

void append_rect(std::string& out, int64_t x, int64_t y, const Cell& cell) {
  // Colours go round by the first device, so that neighbours differ.
  const int64_t hue = std::stoll("0" + cell.devices) * 47 % 360;
  out += fmt::format(
      "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"hsl({},60%,85%)\" stroke=\"#333\"><title>{}, "
      "{}</title></rect><text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
      x, y, kCellWidth, kCellHeight, hue, range_text(cell.rows), range_text(cell.columns), x + kCellWidth / 2,
      y + kCellHeight / 2 + 4, cell.devices);
}

}  // namespace

std::string undrawn_text(const sharding::Layout& layout, int64_t position_count) {
  return fmt::format("{} blocks on {} devices; pictures are drawn for at most {} devices", layout.shard_count,
                     position_count, kMaxDrawnPositions);
}

std::string picture_text(const sharding::Layout& layout) {
  const auto positions = static_cast<int64_t>(layout.device_shards.size());
  if (positions > kMaxDrawnPositions) return undrawn_text(layout, positions) + "\n";
  std::string out;
  for (const Panel& panel : panels_of(layout)) {
    if (!panel.title.empty()) out += "[" + panel.title + "]\n";
    size_t width = 3;
    for (const Cell& cell : panel.cells) width = std::max(width, cell.devices.size() + 2);
    for (size_t r = 0; r < panel.rows; ++r) {
      append_rule(out, panel.columns, width);
      for (size_t c = 0; c < panel.columns; ++c) {
        const std::string& devices = panel.cells[r * panel.columns + c].devices;
        const size_t before = (width - devices.size()) / 2;
        out += "|" + std::string(before, ' ') + devices + std::string(width - before - devices.size(), ' ');
      }
      out += "|\n";
    }
    append_rule(out, panel.columns, width);
  }
  return out;
}

std::string picture_svg(const sharding::Layout& layout) {
  const auto positions = static_cast<int64_t>(layout.device_shards.size());
  const bool is_drawn = positions <= kMaxDrawnPositions;
  const std::vector<Panel> panels = is_drawn ? panels_of(layout) : std::vector<Panel>();
  int64_t width = 2 * kMargin, y = kMargin;
  std::string body;
  if (!is_drawn) {
    width = kSummaryWidth;
    y += kTitle;
    body = fmt::format(R"(<text x="{}" y="{}">{}</text>)"
                       "\n",
                       kMargin, y - 5, undrawn_text(layout, positions));
  }
  for (const Panel& panel : panels) {
    if (!panel.title.empty()) {
      y += kTitle;
      body += fmt::format(R"(<text x="{}" y="{}">[{}]</text>)"
                          "\n",
                          kMargin, y - 5, panel.title);
    }
    for (size_t r = 0; r < panel.rows; ++r) {
      for (size_t c = 0; c < panel.columns; ++c) {
        append_rect(body, kMargin + static_cast<int64_t>(c) * kCellWidth, y, panel.cells[r * panel.columns + c]);
      }
      y += kCellHeight;
    }
    width = std::max(width, 2 * kMargin + static_cast<int64_t>(panel.columns) * kCellWidth);
    y += kMargin;
  }
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" font-family=\"monospace\" "
      "font-size=\"12\">\n{}</svg>\n",
      width, y, body);
}

}  // namespace meshd::api
