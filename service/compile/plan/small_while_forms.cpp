#include "service/compile/plan/small_while_forms.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "service/compile/plan/local_rewriter.h"
#include "service/kernels/elementwise/lanes/lane_loop.h"
#include "service/ops/kernel_interface.h"
#include "service/partition/local_walk.h"

namespace meshd::compile {
namespace {

using partition::LocalBlock;
using partition::LocalKind;
using partition::LocalProgram;
using partition::ShardedType;
using tensor::Dims;
using tensor::DType;

constexpr int64_t kMostTerms = 8;
constexpr int64_t kMostLoopTerms = 64;  // of all ops of a loop that are written anew
// Elements of arrays that are transposed in front of a loop: so many for each iteration, and altogether.
constexpr int64_t kElementsOfIteration = 64;
constexpr int64_t kMostTransposed = int64_t{1} << 20;
constexpr int64_t kUnknownTrips = 64;

/// The indices of a shape in row-major order, as far as these dims go: the others are 0.
std::vector<Dims> indices_over(const Dims& dims, const std::vector<int64_t>& over) {
  std::vector<Dims> out = {Dims(dims.size(), 0)};
  for (const int64_t dim : over) {
    std::vector<Dims> longer;
    for (const Dims& index : out) {
      for (int64_t i = 0; i < dims[static_cast<size_t>(dim)]; ++i) {
        longer.push_back(index);
        longer.back()[static_cast<size_t>(dim)] = i;
      }
    }
    out = std::move(longer);
  }
  return out;
}

int64_t count_over(const Dims& dims, const std::vector<int64_t>& over) {
  int64_t count = 1;
  for (const int64_t dim : over) count *= dims[static_cast<size_t>(dim)];
  return count;
}

/// What is the same in each iteration of a loop.
class Invariants {
 public:
  Invariants(const LocalProgram& program, const LocalOp& loop) : carried_(carried_values(program, loop)) {
    for (const LocalBlock& block : loop.blocks) {
      for (const LocalOp& op : block.ops) carried_.changing.insert(op.results.begin(), op.results.end());
    }
  }
  /// The value's name in front of the loop; nothing where the loop makes or changes it.
  [[nodiscard]] std::optional<LocalId> name_of(LocalId id) const {
    if (carried_.changing.contains(id)) return std::nullopt;
    const auto found = carried_.outside.find(id);
    return found == carried_.outside.end() ? id : found->second;
  }

 private:
  CarriedValues carried_;
};

class FormWriter {
 public:
  explicit FormWriter(LocalProgram& program) : program_(program) {}

  bool run() {
    walk(program_.body);
    return has_changed_;
  }

 private:
  [[nodiscard]] const ShardedType& type(LocalId id) const { return program_.type(id); }

  void walk(LocalBlock& block) {
    std::vector<LocalOp> made;
    for (LocalOp& op : block.ops) {
      for (LocalBlock& inner : op.blocks) walk(inner);
      if (op.kind == LocalKind::kWhile && may_be_small(op)) rewrite(op, made);
      made.push_back(std::move(op));
    }
    block.ops = std::move(made);
  }

  // ---- what a loop consists of

  [[nodiscard]] bool may_be_small(const LocalOp& loop) {
    const Invariants invariants(program_, loop);
    int64_t terms = 0;
    std::set<LocalId> arrays;
    int64_t transposed = 0;
    bool has_any = false;
    std::vector<const LocalOp*> rest;
    for (const LocalBlock& block : loop.blocks) {
      for (const LocalOp& op : block.ops) {
        if (is_short_product(op) || is_short_reduction(op)) {
          has_any = true;
          terms += terms_of(op);
        } else if (is_column(loop, invariants, op)) {
          has_any = true;
          if (arrays.insert(op.operands[0]).second) transposed += element_count(type(op.operands[0]));
        } else if (!is_small(op)) {
          rest.push_back(&op);
        }
      }
    }
    if (!has_any || terms > kMostLoopTerms || transposed > kMostTransposed) return false;
    // Kernels are made last: that takes time.
    return std::all_of(rest.begin(), rest.end(), [&](const LocalOp* op) { return is_small_step(*op); });
  }

  [[nodiscard]] bool has_few_elements(LocalId id) const { return element_count(type(id)) <= kernels::kBlockLanes; }
  [[nodiscard]] bool has_few_elements(const LocalOp& op) const {
    const auto few = [&](LocalId id) { return has_few_elements(id); };
    return std::all_of(op.operands.begin(), op.operands.end(), few) &&
           std::all_of(op.results.begin(), op.results.end(), few);
  }

  /// Part of a fused loop.
  [[nodiscard]] bool is_small(const LocalOp& op) const {
    if (op.kind == LocalKind::kConstant) return true;
    if (fuse_of(op) == nullptr || !has_few_elements(op)) return false;
    const ops::Fuse& fuse = *fuse_of(op);
    const bool is_one_reduction = fuse.reduce_dims != nullptr && op.results.size() == 1;
    return fuse.read != nullptr || fuse.iota_dim != nullptr || is_one_reduction || is_pointwise(program_, op);
  }

  [[nodiscard]] bool is_small_step(const LocalOp& op) const {
    if (op.kind != LocalKind::kOp || op.def == nullptr) return false;
    const LocalView local(program_, op);
    const ops::Body body = ops::body_of(*op.def, local.view);
    const auto* const kernel = std::get_if<ops::LocalKernel>(&body);
    return kernel != nullptr && kernel->prepare(local.view).small != nullptr;
  }

  [[nodiscard]] bool is_short_product(const LocalOp& op) const {
    if (fuse_of(op) == nullptr || fuse_of(op)->product_dims == nullptr || !has_few_elements(op)) return false;
    const DType dtype = type(op.results[0]).local.dtype;
    const bool has_form = dtype == DType::kFloat32 || dtype == DType::kInt32 || dtype == DType::kUint32;
    const auto is_alike = [&](LocalId id) { return type(id).local.dtype == dtype && is_whole(type(id)); };
    return has_form && is_alike(op.results[0]) && std::all_of(op.operands.begin(), op.operands.end(), is_alike) &&
           has_few_terms(op);
  }

  [[nodiscard]] bool is_short_reduction(const LocalOp& op) const {
    if (fuse_of(op) == nullptr || fuse_of(op)->reduce_dims == nullptr || op.results.size() < 2) return false;
    const auto whole = [&](LocalId id) { return is_whole(type(id)); };
    if (!has_few_elements(op) || !std::all_of(op.operands.begin(), op.operands.end(), whole)) return false;
    return is_pointwise_region(program_, op.regions.at(0)) && has_few_terms(op);
  }

  /// A dynamic_slice of whole columns of an array that does not change in the loop.
  [[nodiscard]] bool is_column(const LocalOp& loop, const Invariants& invariants, const LocalOp& op) const {
    if (op.kind != LocalKind::kOp || op.def == nullptr || op.def->bounded != ops::BoundedForm::kDynamicSlice)
      return false;
    const ShardedType& array = type(op.operands[0]);
    const Dims& window = type(op.results[0]).local.dims;
    if (!is_whole(array) || !is_whole(type(op.results[0])) || !has_few_elements(op.results[0])) return false;
    const int64_t trips = loop.trip_count < 0 ? kUnknownTrips : std::min(loop.trip_count, kMostTransposed);
    if (element_count(array) > std::min(trips * kElementsOfIteration, kMostTransposed)) return false;
    bool is_in_order = true;  // elements of the window follow each other already
    bool is_whole_inside = true;
    for (size_t d = window.size(); d-- > 0;) {
      const bool is_all = window[d] == array.local.dims[d];
      if (!is_all && window[d] != 1) return false;
      if (window[d] != 1 && !is_whole_inside) is_in_order = false;
      is_whole_inside = is_whole_inside && is_all;
    }
    return !is_in_order && invariants.name_of(op.operands[0]).has_value();
  }

  [[nodiscard]] bool has_few_terms(const LocalOp& op) const {
    const int64_t terms = terms_of(op);
    return terms > 0 && terms <= kMostTerms;
  }

  /// Of a product or reduction.
  [[nodiscard]] int64_t terms_of(const LocalOp& op) const {
    const LocalView local(program_, op);
    const ops::Fuse& fuse = *fuse_of(op);
    const bool is_product = fuse.product_dims != nullptr;
    return count_over(type(op.operands[0]).local.dims,
                      is_product ? fuse.product_dims(local.view).lhs_contract : fuse.reduce_dims(local.view));
  }

  // ---- writing

  void rewrite(LocalOp& loop, std::vector<LocalOp>& before) {
    has_changed_ = true;
    transposed_.clear();
    const Invariants invariants(program_, loop);
    for (LocalBlock& block : loop.blocks) {
      std::vector<LocalOp> ops = std::exchange(block.ops, {});
      std::map<LocalId, LocalId> names;
      for (LocalOp& op : ops) {
        for (LocalId& id : op.operands) {
          if (const auto found = names.find(id); found != names.end()) id = found->second;
        }
        location_ = op.location;
        std::vector<LocalId> made;
        if (is_short_product(op))
          made = {write_product(op, block.ops)};
        else if (is_short_reduction(op))
          made = write_reduction(op, block.ops);
        else if (is_column(loop, invariants, op))
          made = {write_column(*invariants.name_of(op.operands[0]), op, before, block.ops)};
        else
          block.ops.push_back(std::move(op));
        for (size_t k = 0; k < made.size(); ++k) names[op.results[k]] = made[k];
      }
      for (LocalId& id : block.results) {
        if (const auto found = names.find(id); found != names.end()) id = found->second;
      }
    }
  }

  LocalId add(LocalOp op, ShardedType type, std::vector<LocalOp>& to) {
    program_.values.push_back({std::move(type), op.name});
    op.results = {static_cast<LocalId>(program_.values.size() - 1)};
    to.push_back(std::move(op));
    return to.back().results[0];
  }
  LocalId add(std::string_view name, std::vector<LocalId> operands, ir::AttributeList attributes, ShardedType type,
              std::vector<LocalOp>& to) {
    return add(make_op(name, std::move(operands), std::move(attributes), location_), std::move(type), to);
  }

  /// A whole value of such dims that varies as `like` does.
  static ShardedType with_dims(const ShardedType& like, const Dims& dims) {
    ShardedType made = like;
    made.local.dims = dims;
    made.logical_dims = dims;
    made.layout.dims.assign(dims.size(), {});
    return made;
  }

  static ShardedType with_dtype(ShardedType type, DType dtype) {
    type.local.dtype = dtype;
    return type;
  }

  /// The elements of a value at `index` in these dims, on the lanes of `result`, whose dim `places[d]` is dim d of the
  /// others.
  LocalId spread(LocalId id, const Dims& index, const std::vector<int64_t>& dims, const std::vector<int64_t>& places,
                 ShardedType result, std::vector<LocalOp>& to) {
    const ShardedType whole = type(id);  // a copy: values are added
    Dims start = index;
    Dims limit = whole.local.dims;
    Dims kept;
    std::vector<int64_t> broadcast;
    for (size_t d = 0; d < limit.size(); ++d) {
      if (std::find(dims.begin(), dims.end(), static_cast<int64_t>(d)) != dims.end()) {
        limit[d] = start[d] + 1;
        continue;
      }
      kept.push_back(limit[d]);
      broadcast.push_back(places[d]);
    }
    Dims sliced = limit;
    for (size_t d = 0; d < limit.size(); ++d) sliced[d] -= start[d];
    if (sliced != whole.local.dims) {
      id = add("stablehlo.slice", {id},
               {{"start_indices", ir::int_array_attr({start.begin(), start.end()})},
                {"limit_indices", ir::int_array_attr({limit.begin(), limit.end()})},
                {"strides", ir::int_array_attr(std::vector<int64_t>(start.size(), 1))}},
               with_dims(whole, sliced), to);
    }
    if (kept.size() != sliced.size()) id = add("stablehlo.reshape", {id}, {}, with_dims(whole, kept), to);
    result.local.dtype = whole.local.dtype;
    if (kept == result.local.dims && std::is_sorted(broadcast.begin(), broadcast.end())) return id;
    return add("stablehlo.broadcast_in_dim", {id}, {{"broadcast_dimensions", ir::int_array_attr(broadcast)}},
               std::move(result), to);
  }

  LocalId write_product(const LocalOp& op, std::vector<LocalOp>& to) {
    const ops::ProductDims dims = op.def->fuse.product_dims(LocalView(program_, op).view);
    const ShardedType result = type(op.results[0]);
    // Where the dims of an operand are in the result.
    int64_t free = static_cast<int64_t>(dims.lhs_batch.size());
    const auto places_of = [&](LocalId id, const std::vector<int64_t>& batch, const std::vector<int64_t>& contract) {
      std::vector<int64_t> places(type(id).rank(), -1);
      for (size_t i = 0; i < batch.size(); ++i) places[static_cast<size_t>(batch[i])] = static_cast<int64_t>(i);
      for (size_t d = 0; d < places.size(); ++d) {
        const bool is_free =
            places[d] < 0 && std::find(contract.begin(), contract.end(), static_cast<int64_t>(d)) == contract.end();
        if (is_free) places[d] = free++;
      }
      return places;
    };
    const std::vector<int64_t> left = places_of(op.operands[0], dims.lhs_batch, dims.lhs_contract);
    const std::vector<int64_t> right = places_of(op.operands[1], dims.rhs_batch, dims.rhs_contract);
    const std::vector<Dims> lhs = indices_over(type(op.operands[0]).local.dims, dims.lhs_contract);
    const std::vector<Dims> rhs = indices_over(type(op.operands[1]).local.dims, dims.rhs_contract);
    std::optional<LocalId> sum;
    for (size_t term = 0; term < lhs.size(); ++term) {
      const LocalId a = spread(op.operands[0], lhs[term], dims.lhs_contract, left, result, to);
      const LocalId b = spread(op.operands[1], rhs[term], dims.rhs_contract, right, result, to);
      const LocalId product = add("stablehlo.multiply", {a, b}, {}, result, to);
      sum = sum ? add("stablehlo.add", {*sum, product}, {}, result, to) : product;
    }
    return *sum;
  }

  std::vector<LocalId> write_reduction(const LocalOp& op, std::vector<LocalOp>& to) {
    const size_t count = op.results.size();
    const std::vector<int64_t> dims = op.def->fuse.reduce_dims(LocalView(program_, op).view);
    const Dims reduced = type(op.operands[0]).local.dims;
    std::vector<int64_t> places;
    int64_t kept = 0;
    for (size_t d = 0; d < reduced.size(); ++d) {
      const bool is_reduced = std::find(dims.begin(), dims.end(), static_cast<int64_t>(d)) != dims.end();
      places.push_back(is_reduced ? -1 : kept++);
    }
    std::vector<int64_t> ascending = dims;
    std::sort(ascending.begin(), ascending.end());
    const ShardedType result = type(op.results[0]);
    std::vector<LocalId> values;
    for (size_t k = 0; k < count; ++k) values.push_back(spread(op.operands[count + k], {}, {}, {}, result, to));
    for (const Dims& index : indices_over(reduced, ascending)) {
      std::vector<LocalId> arguments = values;
      for (size_t k = 0; k < count; ++k) arguments.push_back(spread(op.operands[k], index, dims, places, result, to));
      values = write_region(program_, op.regions[0], arguments, [&](LocalOp made, DType dtype) {
        made.location = location_;
        return add(std::move(made), with_dtype(result, dtype), to);
      });
    }
    return values;
  }

  /// `outside`: the array in front of the loop.
  LocalId write_column(LocalId outside, const LocalOp& op, std::vector<LocalOp>& before, std::vector<LocalOp>& to) {
    const ShardedType array = type(op.operands[0]);
    const ShardedType result = type(op.results[0]);
    std::vector<int64_t> order;  // dims of which one index is taken come first
    for (const bool is_one : {true, false}) {
      for (size_t d = 0; d < array.rank(); ++d) {
        if ((result.local.dims[d] == 1) == is_one) order.push_back(static_cast<int64_t>(d));
      }
    }
    Dims dims;
    Dims window;
    std::vector<LocalId> operands = {-1};
    for (const int64_t d : order) {
      dims.push_back(array.local.dims[static_cast<size_t>(d)]);
      window.push_back(result.local.dims[static_cast<size_t>(d)]);
      operands.push_back(op.operands[1 + static_cast<size_t>(d)]);
    }
    const auto [known, is_new] = transposed_.try_emplace({outside, order}, -1);
    if (is_new) {
      known->second = add("stablehlo.transpose", {outside}, {{"permutation", ir::int_array_attr(order)}},
                          with_dims(array, dims), before);
    }
    operands[0] = known->second;
    const LocalId row =
        add(op.name, std::move(operands), {{"slice_sizes", ir::int_array_attr({window.begin(), window.end()})}},
            with_dims(result, window), to);
    return add("stablehlo.reshape", {row}, {}, result, to);
  }

  LocalProgram& program_;
  std::map<std::pair<LocalId, std::vector<int64_t>>, LocalId> transposed_;  // of a loop: by array and order of its dims
  ir::Location location_;
  bool has_changed_ = false;
};

}  // namespace

std::optional<LocalProgram> write_small_while_forms(const LocalProgram& program, const PlanSettings& settings) {
  const bool is_on = settings.small_while_forms && settings.small_whiles && settings.fuse;
  const bool has_loops =
      is_on && partition::any_op(program.body, [](const LocalOp& op) { return op.kind == LocalKind::kWhile; });
  return has_loops ? run_pass<FormWriter>(program) : std::nullopt;
}

}  // namespace meshd::compile
