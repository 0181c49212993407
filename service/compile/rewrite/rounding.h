// Rounds the propagated shardings of unannotated arguments to ones that divide their dimensions. Pure.
#pragma once

#include "service/ir/program.h"
#include "service/sharding/tensor_sharding.h"

namespace meshd::compile {

/// What is left of an argument's sharding when its devices are to have something of it, as Shardy rounds: in dimensions
/// that the text leaves open, axes up to the first part of one; in dimensions of fewer rows than parts, the longest
/// prefix that divides (part of an axis where the dimension is closed). Other uneven dimensions stay as they are.
/// Example, x=8: 2x32 with [{"x"}, {}] -> [{"x":(1)2}, {}].
sharding::TensorSharding rounded(sharding::TensorSharding sharding, const ir::Parameter& parameter);

}  // namespace meshd::compile
