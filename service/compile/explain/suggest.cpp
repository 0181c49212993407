#include "service/compile/explain/suggest.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "service/core/number_text.h"

namespace meshd::compile {
namespace {

constexpr double kFlopsPerSecond = 50e9;
constexpr double kTouchedPerSecond = 10e9;
constexpr double kMovedPerSecond = 2e9;
// Below this share a difference is no reason.
constexpr double kWorthSaying = 0.01;

// Bound of the shardings that are tried for an argument over a mesh of many axes.
constexpr size_t kMostCandidates = 64;

using Shardings = std::vector<std::optional<sharding::TensorSharding>>;

std::vector<std::string> reasons_for(const Cost& cost, const Cost& now) {
  std::vector<std::string> out;
  const auto compare = [&](const char* what, double mine, double theirs) {
    if (std::abs(mine - theirs) <= kWorthSaying * std::max(mine, theirs)) return;
    out.push_back(fmt::format("{}: {} instead of {}", what, core::grouped_number(mine), core::grouped_number(theirs)));
  };
  compare("bytes that a device receives", static_cast<double>(cost.bytes_moved), static_cast<double>(now.bytes_moved));
  compare("operations of a device", cost.flops, now.flops);
  compare("bytes that a device reads and writes", cost.bytes_touched, now.bytes_touched);
  compare("bytes at the peak of a device", static_cast<double>(cost.peak_bytes), static_cast<double>(now.peak_bytes));
  return out;
}

class Search {
 public:
  Search(const ParsedRef& parsed, const LowerRequest& request, const PlanSettings& settings,
         const std::function<bool()>& stop)
      : parsed_(parsed), request_(request), settings_(settings), stop_(stop) {
    request_.in_shardings.resize(parsed->arguments.size());
    choose_mesh();
  }

  Suggestions run() {
    Shardings best = request_.in_shardings;
    const Explanation now = explain(parsed_, request_, settings_);
    if (now.unplanned) throw core::Error(*now.unplanned);
    out_.now = cost_of(now);
    Cost best_cost = out_.now;
    std::vector<size_t> free;
    for (size_t i = 0; i < parsed_->arguments.size(); ++i) {
      if (!request_.in_shardings[i] && !parsed_->argument(i).sharding) free.push_back(i);
    }
    const auto size_of = [&](size_t i) { return tensor::element_count(parsed_->argument(i).type.tensor); };
    std::stable_sort(free.begin(), free.end(), [&](size_t a, size_t b) { return size_of(a) > size_of(b); });
    // A second round, because the best for the first was found before the others were known.
    for (int round = 0; round < 2; ++round) {
      bool changed = false;
      for (const size_t argument : free) {
        for (const sharding::TensorSharding& candidate : candidates(argument)) {
          Shardings tried = best;
          tried[argument] = candidate;
          const std::optional<Cost> cost = attempt(tried);
          if (!cost || cost->seconds() >= best_cost.seconds()) continue;
          best_cost = *cost;
          best = tried;
          changed = true;
        }
      }
      if (!changed) break;
    }
    finish();
    return std::move(out_);
  }

 private:
  void choose_mesh() {
    const auto real = real_meshes(*parsed_->module);
    if (!real.empty()) {
      mesh_ = real.front()->mesh;
      mesh_name_ = real.front()->name;
    } else if (request_.mesh && !request_.mesh->axes.empty()) {
      mesh_ = std::make_shared<const mesh::Mesh>(*request_.mesh);
      mesh_name_ = "mesh";
    } else {
      throw core::Error("invalid_request", "there is no mesh: neither the request nor the program names one");
    }
  }

  static Cost cost_of(const Explanation& explanation) {
    Cost out;
    for (const Block& block : explanation.plan->blocks) {
      for (const Step& step : block.steps) {
        out.flops += step.device_flops();
        out.bytes_touched += step.device_bytes();
      }
    }
    out.bytes_moved = explanation.moved_bytes();
    out.peak_bytes = explanation.plan->device_peak_bytes();
    return out;
  }

  std::optional<Cost> attempt(const Shardings& shardings) {
    std::string key;
    for (const auto& sharding : shardings) key += (sharding ? sharding::to_sdy(*sharding) : "-") + ";";
    if (const auto known = costs_.find(key); known != costs_.end()) return known->second.second;
    if (out_.tried >= kMostTrials || stop_()) {
      out_.is_incomplete = true;
      return std::nullopt;
    }
    ++out_.tried;
    LowerRequest asked = request_;
    asked.in_shardings = shardings;
    std::optional<Cost> cost;
    try {
      const Explanation explanation = explain(parsed_, asked, settings_);
      if (!explanation.unplanned) cost = cost_of(explanation);
    } catch (const core::Error&) {
      // An alternative that the program does not allow is none.
    }
    costs_.emplace(key, std::pair(shardings, cost));
    return cost;
  }

  // Closed shardings: replicated; each axis on each dimension that it divides; two axes on two dimensions or on one.
  std::vector<sharding::TensorSharding> candidates(size_t argument) const {
    const tensor::Dims& dims = parsed_->argument(argument).type.dims();
    const auto replicated = sharding::fully_replicated(mesh_name_, mesh_, static_cast<int64_t>(dims.size()));
    std::vector<sharding::TensorSharding> out{replicated};
    const auto with = [&](const sharding::TensorSharding& from, size_t dim, size_t axis) {
      const int64_t size = mesh_->axes[axis].size;
      if (size == 1 || dims[dim] % (from.part_count(static_cast<int64_t>(dim)) * size) != 0) return;
      sharding::TensorSharding made = from;
      made.dims[dim].axes.push_back({static_cast<int>(axis), 1, 0});
      out.push_back(std::move(made));
    };
    for (size_t axis = 0; axis < mesh_->axes.size(); ++axis) {
      // The candidates so far have earlier axes only, so no axis is used twice.
      const size_t count = out.size();
      if (count > kMostCandidates) break;
      for (size_t from = 0; from < count; ++from) {
        for (size_t dim = 0; dim < dims.size(); ++dim) with(sharding::TensorSharding(out[from]), dim, axis);
      }
    }
    return out;
  }

  void finish() {
    for (const auto& [key, tried] : costs_) {
      const auto& [shardings, cost] = tried;
      if (!cost || cost->seconds() >= out_.now.seconds()) continue;
      Suggestion made;
      made.in_shardings = shardings;
      for (size_t i = 0; i < shardings.size(); ++i) {
        if (shardings[i] && !request_.in_shardings[i]) made.changed.push_back(i);
      }
      made.cost = *cost;
      made.reasons = reasons_for(*cost, out_.now);
      out_.better.push_back(std::move(made));
    }
    // Equally cheap ones: fewest annotations first.
    std::stable_sort(out_.better.begin(), out_.better.end(), [](const Suggestion& a, const Suggestion& b) {
      if (a.cost.seconds() != b.cost.seconds()) return a.cost.seconds() < b.cost.seconds();
      return a.changed.size() < b.changed.size();
    });
    if (out_.better.size() > kMostSuggestions) out_.better.resize(kMostSuggestions);
  }

  ParsedRef parsed_;
  LowerRequest request_;
  PlanSettings settings_;
  const std::function<bool()>& stop_;
  mesh::MeshRef mesh_;
  std::string mesh_name_;
  std::map<std::string, std::pair<Shardings, std::optional<Cost>>> costs_;
  Suggestions out_;
};

}  // namespace

double Cost::seconds() const {
  return flops / kFlopsPerSecond + bytes_touched / kTouchedPerSecond +
         static_cast<double>(bytes_moved) / kMovedPerSecond;
}

Suggestions suggest(const ParsedRef& parsed, const LowerRequest& request, const PlanSettings& settings,
                    const std::function<bool()>& stop) {
  return Search(parsed, request, settings, stop).run();
}

}  // namespace meshd::compile
