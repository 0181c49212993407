#include "service/compile/plan/unroll_whiles.h"

#include <algorithm>
#include <cstddef>
#include <unordered_map>
#include <utility>
#include <vector>

#include "service/compile/plan/local_rewriter.h"

namespace meshd::compile {
namespace {

using partition::LocalBlock;
using partition::LocalKind;
using partition::LocalProgram;

constexpr int64_t kMostUnrolledTrips = 8;
constexpr int64_t kMostUnrolledOps = 512;  // of all iterations

class Unroller {
 public:
  explicit Unroller(LocalProgram& program) : program_(program) {}

  bool run() {
    unroll(program_.body);
    for (partition::LocalParameter& result : program_.results) result.value = name_of(names_, result.value);
    return has_changed_;
  }

 private:
  using Names = std::unordered_map<LocalId, LocalId>;

  [[nodiscard]] bool is_unrolled(const LocalOp& op) const {
    if (op.kind != LocalKind::kWhile || op.trip_count < 0 || op.trip_count > kMostUnrolledTrips) return false;
    const LocalBlock& body = op.blocks[1];
    if (static_cast<int64_t>(body.ops.size()) * op.trip_count > kMostUnrolledOps) return false;
    return std::all_of(body.ops.begin(), body.ops.end(), [&](const LocalOp& inner) { return is_fused(inner); });
  }

  // What becomes part of fused loops, or is read by them.
  [[nodiscard]] bool is_fused(const LocalOp& op) const {
    if (op.kind == LocalKind::kConstant || op.kind == LocalKind::kMask) return true;
    if (op.kind != LocalKind::kOp || op.def == nullptr) return false;
    return op.def->fuse.read != nullptr || op.def->fuse.iota_dim != nullptr || is_pointwise(program_, op);
  }

  static LocalId name_of(const Names& names, LocalId id) {
    const auto found = names.find(id);
    return found == names.end() ? id : found->second;
  }

  // What a loop gave has the name of what its last iteration made.
  void rename(LocalOp& op) const {
    for (LocalId& id : op.operands) id = name_of(names_, id);
  }

  void unroll(LocalBlock& block) {
    std::vector<LocalOp> before = std::move(block.ops);
    block.ops.clear();
    for (LocalOp& op : before) {
      rename(op);
      for (LocalBlock& inner : op.blocks) unroll(inner);
      if (is_unrolled(op))
        write_iterations(op, block.ops);
      else
        block.ops.push_back(std::move(op));
    }
    for (LocalId& id : block.results) id = name_of(names_, id);
  }

  void write_iterations(const LocalOp& loop, std::vector<LocalOp>& to) {
    const LocalBlock& body = loop.blocks[1];
    std::vector<LocalId> carried = loop.operands;
    for (int64_t i = 0; i < loop.trip_count; ++i) {
      Names own;
      for (size_t k = 0; k < body.arguments.size(); ++k) own[body.arguments[k]] = carried[k];
      for (const LocalOp& op : body.ops) {
        LocalOp copy = op;
        for (LocalId& id : copy.operands) id = name_of(own, id);
        for (LocalId& id : copy.results) {
          const auto made = static_cast<LocalId>(program_.values.size());
          program_.values.push_back(program_.values[static_cast<size_t>(id)]);
          id = own[id] = made;
        }
        to.push_back(std::move(copy));
      }
      for (size_t k = 0; k < carried.size(); ++k) carried[k] = name_of(own, body.results[k]);
    }
    for (size_t k = 0; k < carried.size(); ++k) names_[loop.results[k]] = carried[k];
    has_changed_ = true;
  }

  LocalProgram& program_;
  Names names_;
  bool has_changed_ = false;
};

}  // namespace

std::optional<LocalProgram> unroll_whiles(const LocalProgram& program, const PlanSettings& settings) {
  if (!settings.unroll_whiles) return std::nullopt;
  const bool has_any = partition::any_op(program.body, [](const LocalOp& op) {
    return op.kind == LocalKind::kWhile && op.trip_count >= 0 && op.trip_count <= kMostUnrolledTrips;
  });
  if (!has_any) return std::nullopt;
  return run_pass<Unroller>(program);
}

}  // namespace meshd::compile
