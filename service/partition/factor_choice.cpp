#include "service/partition/factor_choice.h"

#include <algorithm>
#include <numeric>

namespace meshd::partition {
namespace {

// What one tensor would give to its factors: dims' atoms handed out major first, each factor taking what divides it.
struct Offer {
  int factor = 0;
  std::vector<int> atoms;
  double weight = 0;
  size_t seat = 0;
};

// True when every dimension that has the factor has it alone, so that an uneven cut keeps its meaning.
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
               const std::vector<int>& atoms, double weight, size_t seat, std::vector<Offer>& offers) {
  size_t next = 0;
  for (const int factor : factors) {
    int64_t left = rule.factors[static_cast<size_t>(factor)].size;
    const bool alone = factors.size() == 1;
    Offer offer{factor, {}, weight, seat};
    while (next < atoms.size()) {
      const int64_t size = view.atom_sizes[static_cast<size_t>(atoms[next])];
      if (!alone && left % size != 0) break;
      if (!alone && left == 1) break;
      offer.atoms.push_back(atoms[next++]);
      left = alone ? left : left / size;
    }
    if (!offer.atoms.empty()) offers.push_back(offer);
    if (!alone && left != 1) return;  // a minor factor may only be cut behind a major one cut to the end
  }
}

}  // namespace

FactorAtoms choose_factor_atoms(const sharding::FactorRule& rule, std::span<const Seat> seats,
                                std::span<const sharding::MeshView> views, std::span<const bool> uncut,
                                sharding::AtomMask taken) {
  FactorAtoms choice{0, std::vector<std::vector<int>>(rule.factors.size())};
  const size_t operand_count = rule.operands.size();
  const auto factors_of = [&](size_t seat) -> const sharding::TensorFactors& {
    return seat < operand_count ? rule.operands[seat] : rule.results[seat - operand_count];
  };

  // One view for the whole op: that of the largest tensor that is cut at all.
  double best = -1;
  for (const Seat& seat : seats) {
    const double weight = std::accumulate(seat.dims.begin(), seat.dims.end(), 1.0, std::multiplies<>());
    if (seat.placed.mask() != 0 && weight > best) {
      best = weight;
      choice.view = seat.placed.view;
    }
  }
  if (best < 0) {
    if (!seats.empty()) choice.view = seats.front().placed.view;
    return choice;
  }
  const sharding::MeshView& view = views[static_cast<size_t>(choice.view)];

  std::vector<Offer> offers;
  for (size_t s = 0; s < seats.size(); ++s) {
    if (seats[s].placed.view != choice.view) continue;
    const double weight = std::accumulate(seats[s].dims.begin(), seats[s].dims.end(), 1.0, std::multiplies<>());
    const sharding::TensorFactors& factors = factors_of(s);
    for (size_t d = 0; d < factors.size() && d < seats[s].placed.dims.size(); ++d) {
      offer_dim(rule, view, factors[d], seats[s].placed.dims[d], weight, s, offers);
    }
  }
  // Equal offers of several tensors count together.
  std::vector<double> support(offers.size(), 0);
  for (size_t i = 0; i < offers.size(); ++i) {
    for (const Offer& other : offers) {
      if (other.factor == offers[i].factor && other.atoms == offers[i].atoms) support[i] += other.weight;
    }
  }
  std::vector<size_t> order(offers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return support[a] > support[b]; });

  sharding::AtomMask used = taken;
  for (const size_t i : order) {
    const auto factor = static_cast<size_t>(offers[i].factor);
    if (uncut[factor] || !choice.atoms[factor].empty()) continue;
    std::vector<int> atoms;
    int64_t left = rule.factors[factor].size;
    const bool alone = stands_alone(rule, offers[i].factor);
    for (const int atom : offers[i].atoms) {
      const int64_t size = view.atom_sizes[static_cast<size_t>(atom)];
      if (used >> atom & 1) break;
      if (!alone && left % size != 0) break;
      if (!alone) left /= size;
      atoms.push_back(atom);
    }
    used |= mask_of(atoms);
    choice.atoms[factor] = std::move(atoms);
  }

  // A minor factor of a shared dimension stays whole unless all before it are cut to the end.
  bool changed = true;
  while (changed) {
    changed = false;
    for (size_t s = 0; s < seats.size(); ++s) {
      for (const std::vector<int>& dim : factors_of(s)) {
        bool open_before = false;
        for (const int factor : dim) {
          auto& atoms = choice.atoms[static_cast<size_t>(factor)];
          if (open_before && !atoms.empty()) {
            atoms.clear();
            changed = true;
          }
          open_before =
              open_before || sharding::part_count(view, atoms) != rule.factors[static_cast<size_t>(factor)].size;
        }
      }
    }
  }
  return choice;
}

Placed placement_of(const FactorAtoms& choice, const sharding::TensorFactors& factors) {
  Placed out = whole(static_cast<int64_t>(factors.size()), choice.view);
  for (size_t d = 0; d < factors.size(); ++d) {
    for (const int factor : factors[d]) {
      const auto& atoms = choice.atoms[static_cast<size_t>(factor)];
      out.dims[d].insert(out.dims[d].end(), atoms.begin(), atoms.end());
    }
  }
  return out;
}

}  // namespace meshd::partition
