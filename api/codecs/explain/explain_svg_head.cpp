// The head of an explanation's picture: a legend, each mesh with its axes, totals of a device.
#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "api/codecs/explain/explain_codec.h"
#include "api/codecs/explain/html.h"
#include "api/codecs/explain/svg.h"
#include "service/core/number_text.h"

namespace meshd::api {
namespace {

constexpr int kHeadLine = 20;
constexpr int kSign = 14;
constexpr int64_t kMostCells = 16;

std::string head_rect(int x, int y, int width, int height, std::string_view kind) {
  return fmt::format("<rect class='{}' x='{}' y='{}' width='{}' height='{}'/>\n", kind, x, y, width, height);
}

int append_legend(std::string& out, int x, int y) {
  out += svg_label(x, y + 12, "Legend", "head");
  struct LegendRow {
    std::string_view kind, text;
  };
  constexpr LegendRow kSigns[] = {
      {"sharded", "a value that is sharded, with the bounds of its shards in the last two dimensions"},
      {"replicated", "a value that every device has whole"}};
  y += kHeadLine;
  for (const LegendRow& sign : kSigns) {
    out += head_rect(x, y, kSign, kSign, sign.kind) + svg_label(x + 2 * kSign, y + 12, sign.text);
    y += kHeadLine;
  }
  out += fmt::format("<path class='use' d='M{} {}h{}'/>\n", x, y + 7, kSign) +
         svg_label(x + 2 * kSign, y + 12, "a use: from where a value is made to the op that reads it");
  y += kHeadLine;
  out += svg_label(x, y + 12, "red", "note") +
         svg_label(x + 2 * kSign + 8, y + 12,
                   "a move between devices, below the op that causes it, with the bytes that a device receives");
  return y + kHeadLine;
}

// The first two axes as rows and columns, the others by name and size.
int append_mesh(std::string& out, const ir::NamedMesh& named, int x, int y) {
  const mesh::Mesh& mesh = *named.mesh;
  std::string axes;
  for (const mesh::Axis& axis : mesh.axes)
    axes += fmt::format("{}{} = {}", axes.empty() ? "" : ", ", axis.name, axis.size);
  out += svg_label(x, y + 12, fmt::format("Mesh @{}: {}", named.name, axes.empty() ? "one device" : axes), "head");
  y += kHeadLine + 18;
  const int64_t rows = mesh.axes.empty() ? 1 : mesh.axes[0].size,
                columns = mesh.axes.size() < 2 ? 1 : mesh.axes[1].size;
  const auto drawn_rows = static_cast<int>(std::min(rows, kMostCells));
  const auto drawn_columns = static_cast<int>(std::min(columns, kMostCells));
  const int left = x + 90;
  if (!mesh.axes.empty()) out += svg_label(x, y + 12, fmt::format("{} ({})", mesh.axes[0].name, rows), "op");
  if (mesh.axes.size() > 1) out += svg_label(left, y - 5, fmt::format("{} ({})", mesh.axes[1].name, columns), "op");
  for (int r = 0; r < drawn_rows; ++r) {
    for (int c = 0; c < drawn_columns; ++c)
      out += head_rect(left + c * (kSign + 2), y + r * (kSign + 2), kSign, kSign, "device");
  }
  if (drawn_columns < columns) out += svg_label(left + drawn_columns * (kSign + 2) + 4, y + 12, "...", "op");
  y += drawn_rows * (kSign + 2);
  if (drawn_rows < rows) {
    out += svg_label(left, y + 10, "...", "op");
    y += kHeadLine;
  }
  return y + 10;
}

int append_totals(std::string& out, const compile::Explanation& explanation, int x, int y, std::string& description) {
  std::vector<std::string> lines;
  if (explanation.plan != nullptr) {
    lines.push_back(core::grouped_number(explanation.flops()) + " operations");
    lines.push_back(core::grouped_number(explanation.plan->device_peak_bytes()) + " bytes at the peak of memory");
    lines.push_back(core::grouped_number(explanation.moved_bytes()) + " bytes received");
  } else if (explanation.unplanned) {
    lines.push_back("not planned: " + explanation.unplanned->detail());
  }
  std::map<std::string_view, std::pair<int64_t, int64_t>> kinds;  // how many, bytes
  for (const compile::ExplainedMove& made : explanation.moves) {
    auto& [count, bytes] = kinds[partition::name(made.move.kind)];
    count += 1;
    bytes += made.move.bytes;
  }
  for (const auto& [kind, sums] : kinds) {
    lines.push_back(fmt::format("  {} x {}: {} bytes", sums.first, kind, core::grouped_number(sums.second)));
  }
  const bool has_loops = explanation.plan != nullptr && explanation.plan->has_loops;
  out += svg_label(x, y + 12, has_loops ? "One device, loops counted once" : "One device", "head");
  y += kHeadLine;
  for (const std::string& line : lines) {
    out += svg_label(x, y + 12, line);
    description += line + "; ";
    y += kHeadLine;
  }
  return y;
}

}  // namespace

std::string svg_text(std::string_view text) {
  std::string out(text);
  std::replace_if(
      out.begin(), out.end(), [](unsigned char c) { return c < 0x20 || c > 0x7e; }, '?');
  return escaped_html(out);
}

std::string svg_label(int x, int y, std::string_view text, std::string_view kind) {
  return fmt::format("<text x='{}' y='{}'{} xml:space='preserve'>{}</text>\n", x, y,
                     kind.empty() ? "" : fmt::format(" class='{}'", kind), svg_text(text));
}

ExplanationHead explanation_head(const compile::Explanation& explanation, int left, int width) {
  ExplanationHead out;
  const std::string name =
      fmt::format("{} on {} device{}", explanation.parsed->id, core::grouped_number(explanation.device_count),
                  explanation.device_count == 1 ? "" : "s");
  out.svg += svg_label(left, 34, name, "title");
  out.description = name + "; ";
  const int top = 54;
  int y = top;
  for (const ir::NamedMesh& named : explanation.propagated.module->meshes) y = append_mesh(out.svg, named, left, y) + 8;
  const int totals_end = append_totals(out.svg, explanation, width / 2, top, out.description);
  y = append_legend(out.svg, left, std::max(y, totals_end) + 8);
  out.svg += fmt::format("<path class='rule' d='M{} {}H{}'/>\n", left, y + 8, width - left);
  out.height = y + 28;
  return out;
}

}  // namespace meshd::api
