// An explanation as SVG: values from top to bottom, each as a block of its shards, uses as lines on the left, moves in
// red below the op that causes them.
#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <map>

#include "api/codecs/explain_codec.h"
#include "api/codecs/html.h"
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

std::string escaped(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c > 0x7e; }, '?');
  return escaped_html(text);
}

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f", value);
  return text;
}

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
    for (size_t i = 0; i < main_.body.arguments.size(); ++i)
      row(main_.body.arguments[i], fmt::format("argument {}", i), 0);
    ir::walk(main_.body, [&](const ir::Op& op, std::span<const ir::Op* const> enclosing) {
      return visit(op, static_cast<int>(enclosing.size()));
    });
    if (left_out_ > 0) {
      text(kLeft, y_ + 16, fmt::format("and {} more ops, which are not drawn", left_out_), "note");
      y_ += kRowHeight;
    }
    std::string head =
        fmt::format(R"(<svg xmlns="http://www.w3.org/2000/svg" width="{}" height="{}" viewBox="0 0 {} {}" )"
                    R"(font-family="monospace" font-size="13">)"
                    "\n",
                    kWidth, y_ + 20, kWidth, y_ + 20);
    head +=
        "<style>text{fill:#222}.op{fill:#555}.note{fill:#b00020;font-size:12px}.use{fill:none;stroke:#9ab;"
        "stroke-width:1.2}.edge{stroke:#fff;stroke-width:1}</style>\n"
        "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n";
    return head + uses_ + out_ + "</svg>\n";
  }

 private:
  void text(int x, int y, const std::string& content, const char* kind = nullptr) {
    out_ += fmt::format(R"(<text x="{}" y="{}"{}>{}</text>)"
                        "\n",
                        x, y, kind != nullptr ? R"( class=")" + std::string(kind) + R"(")" : "", escaped(content));
  }

  // The block of a value: its last two dimensions with their shards; blue when it is sharded.
  void block(int x, int y, ir::ValueId id) {
    const ir::Type& type = main_.type_of(id);
    const auto& sharding = explanation_.propagated.of(id);
    const bool is_sharded =
        sharding && type.is_tensor() && sharding->rank() == type.rank() && !sharding->is_fully_replicated();
    out_ += fmt::format(R"(<rect x="{}" y="{}" width="{}" height="{}" fill="{}"/>)"
                        "\n",
                        x, y, kBlock, kBlock, is_sharded ? "#3b76c4" : "#c9ced6");
    if (!is_sharded) return;
    const int64_t rank = type.rank();
    for (int64_t back = 0; back < 2 && back < rank; ++back) {
      const int64_t parts = std::min(sharding->part_count(rank - 1 - back), kMostParts);
      for (int64_t p = 1; p < parts; ++p) {
        const double at = static_cast<double>(kBlock) * static_cast<double>(p) / static_cast<double>(parts);
        const std::string low = number(back == 0 ? x + at : x), high = number(back == 0 ? x + at : x + kBlock);
        const std::string top = number(back == 0 ? y : y + at), bottom = number(back == 0 ? y + kBlock : y + at);
        out_ += R"(<line class="edge" x1=")" + low + R"(" y1=")" + top + R"(" x2=")" + high + R"(" y2=")" + bottom +
                "\"/>\n";
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
    uses_ += fmt::format(R"(<path class="use" d="M{} {} C{} {} {} {} {} {}"/>)"
                         "\n",
                         kLeft - 2, start, bend, start, bend, to, kLeft - 2, to);
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
                         explanation_.local->value(made->move.from).name, made->move.bytes),
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
  int y_ = 20;
  size_t count_ = 0;
  size_t left_out_ = 0;
};

}  // namespace

std::string explanation_svg(const Explanation& explanation) { return Picture(explanation).run(); }

}  // namespace meshd::api
