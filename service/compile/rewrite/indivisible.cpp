// Which dimensions do not divide: padded ones, and ones that stay replicated in an op whose other tensors are sharded.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "service/compile/explain/explain.h"
#include "service/ir/walk.h"
#include "service/ops/op_def.h"

namespace meshd::compile {
namespace {

// More free axes than this are not tried in all combinations.
constexpr size_t kMostAxes = 10;
constexpr size_t kMostChoices = 3;

std::string list_text(const std::vector<sharding::AxisRef>& axes, const sharding::TensorSharding& like) {
  auto one = sharding::fully_replicated("", like.mesh, 1);
  one.mesh_name = like.mesh_name;
  one.dims[0].axes = axes;
  const std::string text = sharding::to_sdy(one);
  return text.substr(text.rfind('[') + 1, text.rfind(']') - text.rfind('[') - 1);
}

// Axes that no other dimension of the value uses, in mesh order.
std::vector<sharding::AxisRef> free_axes(const sharding::TensorSharding& sharding, size_t dim) {
  std::vector<sharding::AxisRef> out;
  for (size_t a = 0; a < sharding.mesh->axes.size() && out.size() < kMostAxes; ++a) {
    const sharding::AxisRef whole{static_cast<int>(a), 1, 0};
    bool used = false;
    for (size_t d = 0; d < sharding.dims.size(); ++d) {
      if (d == dim) continue;
      for (const sharding::AxisRef& axis : sharding.dims[d].axes)
        used = used || sharding::overlaps(axis, whole, *sharding.mesh);
    }
    if (!used && sharding.mesh->axes[a].size > 1) out.push_back(whole);
  }
  return out;
}

std::vector<Indivisible::Choice> nearest_choices(const sharding::TensorSharding& sharding, size_t dim, int64_t size,
                                                 int64_t ways) {
  const std::vector<sharding::AxisRef> axes = free_axes(sharding, dim);
  std::map<int64_t, std::vector<sharding::AxisRef>> by_ways;  // the fewest axes for each number of parts
  for (size_t subset = 1; subset < size_t{1} << axes.size(); ++subset) {
    std::vector<sharding::AxisRef> chosen;
    int64_t parts = 1;
    for (size_t a = 0; a < axes.size(); ++a) {
      if (subset >> a & 1) {
        chosen.push_back(axes[a]);
        parts *= sharding::axis_size(axes[a], *sharding.mesh);
      }
    }
    if (parts > size || size % parts != 0) continue;
    auto& known = by_ways[parts];
    if (known.empty() || chosen.size() < known.size()) known = chosen;
  }
  std::vector<Indivisible::Choice> out;
  for (const auto& [parts, chosen] : by_ways) out.push_back({list_text(chosen, sharding), parts});
  const auto distance = [&](const Indivisible::Choice& choice) {
    return std::abs(std::log(static_cast<double>(choice.ways) / static_cast<double>(ways)));
  };
  std::stable_sort(out.begin(), out.end(), [&](const auto& a, const auto& b) { return distance(a) < distance(b); });
  if (out.size() > kMostChoices) out.resize(kMostChoices);
  return out;
}

std::vector<int64_t> sizes_next_to(int64_t size, int64_t ways) {
  std::vector<int64_t> out;
  if (size / ways > 0) out.push_back(size / ways * ways);
  out.push_back((size / ways + 1) * ways);
  return out;
}

class PaddingFinder {
 public:
  explicit PaddingFinder(const propagation::Propagated& propagated)
      : propagated_(propagated), main_(propagated.module->main()) {}

  std::vector<Indivisible> run() {
    for (const ir::ValueId id : main_.body.arguments) padded(id, 0);
    ir::walk(main_.body, [&](const ir::Op& op) {
      for (const ir::ValueId id : op.results) padded(id, op.location.line);
      unsharded_beside_sharded(op);
    });
    return std::move(out_);
  }

 private:
  [[nodiscard]] const sharding::TensorSharding* sharding_of(ir::ValueId id) const {
    const auto& found = propagated_.of(id);
    return found && !found->mesh->axes.empty() && main_.type_of(id).is_tensor() &&
                   found->rank() == main_.type_of(id).rank()
               ? &*found
               : nullptr;
  }

  Indivisible& add(ir::ValueId id, int32_t line, size_t dim, int64_t ways, const std::vector<sharding::AxisRef>& axes,
                   const sharding::TensorSharding& sharding) {
    Indivisible made;
    made.value = main_.values[static_cast<size_t>(id)].name;
    made.line = line;
    made.dim = static_cast<int64_t>(dim);
    made.size = main_.type_of(id).dims()[dim];
    made.ways = ways;
    made.axes = list_text(axes, sharding);
    made.nearest = nearest_choices(sharding, dim, made.size, ways);
    made.nearest_sizes = sizes_next_to(made.size, ways);
    out_.push_back(std::move(made));
    return out_.back();
  }

  // A chain of ops propagates an uneven sharding: only the first value of a size and its axes is reported.
  void padded(ir::ValueId id, int32_t line) {
    const auto* sharding = sharding_of(id);
    if (sharding == nullptr) return;
    const tensor::Dims& dims = main_.type_of(id).dims();
    for (size_t d = 0; d < dims.size(); ++d) {
      const int64_t ways = sharding->part_count(static_cast<int64_t>(d));
      if (dims[d] % ways == 0) continue;
      if (known_.emplace(dims[d], list_text(sharding->dims[d].axes, *sharding), -1).second)
        add(id, line, d, ways, sharding->dims[d].axes, *sharding);
    }
  }

  // A dimension of several factors (the merged side of a reshape) is sharded by an axis that does not divide its
  // factor, so the dimension that is this factor alone cannot be sharded the same way.
  void unsharded_beside_sharded(const ir::Op& op) {
    const auto rule = ops::rule_of(ops::op(op.code), ops::OpInstance(main_, op).view);
    if (!rule) return;
    std::vector<std::pair<ir::ValueId, const sharding::TensorFactors*>> tensors;
    for (size_t i = 0; i < op.operands.size(); ++i) tensors.emplace_back(op.operands[i], &rule->operands[i]);
    for (size_t i = 0; i < op.results.size(); ++i) tensors.emplace_back(op.results[i], &rule->results[i]);
    for (const auto& [id, factors] : tensors) {
      const auto* sharding = sharding_of(id);
      if (sharding == nullptr) continue;
      for (size_t d = 0; d < factors->size(); ++d) {
        if ((*factors)[d].size() < 2) continue;
        size_t next = 0;
        const auto& axes = sharding->dims[d].axes;
        for (const int factor : (*factors)[d]) {
          int64_t left = rule->factors[static_cast<size_t>(factor)].size;
          std::vector<sharding::AxisRef> taken;
          int64_t ways = 1;
          bool stuck = false;
          while (next < axes.size() && left > 1) {
            const int64_t size = sharding::axis_size(axes[next], *sharding->mesh);
            taken.push_back(axes[next]);
            ways *= size;
            stuck = left % size != 0;
            if (stuck) break;
            left /= size;
            ++next;
          }
          if (stuck) {
            unsharded_in_others(op, tensors, factor, ways, taken, *sharding);
            break;
          }
        }
      }
    }
  }

  void unsharded_in_others(const ir::Op& op,
                           const std::vector<std::pair<ir::ValueId, const sharding::TensorFactors*>>& tensors,
                           int factor, int64_t ways, const std::vector<sharding::AxisRef>& axes,
                           const sharding::TensorSharding& like) {
    for (const auto& [id, factors] : tensors) {
      // A value without a sharding is replicated over the same mesh.
      const auto* known = sharding_of(id);
      const auto sharding = known != nullptr ? *known
                                             : sharding::fully_replicated(like.mesh_name, like.mesh,
                                                                          static_cast<int64_t>(factors->size()));
      for (size_t d = 0; d < factors->size(); ++d) {
        if ((*factors)[d] != std::vector<int>{factor}) continue;
        if (sharding.dims[d].axes == axes) continue;
        const int64_t size = main_.type_of(id).dims()[d];
        if (size % ways == 0 || !known_.emplace(size, list_text(axes, sharding), id).second) continue;
        const bool is_argument =
            std::find(main_.body.arguments.begin(), main_.body.arguments.end(), id) != main_.body.arguments.end();
        Indivisible& made = add(id, is_argument ? 0 : op.location.line, d, ways, axes, sharding);
        made.is_sharded = false;
        made.op = op.name;
        made.op_line = op.location.line;
      }
    }
  }

  const propagation::Propagated& propagated_;
  const ir::Function& main_;
  std::set<std::tuple<int64_t, std::string, ir::ValueId>> known_;
  std::vector<Indivisible> out_;
};

}  // namespace

std::vector<Indivisible> find_indivisible(const propagation::Propagated& propagated) {
  return PaddingFinder(propagated).run();
}

}  // namespace meshd::compile
