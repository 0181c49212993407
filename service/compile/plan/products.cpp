// Two rewrites of a local program, on a copy of it.
//
// Transposes (PlanSettings::fold_transposes): kernels of products read either order of a matrix, so that a transpose
// next to one is a pass over memory for nothing (XLA's transpose folding).
//   1. A product of transpose(x) reads x where its kernel can read x in place (Fuse::of_transposed).
//   2. transpose(product) becomes the product of the operands in the other order, where nothing else reads the product
//      and the transpose does no more than exchange rows and columns (Fuse::as_transposed).
//
// Loops (PlanSettings::hoist_products): a product in the body of a `while` whose operands do not change there is made
// in front of it, once (XLA's while loop invariant code motion, for products alone). What it is made from goes along.
// So does an operand of a product that changes, as scaled weights are. Only what has no effect is moved, and only what
// is no larger than what it is made from in front of the loop, or small, and of operands 16 MiB altogether: it lives as
// long as the loop.
//
// Example, a step of gradient descent: g = dot(x, d), contracting the rows of both, 784x1024 elements; t =
// transpose(g); w - 0.1 t. Out: t = dot(d, x); g has neither step nor memory.
#include "service/compile/plan/products.h"

#include <algorithm>
#include <set>
#include <vector>

#include "service/compile/plan/local_rewriter.h"
#include "service/compile/plan/plan_builder.h"
#include "service/core/checked_math.h"

namespace meshd::compile {
namespace {

using partition::LocalBlock;
using partition::LocalKind;
using partition::LocalProgram;

constexpr int64_t kSmallBytes = int64_t{1} << 20;
constexpr int64_t kMostOperandBytes = int64_t{16} << 20;  // of a loop, that are not products
constexpr size_t kMostOperandOps = 64;                    // that one of them is made by

bool is_product(const LocalOp& op) { return fuse_of(op) != nullptr && fuse_of(op)->product_dims != nullptr; }

bool is_transpose(const LocalOp& op) { return fuse_of(op) != nullptr && fuse_of(op)->is_transpose; }

class ProductRewriter {
 public:
  ProductRewriter(LocalProgram& program, const PlanSettings& settings)
      : program_(program), settings_(settings), reads_(program.values.size(), 0) {}

  bool run() {
    if (settings_.hoist_products) hoist_in(program_.body);
    if (settings_.fold_transposes) {
      partition::for_each_use(program_.body, [&](LocalId id) { ++reads_[static_cast<size_t>(id)]; });
      fold_in(program_.body);
    }
    return has_changed_;
  }

 private:
  // ---- transposes

  // What defines an operand, of the ops that are passed on the way.
  struct Definitions {
    std::map<LocalId, LocalOp> transposes;
    std::map<LocalId, LocalOp> products;
  };

  void fold_in(LocalBlock& block) {
    Definitions outside = definitions_;
    for (LocalOp& op : block.ops) {
      if (is_product(op)) read_through_transposes(op);
      if (is_transpose(op)) become_product(op);
      for (LocalBlock& inner : op.blocks) fold_in(inner);
      if (is_product(op)) definitions_.products.insert_or_assign(op.results[0], op);
      if (is_transpose(op)) definitions_.transposes.insert_or_assign(op.results[0], op);
    }
    definitions_ = std::move(outside);
  }

  void read_through_transposes(LocalOp& op) {
    for (size_t operand = 0; operand < op.operands.size() && operand < 2; ++operand) {
      while (true) {
        const auto found = definitions_.transposes.find(op.operands[operand]);
        if (found == definitions_.transposes.end()) break;
        const LocalOp& transpose = found->second;
        LocalOp made = op;
        made.operands[operand] = transpose.operands[0];
        const LocalView local(program_, made);
        std::optional<ir::AttributeList> attributes =
            op.def->fuse.of_transposed(local.view, operand, ir::ints(transpose.attributes, "permutation"));
        if (!attributes) break;
        --reads_[static_cast<size_t>(op.operands[operand])];
        ++reads_[static_cast<size_t>(transpose.operands[0])];
        made.attributes = *std::move(attributes);
        op = std::move(made);
        has_changed_ = true;
      }
    }
  }

  void become_product(LocalOp& transpose) {
    const auto found = definitions_.products.find(transpose.operands[0]);
    if (found == definitions_.products.end() || reads_[static_cast<size_t>(transpose.operands[0])] != 1) return;
    const LocalOp& product = found->second;
    const LocalView local(program_, product);
    std::optional<ir::AttributeList> attributes =
        product.def->fuse.as_transposed(local.view, ir::ints(transpose.attributes, "permutation"));
    if (!attributes) return;
    LocalOp made = product;
    std::swap(made.operands[0], made.operands[1]);
    made.attributes = *std::move(attributes);
    made.results = transpose.results;
    for (const LocalId id : made.operands) ++reads_[static_cast<size_t>(id)];
    transpose = std::move(made);
    has_changed_ = true;
  }

  // ---- loops

  // From the innermost loop outwards, so that a product may leave several.
  void hoist_in(LocalBlock& block) {
    for (size_t i = 0; i < block.ops.size(); ++i) {
      for (LocalBlock& inner : block.ops[i].blocks) hoist_in(inner);
      if (block.ops[i].kind != LocalKind::kWhile) continue;
      std::vector<LocalOp> moved = take_invariants(block.ops[i]);
      if (moved.empty()) continue;
      has_changed_ = true;
      const size_t count = moved.size();
      block.ops.insert(block.ops.begin() + static_cast<std::ptrdiff_t>(i), std::make_move_iterator(moved.begin()),
                       std::make_move_iterator(moved.end()));
      i += count;
    }
  }

  std::vector<LocalOp> take_invariants(LocalOp& loop) {
    LocalBlock& body = loop.blocks[1];
    if (std::none_of(body.ops.begin(), body.ops.end(), is_product)) return {};
    auto [changing, outside] = carried_values(program_, loop);
    std::map<LocalId, size_t> makers;  // ops that could be moved, by result
    for (size_t i = 0; i < body.ops.size(); ++i) {
      const LocalOp& op = body.ops[i];
      const bool may_move =
          is_pure(program_, op) && std::none_of(op.operands.begin(), op.operands.end(),
                                                [&, &changes = changing](LocalId id) { return changes.contains(id); });
      for (const LocalId id : op.results) {
        if (may_move) {
          makers[id] = i;
        } else {
          changing.insert(id);
        }
      }
    }
    std::set<size_t> taken;
    int64_t operand_bytes = 0;
    for (const LocalOp& op : body.ops) {
      if (!is_product(op)) continue;
      const auto product = makers.find(op.results[0]);
      if (product != makers.end() && is_worth_keeping(op)) {
        take(body, makers, product->second, taken);
        continue;
      }
      for (const LocalId id : op.operands) {
        const auto maker = makers.find(id);
        if (maker == makers.end() || taken.contains(maker->second) || !is_computed(body.ops[maker->second])) continue;
        const int64_t bytes = tensor::byte_count(program_.type(id).local);
        const int64_t read = outside_bytes(body, makers, maker->second);
        if (read == 0 || bytes > std::max(read, kSmallBytes)) continue;
        if (operand_bytes + bytes > kMostOperandBytes) continue;
        operand_bytes += bytes;
        take(body, makers, maker->second, taken);
      }
    }
    std::vector<LocalOp> moved;
    std::vector<LocalOp> rest;
    for (size_t i = 0; i < body.ops.size(); ++i) {
      if (!taken.contains(i)) {
        rest.push_back(std::move(body.ops[i]));
        continue;
      }
      moved.push_back(std::move(body.ops[i]));
      for (LocalId& id : moved.back().operands) {
        if (const auto name = outside.find(id); name != outside.end()) id = name->second;
      }
    }
    body.ops = std::move(rest);
    return moved;
  }

  // The op, and what it is made from inside of the body.
  static void take(const LocalBlock& body, const std::map<LocalId, size_t>& makers, size_t op,
                   std::set<size_t>& taken) {
    std::vector<size_t> open = {op};
    while (!open.empty()) {
      const size_t at = open.back();
      open.pop_back();
      if (!taken.insert(at).second) continue;
      for (const LocalId id : body.ops[at].operands) {
        if (const auto maker = makers.find(id); maker != makers.end()) open.push_back(maker->second);
      }
    }
  }

  /// Bytes of the values in front of the loop that the op is made from; 0 where it takes many ops.
  [[nodiscard]] int64_t outside_bytes(const LocalBlock& body, const std::map<LocalId, size_t>& makers,
                                      size_t op) const {
    std::set<size_t> inside = {op};
    std::set<LocalId> outside;
    std::vector<size_t> open = {op};
    while (!open.empty()) {
      const size_t at = open.back();
      open.pop_back();
      for (const LocalId id : body.ops[at].operands) {
        const auto maker = makers.find(id);
        if (maker == makers.end())
          outside.insert(id);
        else if (inside.insert(maker->second).second)
          open.push_back(maker->second);
      }
      if (inside.size() > kMostOperandOps) return 0;
    }
    int64_t bytes = 0;
    for (const LocalId id : outside) bytes += tensor::byte_count(program_.type(id).local);
    return bytes;
  }

  /// An elementwise op or a transpose: it takes a pass over memory in each iteration.
  [[nodiscard]] bool is_computed(const LocalOp& op) const { return is_pointwise(program_, op) || is_transpose(op); }

  bool is_worth_keeping(const LocalOp& op) const {
    int64_t read = 0;
    for (const LocalId id : op.operands) read += tensor::byte_count(program_.type(id).local);
    const int64_t made = tensor::byte_count(program_.type(op.results[0]).local);
    return made <= std::max(read, kSmallBytes);
  }

  LocalProgram& program_;
  const PlanSettings& settings_;
  std::vector<int64_t> reads_;  // of each value
  Definitions definitions_;
  bool has_changed_ = false;
};

}  // namespace

std::optional<LocalProgram> rewrite_products(const LocalProgram& program, const PlanSettings& settings) {
  // Most programs are not copied.
  const bool has_transposes = settings.fold_transposes && partition::any_op(program.body, is_transpose);
  const bool has_loops = settings.hoist_products && partition::any_op(program.body, [](const LocalOp& op) {
                           return op.kind == LocalKind::kWhile;
                         });
  if ((!has_transposes && !has_loops) || !partition::any_op(program.body, is_product)) return std::nullopt;
  return run_pass<ProductRewriter>(program, settings);
}

}  // namespace meshd::compile
