// An explanation as SVG: values from top to bottom, each as a block of its shards, uses as lines on the left, moves in
// red below the op that causes them.
#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "api/codecs/explain/explain_codec.h"
#include "api/codecs/explain/svg.h"
#include "service/core/number_text.h"
#include "service/ir/walk.h"

namespace meshd::api {
namespace {

using compile::ExplainedMove;
using compile::Explanation;

constexpr size_t kMostRows = 400;
constexpr int kRowHeight = 58;
constexpr int kNoteHeight = 18;
constexpr int kBlock = 44;
constexpr int kLeft = 150;
constexpr int kIndent = 24;
constexpr int kWidth = 1100;
constexpr int64_t kMostParts = 16;
constexpr double kGlyphWidth = 8;  // of a monospaced font of 13 pixels

class Picture {
 public:
  explicit Picture(const Explanation& explanation)
      : explanation_(explanation),
        ops_(*explanation.parsed->module),
        main_(explanation.propagated.module->main()),
        rows_of_(main_.values.size(), -1) {
    for (const ExplainedMove& made : explanation.moves)
      moves_[{made.move.location.frame, made.move.location.line}].push_back(&made);
  }

  std::string run() {
    y_ = head_.height;
    for (size_t i = 0; i < main_.body.arguments.size(); ++i)
      row(main_.body.arguments[i], fmt::format("argument {}", i), 0);
    ir::walk(main_.body, [&](const ir::Op& op, std::span<const ir::Op* const> enclosing) {
      return visit(op, static_cast<int>(enclosing.size()));
    });
    if (left_out_ > 0) {
      text(kLeft, y_ + 16, fmt::format("and {} more ops, which are not drawn", left_out_), "note");
      y_ += kRowHeight;
    }
    return framed();
  }

 private:
  // Colours are classes: the system's scheme chooses them, also where the picture is an <img>.
  [[nodiscard]] std::string framed() const {
    constexpr std::string_view kStyle =
        ".meshd-explain .page{fill:#fff}.meshd-explain text{fill:#1c2128}.meshd-explain "
        ".op{fill:#57606a}.meshd-explain "
        ".note{fill:#b3001e}.meshd-explain .head{font-weight:700}.meshd-explain .title{font-weight:700;font-size:16px}"
        ".meshd-explain .use{fill:none;stroke:#6d87a5;stroke-width:1.2}.meshd-explain .edge{stroke:#fff}.meshd-explain "
        ".rule{stroke:#d8dde3}.meshd-explain .sharded{fill:#3b76c4}.meshd-explain "
        ".replicated{fill:#c3c9d1}.meshd-explain "
        ".device{fill:#8fb3e3}@media (prefers-color-scheme:dark){.meshd-explain .page{fill:#14171b}.meshd-explain "
        "text{fill:#e4e7eb}.meshd-explain .op{fill:#a3adb8}.meshd-explain .note{fill:#ff938c}.meshd-explain "
        ".use{stroke:#7f97b3}.meshd-explain .edge{stroke:#14171b}.meshd-explain .rule{stroke:#343b44}.meshd-explain "
        ".sharded{fill:#5b97e6}.meshd-explain .replicated{fill:#4a525c}.meshd-explain .device{fill:#3e6ba6}}";
    const int width = std::max(kWidth, widest_ + kLeft / 3), height = y_ + 20;
    return fmt::format(
               "<svg xmlns='http://www.w3.org/2000/svg' class='meshd-explain' role='img' width='{0}' "
               "height='{1}' "
               "viewBox='0 0 {0} {1}' font-family='monospace' font-size='13'>\n<title>What a program does on a "
               "mesh</title>\n"
               "<desc>{2}</desc>\n<style>{3}</style>\n<rect class='page' width='{0}' height='{1}' "
               "fill='#fff'/>\n",
               width, height, svg_text(head_.description), kStyle) +
           head_.svg + uses_ + out_ + "</svg>\n";
  }

  void text(int x, int y, const std::string& content, std::string_view kind = {}) {
    widest_ = std::max(widest_, x + static_cast<int>(kGlyphWidth * static_cast<double>(content.size())));
    out_ += svg_label(x, y, content, kind);
  }

  // The block of a value: its last two dimensions with their shards; blue when it is sharded.
  void block(int x, int y, ir::ValueId id) {
    const ir::Type& type = main_.type_of(id);
    const auto& sharding = explanation_.propagated.of(id);
    const bool is_sharded =
        sharding && type.is_tensor() && sharding->rank() == type.rank() && !sharding->is_fully_replicated();
    out_ += fmt::format("<rect class='{}' x='{}' y='{}' width='{}' height='{}'/>\n",
                        is_sharded ? "sharded" : "replicated", x, y, kBlock, kBlock);
    if (!is_sharded) return;
    const int64_t rank = type.rank();
    for (int64_t back = 0; back < 2 && back < rank; ++back) {
      const int64_t parts = sharding->part_count(rank - 1 - back),
                    size = type.dims()[static_cast<size_t>(rank - 1 - back)];
      // To scale: shards have ceil(size / parts) rows, the last ones less. Beyond some lines there are as many, evenly.
      const bool is_even = parts > kMostParts || size <= 0;
      const int64_t drawn = std::min(parts, kMostParts),
                    step = is_even ? 1 : size / parts + (size % parts != 0 ? 1 : 0);
      for (int64_t p = 1; p < drawn && (is_even || p <= (size - 1) / step); ++p) {
        const double at = static_cast<double>(kBlock) * static_cast<double>(p) * static_cast<double>(step) /
                          static_cast<double>(is_even ? drawn : size);
        const double low = back == 0 ? x + at : x, high = back == 0 ? x + at : x + kBlock;
        const double top = back == 0 ? y : y + at, bottom = back == 0 ? y + kBlock : y + at;
        out_ += fmt::format("<line class='edge' x1='{:.1f}' y1='{:.1f}' x2='{:.1f}' y2='{:.1f}'/>\n", low, top, high,
                            bottom);
      }
    }
  }

  void row(ir::ValueId id, const std::string& what, int depth) {
    const int x = kLeft + depth * kIndent;
    rows_of_[static_cast<size_t>(id)] = y_ + kBlock / 2;
    block(x, y_, id);
    const auto& sharding = explanation_.propagated.of(id);
    const propagation::Origin& origin = explanation_.propagated.origins[static_cast<size_t>(id)];
    const std::string& name = main_.values[static_cast<size_t>(id)].name;
    text(x + kBlock + 12, y_ + 17, (name.empty() ? "" : name + "  ") + what + "  " + ir::to_string(main_.type_of(id)));
    text(x + kBlock + 12, y_ + 36,
         (sharding ? sharding::to_sdy(*sharding) : std::string("replicated")) + "   by " + origin_text(origin, ops_),
         "op");
    y_ += kRowHeight;
    ++count_;
  }

  void use(ir::ValueId from, int to) {
    const int start = rows_of_[static_cast<size_t>(from)];
    if (start < 0) return;
    const int bend = kLeft - 12 - std::min(kLeft - 24, (to - start) / 6);
    uses_ += fmt::format("<path class='use' d='M{} {} C{} {} {} {} {} {}'/>\n", kLeft - 2, start, bend, start, bend, to,
                         kLeft - 2, to);
  }

  // What is in the regions of an op without results is not drawn either.
  ir::WalkResult visit(const ir::Op& op, int depth) {
    if (count_ >= kMostRows) left_out_ += 1;
    if (count_ >= kMostRows || op.results.empty()) return ir::WalkResult::kSkip;
    for (const ir::ValueId id : op.operands) use(id, y_ + kBlock / 2);
    for (const ir::ValueId id : op.results) row(id, fmt::format("{} line {}", op.name, op.location.line), depth);
    if (const auto found = moves_.find({op.location.frame, op.location.line}); found != moves_.end()) {
      for (const ExplainedMove* made : found->second) {
        text(kLeft + depth * kIndent + kBlock + 12, y_ - 4,
             fmt::format("{} {} of {}, {} bytes a device", partition::name(made->move.kind), made->axes,
                         explanation_.local->value(made->move.from).name, core::grouped_number(made->move.bytes)),
             "note");
        y_ += kNoteHeight;
      }
      moves_.erase(found);
    }
    return ir::WalkResult::kAdvance;
  }

  const Explanation& explanation_;
  const OpsByLine ops_;
  const ir::Function& main_;
  std::vector<int> rows_of_;
  std::map<std::pair<int32_t, int32_t>, std::vector<const ExplainedMove*>> moves_;
  std::string out_;
  std::string uses_;
  const ExplanationHead head_ = explanation_head(explanation_, kLeft / 3, kWidth);
  int y_ = 0;
  int widest_ = 0;
  size_t count_ = 0;
  size_t left_out_ = 0;
};

}  // namespace

std::string explanation_svg(const Explanation& explanation) { return Picture(explanation).run(); }

}  // namespace meshd::api
