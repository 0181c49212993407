#include "service/propagation/strategies/factor_propagation.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace meshd::propagation {
namespace {

/// The axes that all tensors with this factor can agree on, conflicts with other factors ignored.
AxisList common_axes(const Projection& projection, int factor, Direction direction, const mesh::Mesh& mesh) {
  AxisList axes;
  if (direction == Direction::kNone) return axes;
  Growth growth = Growth::kAllowed;
  const auto visit = [&](const std::vector<TensorProjection>& tensors) {
    for (const TensorProjection& tensor : tensors) {
      if (const FactorAxes* entry = tensor.find(factor)) axes = agree(axes, entry->axes, growth, mesh);
    }
  };
  const bool from_results = direction == Direction::kBackward;
  visit(from_results ? projection.results : projection.operands);
  // The side that axes flow to may only object, not add.
  if (direction != Direction::kBoth) growth = Growth::kForbidden;
  visit(from_results ? projection.operands : projection.results);
  return axes;
}

/// How much of `axis` this tensor's factor can take, behind axes that shard it `parts_before` ways already.
std::optional<AxisRef> fit_in_factor(const AxisRef& axis, const TensorProjection& tensor, const FactorAxes& factor,
                                     int64_t parts_before, int64_t factor_size, const mesh::Mesh& mesh) {
  std::optional<AxisRef> fit = prefix_beside(axis, tensor.replicated, mesh);
  if (fit) fit = prefix_beside(*fit, tensor.unreduced, mesh);
  if (!fit) return std::nullopt;
  const auto has_it = [&](const AxisRef& own) { return contains(own, *fit, mesh); };
  if (std::any_of(factor.axes.begin(), factor.axes.end(), has_it)) return fit;
  if (!factor.closed && factor.overflow.empty()) {
    if (factor.minor_most) return fit;
    if (factor_size % parts_before == 0) {
      const int64_t size = sharding::axis_size(*fit, mesh);
      const int64_t common = std::gcd(factor_size / parts_before, size);
      if (common == size) return fit;
      if (common != 1) return AxisRef{fit->axis, fit->pre, common};
    }
  }
  if (!factor.axes.empty() && is_prefix(factor.axes.back(), *fit, mesh)) return factor.axes.back();
  return std::nullopt;
}

/// How much of `axis` no other factor of this tensor uses.
std::optional<AxisRef> fit_beside_factors(const AxisRef& axis, const TensorProjection& tensor, int factor,
                                          const mesh::Mesh& mesh) {
  std::optional<AxisRef> fit = axis;
  for (const FactorAxes& other : tensor.factors) {
    if (other.factor == factor) continue;
    fit = prefix_beside(*fit, other.overflow, mesh);
    if (fit) fit = prefix_beside(*fit, other.axes, mesh);
    if (!fit) return std::nullopt;
  }
  return fit;
}

/// Truncates a list at the first axis that does not fit; `fit(axis, parts_before)` is the part of it that does.
template <typename Fit>
void truncate(AxisList& axes, const mesh::Mesh& mesh, Fit&& fit) {
  int64_t parts_before = 1;
  for (size_t i = 0; i < axes.size(); ++i) {
    const std::optional<AxisRef> kept = fit(axes[i], parts_before);
    if (!kept) return axes.resize(i);
    if (*kept != axes[i]) {
      axes[i] = *kept;
      return axes.resize(i + 1);
    }
    parts_before *= sharding::axis_size(*kept, mesh);
  }
}

/// Axes that this tensor's factor grows to; empty where it stays as it is.
AxisList grown_axes(const TensorProjection& tensor, int factor, const AxisList& wanted, int64_t factor_size,
                    const mesh::Mesh& mesh) {
  const FactorAxes* entry = tensor.find(factor);
  if (entry == nullptr) return {};
  AxisList axes = wanted;
  truncate(axes, mesh, [&](const AxisRef& axis, int64_t parts_before) {
    return fit_in_factor(axis, tensor, *entry, parts_before, factor_size, mesh);
  });
  if (prefix_status(entry->axes, axes, mesh) != PrefixStatus::kStrict) return {};
  truncate(axes, mesh, [&](const AxisRef& axis, int64_t) { return fit_beside_factors(axis, tensor, factor, mesh); });
  return axes;
}

bool expand(TensorProjection& tensor, int factor, AxisList axes, const mesh::Mesh& mesh) {
  FactorAxes* entry = tensor.find(factor);
  if (entry == nullptr || prefix_status(entry->axes, axes, mesh) != PrefixStatus::kStrict) return false;
  entry->axes = std::move(axes);
  return true;
}

/// The largest tensor that has all axes of a factor already.
struct Source {
  int64_t size = -1;
  int64_t index = -1;
};

std::vector<Source> sources_of(const Projection& projection, const sharding::FactorRule& rule,
                               const std::vector<AxisList>& axes, const mesh::Mesh& mesh) {
  std::vector<Source> sources(rule.factors.size());
  int64_t index = 0;
  const auto visit = [&](const TensorProjection& tensor) {
    int64_t size = 1;
    for (const FactorAxes& entry : tensor.factors) size *= rule.factors[static_cast<size_t>(entry.factor)].size;
    for (const FactorAxes& entry : tensor.factors) {
      const AxisList& wanted = axes[static_cast<size_t>(entry.factor)];
      Source& source = sources[static_cast<size_t>(entry.factor)];
      if (wanted.empty() || size <= source.size) continue;
      if (prefix_status(wanted, entry.axes, mesh) != PrefixStatus::kNone) source = {size, index};
    }
    ++index;
  };
  for (const TensorProjection& tensor : projection.operands) visit(tensor);
  for (const TensorProjection& tensor : projection.results) visit(tensor);
  return sources;
}

/// Order of the factors: larger source tensor; for elementwise ops the more sharded one; earlier source; earlier
/// factor.
std::vector<int> by_preference(const std::vector<Source>& sources, const std::vector<AxisList>& axes,
                               bool is_elementwise, const mesh::Mesh& mesh) {
  std::vector<int> order(sources.size());
  std::iota(order.begin(), order.end(), 0);
  const auto key = [&](int factor) {
    const Source& source = sources[static_cast<size_t>(factor)];
    const int64_t parts = is_elementwise ? size_of(axes[static_cast<size_t>(factor)], mesh) : 0;
    return std::tuple(-source.size, -parts, source.index, factor);
  };
  std::sort(order.begin(), order.end(), [&](int a, int b) { return key(a) < key(b); });
  return order;
}

/// An axis that the result refuses is not worth spreading to the other operands.
void stay_within_results(const Projection& projection, int factor, AxisList& axes, const mesh::Mesh& mesh) {
  for (const TensorProjection& result : projection.results) {
    const FactorAxes* entry = result.find(factor);
    if (entry && prefix_status(entry->axes, axes, mesh) == PrefixStatus::kStrict) axes = entry->axes;
  }
}

}  // namespace

Grown grow(Projection& projection, const sharding::FactorRule& rule, const std::vector<Direction>& directions,
           bool is_elementwise, const mesh::Mesh& mesh) {
  Grown grown{std::vector<bool>(projection.operands.size()), std::vector<bool>(projection.results.size())};
  std::vector<AxisList> axes;
  for (size_t i = 0; i < rule.factors.size(); ++i) {
    axes.push_back(common_axes(projection, static_cast<int>(i), directions[i], mesh));
  }
  if (std::all_of(axes.begin(), axes.end(), [](const AxisList& list) { return list.empty(); })) return grown;
  const std::vector<int> order = by_preference(sources_of(projection, rule, axes, mesh), axes, is_elementwise, mesh);
  const auto grow_tensor = [&](TensorProjection& tensor, bool is_operand) {
    bool any = false;
    for (const int factor : order) {
      const size_t index = static_cast<size_t>(factor);
      AxisList wanted = grown_axes(tensor, factor, axes[index], rule.factors[index].size, mesh);
      if (wanted.empty()) continue;
      if (is_operand && is_elementwise) stay_within_results(projection, factor, wanted, mesh);
      any |= expand(tensor, factor, std::move(wanted), mesh);
    }
    return any;
  };
  for (size_t i = 0; i < projection.results.size(); ++i) grown.results[i] = grow_tensor(projection.results[i], false);
  for (size_t i = 0; i < projection.operands.size(); ++i) grown.operands[i] = grow_tensor(projection.operands[i], true);
  return grown;
}

}  // namespace meshd::propagation
