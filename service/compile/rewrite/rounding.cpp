#include "service/compile/rewrite/rounding.h"

#include <numeric>

namespace meshd::compile {
namespace {

using sharding::AxisRef;

std::vector<AxisRef> rounded_axes(const std::vector<AxisRef>& axes, const mesh::Mesh& mesh, int64_t rows,
                                  bool is_open) {
  int64_t parts = 1;
  for (const AxisRef& axis : axes) parts *= sharding::axis_size(axis, mesh);
  const bool is_too_short = rows > 0 && rows < parts;
  std::vector<AxisRef> out;
  int64_t left = rows;
  for (const AxisRef& axis : axes) {
    const int64_t size = sharding::axis_size(axis, mesh);
    if (is_open && !axis.is_whole()) break;
    if (is_too_short && left % size != 0) {
      const AxisRef part{axis.axis, axis.pre, std::gcd(left, size)};
      if (part.size > 1 && !is_open) out.push_back(part);
      break;
    }
    if (is_too_short) left /= size;
    out.push_back(axis);
  }
  return out;
}

}  // namespace

sharding::TensorSharding rounded(sharding::TensorSharding sharding, const ir::Parameter& parameter) {
  if (sharding.mesh == nullptr || sharding.mesh->axes.empty() || !parameter.type.is_tensor()) return sharding;
  const tensor::Dims& dims = parameter.type.dims();
  for (size_t d = 0; d < sharding.dims.size() && d < dims.size(); ++d) {
    const bool is_open =
        !parameter.sharding || d >= parameter.sharding->dims.size() || parameter.sharding->dims[d].open;
    sharding.dims[d].axes = rounded_axes(sharding.dims[d].axes, *sharding.mesh, dims[d], is_open);
  }
  return sharding;
}

}  // namespace meshd::compile
