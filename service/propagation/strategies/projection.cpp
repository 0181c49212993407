#include "service/propagation/strategies/projection.h"

#include <numeric>

namespace meshd::propagation {
namespace {

/// Takes axes from the front of a list, entire or in parts.
class AxisReader {
 public:
  AxisReader(const AxisList& axes, const mesh::Mesh& mesh) : axes_(axes), mesh_(mesh) { load(); }

  [[nodiscard]] bool done() const { return next_ > axes_.size(); }
  [[nodiscard]] int64_t size() const { return size_; }

  /// The major part of `size` of the current axis; `size` divides what is left of it.
  AxisRef take(int64_t size) {
    AxisRef out = current_;
    if (size == size_) {
      load();
      return out;
    }
    out.size = size;
    current_.pre *= size;
    size_ /= size;
    current_.size = size_;
    return out;
  }

  void take_rest(AxisList& into) {
    while (!done()) append(into, take(size_), mesh_);
  }

 private:
  void load() {
    if (next_ < axes_.size()) {
      current_ = axes_[next_];
      size_ = sharding::axis_size(current_, mesh_);
    }
    ++next_;
  }

  const AxisList& axes_;
  const mesh::Mesh& mesh_;
  size_t next_ = 0;  ///< one more than the place of the current axis
  AxisRef current_;
  int64_t size_ = 1;
};

void project_dim(const std::vector<int>& dim_factors, const AxisList& axes, bool closed,
                 const sharding::FactorRule& rule, const mesh::Mesh& mesh, TensorProjection& out) {
  AxisReader reader(axes, mesh);
  bool overflowed = false;
  for (size_t i = 0; i < dim_factors.size(); ++i) {
    FactorAxes& factor = out.factors.emplace_back();
    factor.factor = dim_factors[i];
    factor.minor_most = i + 1 == dim_factors.size();
    factor.closed = closed || overflowed;
    if (overflowed) continue;
    if (factor.minor_most) {
      reader.take_rest(factor.axes);
      continue;
    }
    int64_t left = rule.factors[static_cast<size_t>(factor.factor)].size;
    while (!reader.done()) {
      const int64_t common = std::gcd(left, reader.size());
      if (common == 1) break;
      append(factor.axes, reader.take(common), mesh);
      left /= common;
    }
    if (left > 1 && !reader.done()) {
      overflowed = true;
      reader.take_rest(factor.overflow);
    }
  }
}

void append_all(AxisList& list, const AxisList& axes, const mesh::Mesh& mesh) {
  for (const AxisRef& axis : axes) append(list, axis, mesh);
}

}  // namespace

FactorAxes* TensorProjection::find(int factor) {
  for (FactorAxes& entry : factors) {
    if (entry.factor == factor) return &entry;
  }
  return nullptr;
}

const FactorAxes* TensorProjection::find(int factor) const {
  for (const FactorAxes& entry : factors) {
    if (entry.factor == factor) return &entry;
  }
  return nullptr;
}

TensorProjection project(const sharding::TensorFactors& factors, const OpenSharding* sharding,
                         const sharding::FactorRule& rule, const mesh::Mesh& mesh) {
  static const AxisList kNoAxes;
  TensorProjection out;
  for (size_t dim = 0; dim < factors.size(); ++dim) {
    const bool closed = sharding != nullptr && !sharding->dims[dim].open;
    project_dim(factors[dim], sharding ? sharding->dims[dim].axes : kNoAxes, closed, rule, mesh, out);
  }
  if (sharding) {
    out.replicated = sharding->replicated;
    out.unreduced = sharding->unreduced;
  }
  return out;
}

OpenSharding unproject(const TensorProjection& tensor, const sharding::TensorFactors& factors,
                       const sharding::FactorRule& rule, int mesh_row, const mesh::Mesh& mesh) {
  OpenSharding out;
  out.mesh = mesh_row;
  out.replicated = tensor.replicated;
  out.unreduced = tensor.unreduced;
  for (const std::vector<int>& dim_factors : factors) {
    sharding::DimSharding dim;
    dim.open = true;
    for (const int index : dim_factors) {
      const FactorAxes& factor = *tensor.find(index);
      if (factor.closed) dim.open = false;
      append_all(dim.axes, factor.axes, mesh);
      append_all(dim.axes, factor.overflow, mesh);
      if (!factor.overflow.empty() || size_of(factor.axes, mesh) < rule.factors[static_cast<size_t>(index)].size) break;
    }
    out.dims.push_back(std::move(dim));
  }
  return out;
}

}  // namespace meshd::propagation
