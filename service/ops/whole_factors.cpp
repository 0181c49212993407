#include "service/ops/whole_factors.h"

namespace meshd::ops {

bool keeps_whole(const OpDef& def, const OpView& view, const sharding::FactorRule& rule, size_t factor) {
  if (def.name == "stablehlo.convolution") return convolution_keeps_whole(view, rule, factor);
  if (def.name == "stablehlo.select_and_scatter") return select_and_scatter_keeps_whole(view, rule, factor);
  return false;
}

}  // namespace meshd::ops
