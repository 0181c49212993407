#include "api/codecs/explain/layout_picture.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <string_view>
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

constexpr int64_t kMargin = 12, kTitle = 18, kSummaryWidth = 720, kLegend = 44;
// The longer side of a panel; more where labels need it. A shard without elements is drawn as a dashed sliver.
constexpr double kLongSide = 360, kMostOblong = 4;
constexpr int64_t kLeastSide = 14, kMostLeastSide = 30, kLeastHeight = 20, kFontSize = 12;
constexpr double kGlyph = 0.62;  // width of a character of a monospaced font, in its size

// Offsets of rows or columns: to scale of the shards' extents, so that the last one of an uneven dimension is shorter;
// at least `least`, for a label.
std::vector<int64_t> offsets(const std::vector<int64_t>& extents, double pixels_per_element, int64_t least) {
  std::vector<int64_t> out{0};
  for (const int64_t extent : extents) {
    const auto pixels = static_cast<int64_t>(std::llround(static_cast<double>(extent) * pixels_per_element));
    out.push_back(out.back() + std::max(pixels, least));
  }
  return out;
}

struct Scale {
  std::vector<int64_t> x, y;  ///< of columns and rows, and the end
  bool is_to_scale = true;    ///< no side was widened or drawn shorter, by more than a twentieth
};

// Whether rows and columns with elements have as many pixels as this scale says.
bool follows(const std::vector<int64_t>& offsets, const std::vector<int64_t>& extents, double pixels_per_element) {
  constexpr double kPixel = 1, kTwentieth = 0.05;  // pixels are whole
  for (size_t i = 0; i < extents.size(); ++i) {
    if (extents[i] == 0) continue;
    const double wanted = static_cast<double>(extents[i]) * pixels_per_element;
    const auto drawn = static_cast<double>(offsets[i + 1] - offsets[i]);
    if (std::abs(drawn - wanted) > kPixel + kTwentieth * wanted) return false;
  }
  return true;
}

// All panels have the same rows and columns of shards.
Scale scale_of(const Panel& panel, size_t label_length) {
  std::vector<int64_t> heights, widths;
  int64_t tall = 0, wide = 0;
  for (size_t r = 0; r < panel.rows; ++r) {
    const IndexRange& range = panel.cells[r * panel.columns].rows;
    heights.push_back(range.stop - range.start);
    tall += heights.back();
  }
  for (size_t c = 0; c < panel.columns; ++c) {
    const IndexRange& range = panel.cells[c].columns;
    widths.push_back(range.stop - range.start);
    wide += widths.back();
  }
  const double ratio =
      std::clamp(static_cast<double>(std::max<int64_t>(tall, 1)) / static_cast<double>(std::max<int64_t>(wide, 1)),
                 1 / kMostOblong, kMostOblong);
  const double height = ratio < 1 ? kLongSide * ratio : kLongSide, width = ratio < 1 ? kLongSide : kLongSide / ratio;
  const double label = std::min(120.0, kGlyph * kFontSize * static_cast<double>(label_length) + 8);
  const auto per_element = [](double side, int64_t extent, int64_t full, double least) {
    return std::max(side / static_cast<double>(std::max<int64_t>(extent, 1)),
                    least / static_cast<double>(std::max<int64_t>(full, 1)));
  };
  const double across = per_element(width, wide, widths.front(), label);
  const double down = per_element(height, tall, heights.front(), static_cast<double>(kLeastHeight));
  Scale out{offsets(widths, across, std::clamp(static_cast<int64_t>(label), kLeastSide, kMostLeastSide)),
            offsets(heights, down, kLeastSide)};
  // A side of one element has no scale.
  const bool is_line = tall <= 1 || wide <= 1;
  out.is_to_scale = follows(out.x, widths, is_line ? across : down) && follows(out.y, heights, is_line ? down : across);
  return out;
}

void append_cell(std::string& out, const Scale& scale, size_t row, size_t column, int64_t top, const Cell& cell) {
  const int64_t x = kMargin + scale.x[column], y = top + scale.y[row];
  const int64_t width = scale.x[column + 1] - scale.x[column], height = scale.y[row + 1] - scale.y[row];
  const bool is_empty = cell.rows.start == cell.rows.stop || cell.columns.start == cell.columns.stop;
  // Colours go round by the first device, so that neighbours differ. Labels become smaller where a cell is.
  const int64_t hue = std::stoll("0" + cell.devices) * 47 % 360;
  const double fits =
      static_cast<double>(width - 2) / (kGlyph * static_cast<double>(std::max<size_t>(cell.devices.size(), 1)));
  out += fmt::format(
      "<rect class='{}' x='{}' y='{}' width='{}' height='{}' fill='{}' stroke='#333'{}><title>{}, "
      "{}</title></rect><text class='label' x='{}' y='{}' font-size='{:.1f}' text-anchor='middle' "
      "dominant-baseline='central'>{}</text>\n",
      is_empty ? "empty" : "shard", x, y, width, height, is_empty ? "none" : fmt::format("hsl({},60%,85%)", hue),
      is_empty ? " stroke-dasharray='3 2'" : "", range_text(cell.rows), range_text(cell.columns), x + width / 2,
      y + height / 2, std::clamp(fits, 2.0, static_cast<double>(kFontSize)), cell.devices);
}

// The frame: names for those who cannot see it, both colour schemes, what boxes mean.
std::string framed(const std::string& summary, const std::string& body, int64_t width, int64_t height,
                   std::string_view legend) {
  std::string out = fmt::format(
      "<svg xmlns='http://www.w3.org/2000/svg' class='meshd-layout' role='img' width='{0}' height='{1}' "
      "viewBox='0 0 {0} {1}' font-family='monospace' font-size='{2}'>\n<title>Sharding of an array</title>"
      "<desc>{3}</desc>\n<style>.meshd-layout .page{{fill:#fff}}.meshd-layout text{{fill:#1c2128}}.meshd-layout "
      ".label{{fill:#111}}@media (prefers-color-scheme:dark){{.meshd-layout .page{{fill:#14171b}}.meshd-layout "
      "text{{fill:#e4e7eb}}.meshd-layout .shard+.label{{fill:#111}}.meshd-layout .empty{{stroke:#a3adb8}}.meshd-layout "
      ".empty+.label{{fill:#e4e7eb}}}}</style>\n<g><rect class='page' width='{0}' height='{1}' "
      "fill='#fff'/></g>\n{4}",
      width, height, kFontSize, summary, body);
  if (!legend.empty()) {
    out += fmt::format("<g class='legend'><text x='{0}' y='{1}'>{2}</text><text x='{0}' y='{3}'>{4}</text></g>\n",
                       kMargin, height - kLegend + 16, summary, height - kLegend + 32, legend);
  }
  return out + "</svg>\n";
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
  if (positions > kMaxDrawnPositions) {
    const std::string said = undrawn_text(layout, positions);
    const int64_t height = 2 * kMargin + kTitle;
    return framed(said, fmt::format("<text x='{}' y='{}'>{}</text>\n", kMargin, kMargin + kTitle - 5, said),
                  kSummaryWidth, height, {});
  }
  const std::vector<Panel> panels = panels_of(layout);
  size_t label_length = 1;
  for (const Panel& panel : panels) {
    for (const Cell& cell : panel.cells) label_length = std::max(label_length, cell.devices.size());
  }
  // Least width: the legend's.
  const std::string summary =
      fmt::format("[{}] in {} shards of [{}] on {} devices", fmt::join(layout.global_dims, ", "), layout.shard_count,
                  fmt::join(layout.shard_dims, ", "), positions);
  int64_t width = 2 * kMargin + static_cast<int64_t>(kGlyph * kFontSize * 62), y = kMargin;
  std::string body;
  bool is_to_scale = true;
  for (const Panel& panel : panels) {
    if (!panel.title.empty()) {
      y += kTitle;
      body += fmt::format("<text x='{}' y='{}'>[{}]</text>\n", kMargin, y - 5, panel.title);
    }
    const Scale scale = scale_of(panel, label_length);
    is_to_scale = is_to_scale && scale.is_to_scale;
    for (size_t r = 0; r < panel.rows; ++r) {
      for (size_t c = 0; c < panel.columns; ++c) append_cell(body, scale, r, c, y, panel.cells[r * panel.columns + c]);
    }
    y += scale.y.back() + kMargin;
    width = std::max(width, 2 * kMargin + scale.x.back());
  }
  return framed(summary, body, width, y + kLegend,
                is_to_scale ? "box: a shard, to scale, with its devices; dashed: no elements"
                            : "box: a shard with its devices, narrow ones widened; dashed: no elements");
}

}  // namespace meshd::api
