// One walk over the ops, in the order in which they run; then the changes are made on a copy of the program.
//
// 1. Constant folding: an op of constants becomes a constant (constant_folding.h), and so does a comparison of an
//    integer or bool with itself.
// 2. What is one of its operands: a select by a constant, a copy, x | 0, and b & true.
// 3. Common subexpressions, by value numbering: values have one number where the same op, with the same attributes and
//    types, was applied to operands of the same numbers, in this block or in one around it. The later op is dropped.
//    But a large result of a pointwise op is cheap to compute in each loop that reads it, and would be stored if two
//    loops read one value; so it keeps its op, and so does what only reads it by an indexing map. They have the number
//    all the same: what is computed of them, a sum or a product, is shared.
//
// An optimization_barrier says that values are to be computed again (jax.checkpoint, to spare memory). Partition leaves
// nothing of it, so programs that have one keep their subexpressions.
//
// Example: layer norm in JAX's words, m = sum(x) / n; d = x - m; m' = sum(x) / n; d' = x - m'; v = sum(d' * d') / k;
// y = d / sqrt(where(k > 0, v, nan) + e), and k = n - 0 is computed. Out: k is a constant and the select is v; m' is m;
// d' stays, in the loop that sums its squares. Two sums instead of three, and no step for scalars.
#include "service/compile/plan/simplify.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "service/compile/plan/constant_folding.h"
#include "service/compile/plan/plan_builder.h"
#include "service/ir/walk.h"
#include "service/kernels/elementwise/lanes/lane_loop.h"
#include "service/kernels/elementwise/scalar_op.h"
#include "service/ops/kernel_interface.h"
#include "service/ops/op_def.h"
#include "service/ops/reduction/region_text.h"
#include "service/partition/dead_ops.h"
#include "service/program/print.h"

namespace meshd::compile {
namespace {

using ir::DenseAttr;
using partition::LocalBlock;
using partition::LocalKind;
using partition::LocalProgram;
using partition::ShardedType;

constexpr int64_t kSharedBytes = 64 * 1024;  // a pointwise result that is stored sooner than computed twice
constexpr size_t kMostCompared = 1024;       // bytes of a constant that is compared with others

bool has_barrier(const LocalProgram& program) {
  bool found = false;
  if (program.function == nullptr) return false;
  ir::walk(program.function->body, [&](const ir::Op& op) {
    found = found || ops::role_of(ops::op(op.code).body) == ops::Structural::kOptimizationBarrier;
  });
  return found;
}

bool has_uncompared(const ir::AttributeList& attributes) {
  return std::any_of(attributes.begin(), attributes.end(), [](const ir::NamedAttribute& entry) {
    const auto* const dense = entry.value.as<DenseAttr>();
    return dense != nullptr && dense->bytes->size() > kMostCompared;
  });
}

class Simplifier {
 public:
  explicit Simplifier(const LocalProgram& program)
      : program_(program),
        folder_(program),
        shares_(!has_barrier(program)),
        names_(program.values.size()),
        numbers_(program.values.size()) {
    std::iota(names_.begin(), names_.end(), 0);
    std::iota(numbers_.begin(), numbers_.end(), 0);
  }

  std::optional<LocalProgram> run() {
    look_at(program_.body);
    if (!has_changed_) return std::nullopt;
    LocalProgram out = program_;
    change(out.body);
    for (partition::LocalParameter& result : out.results) result.value = name(result.value);
    partition::drop_dead_ops(out);
    return out;
  }

 private:
  LocalId& name(LocalId id) { return names_[static_cast<size_t>(id)]; }
  LocalId& number(LocalId id) { return numbers_[static_cast<size_t>(id)]; }

  // ---- what changes

  void look_at(const LocalBlock& block) {
    std::vector<std::string> found;
    for (const LocalOp& op : block.ops) {
      loops_ += op.kind == LocalKind::kWhile ? 1 : 0;
      for (const LocalBlock& inner : op.blocks) look_at(inner);
      loops_ -= op.kind == LocalKind::kWhile ? 1 : 0;
      if (op.kind == LocalKind::kConstant) {
        if (const auto* const dense = ir::find(op.attributes, "value")->as<DenseAttr>()) {
          if (dense->bytes->size() <= kMostCompared) folder_.note(op.results[0], *dense);
        }
      } else if (op.results.size() == 1 && is_operand(op)) {
        continue;
      }
      const LocalOp* const constant = folded(op);
      if (shares_) share(constant != nullptr ? *constant : op, found);
    }
    for (const std::string& key : found) first_.erase(key);
  }

  [[nodiscard]] bool is_short_in_loop(const LocalOp& op) const {
    return loops_ > 0 && tensor::element_count(program_.type(op.results[0]).local.dims) <= kernels::kBlockLanes;
  }

  // Step 1: the constant that takes the op's place, or null.
  const LocalOp* folded(const LocalOp& op) {
    if (op.kind != LocalKind::kOp || op.def == nullptr) return nullptr;
    // Fused loops count as they go. A short iota in a loop is a constant, so that the loop's steps may be small ones.
    if (op.def->fuse.iota_dim != nullptr && !is_short_in_loop(op)) return nullptr;
    operands_.clear();
    for (const LocalId id : op.operands) operands_.push_back(name(id));
    std::optional<DenseAttr> value = folder_.fold(op, operands_);
    if (!value) value = of_itself(op);
    if (!value) return nullptr;
    folder_.note(op.results[0], *value);
    LocalOp made;
    made.kind = LocalKind::kConstant;
    made.name = "constant";
    made.results = op.results;
    made.location = op.location;
    ir::set(made.attributes, "value", ir::Attribute{*std::move(value)});
    has_changed_ = true;
    return &folded_.emplace(op.results[0], std::move(made)).first->second;
  }

  // What a comparison of an integer or bool with itself gives; nothing for other ops.
  std::optional<DenseAttr> of_itself(const LocalOp& op) {
    using kernels::ScalarOp;
    if (op.operands.size() != 2 || name(op.operands[0]) != name(op.operands[1])) return std::nullopt;
    const tensor::DType dtype = program_.type(op.operands[0]).local.dtype;
    if (!tensor::is_integer(dtype) && dtype != tensor::DType::kBool) return std::nullopt;
    const std::optional<ScalarOp> scalar = scalar_op_of(op);
    if (!scalar || *scalar < ScalarOp::kCompareEq || *scalar > ScalarOp::kCompareGe) return std::nullopt;
    const bool holds =
        *scalar == ScalarOp::kCompareEq || *scalar == ScalarOp::kCompareLe || *scalar == ScalarOp::kCompareGe;
    return ir::splat_attr(program_.type(op.results[0]).local, {holds ? std::byte{1} : std::byte{0}});
  }

  // The scalar operation that an op applies element by element; nothing where it is none.
  std::optional<kernels::ScalarOp> scalar_op_of(const LocalOp& op) const {
    if (op.kind != LocalKind::kOp || op.def == nullptr) return std::nullopt;
    const auto* const math = std::get_if<ops::ScalarMath>(&op.def->body);
    if (math == nullptr || math->emit != nullptr) return std::nullopt;
    const LocalView local(program_, op);
    return math->op_of != nullptr ? math->op_of(local.view) : math->op;
  }

  // Step 2.
  bool is_operand(const LocalOp& op) {
    const std::optional<kernels::ScalarOp> scalar = scalar_op_of(op);
    if (!scalar) return false;
    std::optional<size_t> operand;
    switch (*scalar) {
      case kernels::ScalarOp::kSelect:
        if (const DenseAttr* const chosen = folder_.find(name(op.operands[0])); chosen && chosen->bytes->size() == 1)
          operand = chosen->bytes->front() != std::byte{0} ? 1 : 2;
        break;
      case kernels::ScalarOp::kCopy:
        operand = 0;
        break;
      case kernels::ScalarOp::kOr:
        operand = beside(op, std::byte{0});
        break;
      case kernels::ScalarOp::kAnd:
        if (program_.type(op.results[0]).local.dtype == tensor::DType::kBool) operand = beside(op, std::byte{1});
        break;
      default:
        break;
    }
    if (!operand || !same_type(op.operands[*operand], op.results[0])) return false;
    name(op.results[0]) = name(op.operands[*operand]);
    number(op.results[0]) = number(op.operands[*operand]);
    has_changed_ = true;
    return true;
  }

  // The operand beside a constant all of whose bytes are this one.
  std::optional<size_t> beside(const LocalOp& op, std::byte byte) {
    for (const size_t k : {0, 1}) {
      const DenseAttr* const constant = folder_.find(name(op.operands[1 - k]));
      if (constant == nullptr) continue;
      const auto is_it = [&](std::byte each) { return each == byte; };
      if (std::all_of(constant->bytes->begin(), constant->bytes->end(), is_it)) return k;
    }
    return std::nullopt;
  }

  [[nodiscard]] bool same_type(LocalId a, LocalId b) const {
    const ShardedType& one = program_.type(a);
    const ShardedType& other = program_.type(b);
    return one.local == other.local && one.logical_dims == other.logical_dims && one.layout == other.layout &&
           one.varies == other.varies;
  }

  // Step 3. `found`: keys that the block adds.
  void share(const LocalOp& op, std::vector<std::string>& found) {
    const std::optional<std::string> key = key_of(op);
    if (!key) return;
    const auto [first, is_new] = first_.try_emplace(*key, &op);
    if (is_new) {
      found.push_back(*key);
      return;
    }
    const LocalOp& earlier = *first->second;
    for (size_t i = 0; i < op.results.size(); ++i) number(op.results[i]) = number(earlier.results[i]);
    if (!is_worth_sharing(op, earlier)) return;
    for (size_t i = 0; i < op.results.size(); ++i) name(op.results[i]) = name(earlier.results[i]);
    has_changed_ = true;
  }

  bool is_worth_sharing(const LocalOp& op, const LocalOp& earlier) {
    if (op.kind != LocalKind::kOp && op.kind != LocalKind::kMask) return true;
    if (tensor::byte_count(program_.type(op.results[0]).local) <= kSharedBytes) return true;
    if (op.kind == LocalKind::kMask) return false;
    if (op.def->fuse.read != nullptr) return name(op.operands[0]) == name(earlier.operands[0]);
    const LocalView local(program_, op);
    return !std::holds_alternative<ops::ScalarMath>(ops::body_of(*op.def, local.view));
  }

  // What makes two ops the same; nothing for ops that are not compared.
  std::optional<std::string> key_of(const LocalOp& op) {
    switch (op.kind) {
      case LocalKind::kOp:
        if (!is_pure(program_, op)) return std::nullopt;
        break;
      case LocalKind::kConstant:
      case LocalKind::kMask:
      case LocalKind::kReshard:
      case LocalKind::kReduceShards:
        break;
      default:
        return std::nullopt;
    }
    if (has_uncompared(op.attributes)) return std::nullopt;
    const std::string op_name = op.kind == LocalKind::kOp ? op.name : std::string();
    std::string key = fmt::format("{} {} {} {}", static_cast<int>(op.kind), op_name, op.reduced, op.reads_neighbours);
    for (const LocalId id : op.operands) key += fmt::format(",{}", number(id));
    key += program::print(op.attributes);
    for (const LocalId id : op.results) append_type(key, program_.type(id));
    for (const ir::Region& region : op.regions) {
      const std::optional<std::string> text = ops::region_text(*program_.function, region);
      if (!text) return std::nullopt;
      key += *text;
    }
    return key;
  }

  static void append_type(std::string& key, const ShardedType& type) {
    key += fmt::format(":{}[{}][{}]{}.{}", static_cast<int>(type.local.dtype), fmt::join(type.local.dims, ","),
                       fmt::join(type.logical_dims, ","), type.layout.view, type.varies);
    for (const std::vector<int>& sub_axes : type.layout.dims) key += fmt::format("({})", fmt::join(sub_axes, ","));
  }

  // ---- the changed program

  void change(LocalBlock& block) {
    for (LocalId& id : block.results) id = name(id);
    for (LocalOp& op : block.ops) {
      for (LocalBlock& inner : op.blocks) change(inner);
      for (LocalId& id : op.operands) id = name(id);
      const auto constant = op.results.empty() ? folded_.end() : folded_.find(op.results[0]);
      if (constant != folded_.end()) op = constant->second;
    }
  }

  const LocalProgram& program_;
  ConstantFolder folder_;
  const bool shares_;
  std::vector<LocalId> names_;     // of each value: the value that takes its place
  std::vector<LocalId> numbers_;   // of each value: the first that is the same
  std::vector<LocalId> operands_;  // of the op that is looked at, by their names
  std::unordered_map<std::string, const LocalOp*> first_;
  std::map<LocalId, LocalOp> folded_;  // by result
  int loops_ = 0;                      // around the op that is looked at
  bool has_changed_ = false;
};

}  // namespace

std::optional<LocalProgram> simplify(const LocalProgram& program, const PlanSettings& settings) {
  if (!settings.simplify) return std::nullopt;
  return Simplifier(program).run();
}

}  // namespace meshd::compile
