#include "service/partition/lower/ruled/factor_choice.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>

namespace meshd::partition {
namespace {

// Ops of more operands than this do not try the layout of every one of them.
constexpr size_t kMostTensorsTried = 8;

// What one tensor would give to its factors: dims' sub-axes handed out major first, each factor taking what divides it.
struct Offer {
  int factor = 0;
  std::vector<int> sub_axes;
  double weight = 0;
  size_t op_tensor = 0;
};

// True when every dimension that has the factor has it alone, so that an uneven partition is valid.
bool stands_alone(const sharding::FactorRule& rule, int factor) {
  const auto alone = [&](const sharding::TensorFactors& tensor) {
    return std::all_of(tensor.begin(), tensor.end(), [&](const std::vector<int>& dim) {
      return dim.size() <= 1 || std::find(dim.begin(), dim.end(), factor) == dim.end();
    });
  };
  return std::all_of(rule.operands.begin(), rule.operands.end(), alone) &&
         std::all_of(rule.results.begin(), rule.results.end(), alone);
}

void offer_dim(const sharding::FactorRule& rule, const sharding::MeshView& view, const std::vector<int>& factors,
               const std::vector<int>& sub_axes, double weight, size_t op_tensor, std::vector<Offer>& offers) {
  size_t next = 0;
  for (const int factor : factors) {
    int64_t left = rule.factors[static_cast<size_t>(factor)].size;
    const bool alone = factors.size() == 1;
    Offer offer{factor, {}, weight, op_tensor};
    while (next < sub_axes.size()) {
      const int64_t size = view.sub_axis_sizes[static_cast<size_t>(sub_axes[next])];
      if (!alone && left % size != 0) break;
      if (!alone && left == 1) break;
      offer.sub_axes.push_back(sub_axes[next++]);
      left = alone ? left : left / size;
    }
    if (!offer.sub_axes.empty()) offers.push_back(offer);
    if (!alone && left != 1) return;  // a minor factor is sharded only behind a fully sharded major one
  }
}

FactorSubAxes choose(const sharding::FactorRule& rule, std::span<const OpTensor> op_tensors,
                     std::span<const sharding::MeshView> views, const std::vector<bool>& unsharded,
                     sharding::SubAxisSet taken, std::optional<size_t> first) {
  FactorSubAxes choice{0, std::vector<std::vector<int>>(rule.factors.size())};
  const size_t operand_count = rule.operands.size();
  const auto factors_of = [&](size_t op_tensor) -> const sharding::TensorFactors& {
    return op_tensor < operand_count ? rule.operands[op_tensor] : rule.results[op_tensor - operand_count];
  };

  // One view for the op: that of the largest sharded tensor; where none is sharded, that of the result.
  double best = -1;
  for (const OpTensor& op_tensor : op_tensors) {
    const double weight = std::accumulate(op_tensor.dims.begin(), op_tensor.dims.end(), 1.0, std::multiplies<>());
    if (op_tensor.layout.mask() != 0 && weight > best) {
      best = weight;
      choice.view = op_tensor.layout.view;
    }
  }
  if (best < 0) {
    if (!op_tensors.empty())
      choice.view = op_tensors[operand_count < op_tensors.size() ? operand_count : 0].layout.view;
    return choice;
  }
  const sharding::MeshView& view = views[static_cast<size_t>(choice.view)];

  std::vector<Offer> offers;
  for (size_t s = 0; s < op_tensors.size(); ++s) {
    if (op_tensors[s].layout.view != choice.view) continue;
    const double weight =
        std::accumulate(op_tensors[s].dims.begin(), op_tensors[s].dims.end(), 1.0, std::multiplies<>());
    const sharding::TensorFactors& factors = factors_of(s);
    for (size_t d = 0; d < factors.size() && d < op_tensors[s].layout.dims.size(); ++d) {
      offer_dim(rule, view, factors[d], op_tensors[s].layout.dims[d], weight, s, offers);
    }
  }
  // Equal offers of several tensors count together.
  std::vector<double> support(offers.size(), 0);
  for (size_t i = 0; i < offers.size(); ++i) {
    for (const Offer& other : offers) {
      if (other.factor == offers[i].factor && other.sub_axes == offers[i].sub_axes) support[i] += other.weight;
    }
  }
  for (size_t i = 0; first && i < offers.size(); ++i) {
    if (offers[i].op_tensor == *first) support[i] = std::numeric_limits<double>::infinity();
  }
  std::vector<size_t> order(offers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return support[a] > support[b]; });

  sharding::SubAxisSet used = taken;
  for (const size_t i : order) {
    const auto factor = static_cast<size_t>(offers[i].factor);
    if (unsharded[factor] || !choice.sub_axes[factor].empty()) continue;
    std::vector<int> sub_axes;
    int64_t left = rule.factors[factor].size;
    const bool alone = stands_alone(rule, offers[i].factor);
    for (const int sub_axis : offers[i].sub_axes) {
      const int64_t size = view.sub_axis_sizes[static_cast<size_t>(sub_axis)];
      if (used >> sub_axis & 1) break;
      if (!alone && left % size != 0) break;
      if (!alone) left /= size;
      sub_axes.push_back(sub_axis);
    }
    used |= mask_of(sub_axes);
    choice.sub_axes[factor] = std::move(sub_axes);
  }

  // A minor factor of a shared dimension stays unsharded unless all before it are fully sharded.
  bool changed = true;
  while (changed) {
    changed = false;
    for (size_t s = 0; s < op_tensors.size(); ++s) {
      for (const std::vector<int>& dim : factors_of(s)) {
        bool open_before = false;
        for (const int factor : dim) {
          auto& sub_axes = choice.sub_axes[static_cast<size_t>(factor)];
          if (open_before && !sub_axes.empty()) {
            sub_axes.clear();
            changed = true;
          }
          open_before =
              open_before || sharding::part_count(view, sub_axes) != rule.factors[static_cast<size_t>(factor)].size;
        }
      }
    }
  }
  return choice;
}

// True when every tensor large enough to shard has the factor, alone in its dimension, and `sub_axis` divides the size
// that is left.
bool may_take(const sharding::FactorRule& rule, std::span<const OpTensor> op_tensors, size_t factor, int64_t parts) {
  if (!stands_alone(rule, static_cast<int>(factor)) || rule.factors[factor].size % parts != 0) return false;
  for (size_t s = 0; s < op_tensors.size(); ++s) {
    if (op_tensors[s].dims.empty()) continue;
    const sharding::TensorFactors& tensor =
        s < rule.operands.size() ? rule.operands[s] : rule.results[s - rule.operands.size()];
    const bool has = std::any_of(tensor.begin(), tensor.end(), [&](const std::vector<int>& dim) {
      return std::find(dim.begin(), dim.end(), static_cast<int>(factor)) != dim.end();
    });
    if (!has) return false;
  }
  return true;
}

// Gives the sub-axes of the tensors that nothing uses to the first factor that may take them.
FactorSubAxes with_idle_sub_axes(FactorSubAxes choice, const sharding::FactorRule& rule,
                                 std::span<const OpTensor> op_tensors, std::span<const sharding::MeshView> views,
                                 const std::vector<bool>& unsharded, sharding::SubAxisSet taken) {
  // Who reads neighbours' rows gathers them and stays where it is.
  const bool permutes = std::any_of(rule.factors.begin(), rule.factors.end(), [](const sharding::Factor& factor) {
    return factor.kind == sharding::FactorKind::kPermutation;
  });
  if (permutes) return choice;
  const sharding::MeshView& view = views[static_cast<size_t>(choice.view)];
  sharding::SubAxisSet used = taken;
  for (const std::vector<int>& sub_axes : choice.sub_axes) used |= mask_of(sub_axes);
  sharding::SubAxisSet idle = 0;
  for (const OpTensor& op_tensor : op_tensors) {
    if (op_tensor.layout.view == choice.view) idle |= op_tensor.layout.mask() & ~used;
  }
  for (size_t a = 0; a < view.sub_axis_sizes.size(); ++a) {
    if ((idle >> a & 1) == 0) continue;
    for (size_t f = 0; f < rule.factors.size(); ++f) {
      if (unsharded[f] || rule.factors[f].kind != sharding::FactorKind::kPassThrough) continue;
      std::vector<int> sub_axes = choice.sub_axes[f];
      sub_axes.push_back(static_cast<int>(a));
      if (!may_take(rule, op_tensors, f, sharding::part_count(view, sub_axes))) continue;
      choice.sub_axes[f] = std::move(sub_axes);
      break;
    }
  }
  return choice;
}

}  // namespace

FactorSubAxes choose_factor_sub_axes(const sharding::FactorRule& rule, std::span<const OpTensor> op_tensors,
                                     std::span<const sharding::MeshView> views, const std::vector<bool>& unsharded,
                                     sharding::SubAxisSet taken) {
  return choose(rule, op_tensors, views, unsharded, taken, std::nullopt);
}

std::vector<FactorSubAxes> other_choices(const sharding::FactorRule& rule, std::span<const OpTensor> op_tensors,
                                         std::span<const sharding::MeshView> views, const std::vector<bool>& unsharded,
                                         sharding::SubAxisSet taken) {
  std::vector<FactorSubAxes> out;
  out.push_back(with_idle_sub_axes(choose(rule, op_tensors, views, unsharded, taken, std::nullopt), rule, op_tensors,
                                   views, unsharded, taken));
  for (size_t s = 0; s < op_tensors.size() && s < kMostTensorsTried; ++s) {
    if (op_tensors[s].layout.mask() == 0) continue;
    out.push_back(choose(rule, op_tensors, views, unsharded, taken, s));
    out.push_back(with_idle_sub_axes(out.back(), rule, op_tensors, views, unsharded, taken));
  }
  return out;
}

ShardLayout layout_of(const FactorSubAxes& choice, const sharding::TensorFactors& factors) {
  ShardLayout out = replicated(static_cast<int64_t>(factors.size()), choice.view);
  for (size_t d = 0; d < factors.size(); ++d) {
    for (const int factor : factors[d]) {
      const auto& sub_axes = choice.sub_axes[static_cast<size_t>(factor)];
      out.dims[d].insert(out.dims[d].end(), sub_axes.begin(), sub_axes.end());
    }
  }
  return out;
}

}  // namespace meshd::partition
