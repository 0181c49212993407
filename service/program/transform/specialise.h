// Specialises an inlined program for arguments of known shapes, before propagation: resolves dynamic dimensions,
// flattens tuples and decomposes ops.
#pragma once

#include <span>

#include "service/ir/program.h"

namespace meshd::program {

/// True when specialise() would change something beside dynamic dimensions: expansions, tuples, captured values.
bool has_more_than_plain_ops(const ir::Module& flat);
/// True when no argument of @main has a dynamic dimension.
bool has_static_arguments(const ir::Module& flat);
/// True when a value of @main has a dynamic dimension.
bool has_dynamic_shapes(const ir::Module& flat);

/// `flat` is what inline_calls made; `arguments` are the types of @main's arguments without tokens (empty: as
/// declared). Sizes are followed from the arguments through get_dimension_size and what is computed from it to
/// dynamic_reshape and similar ops. Shape assertions are checked here, and throw invalid_argument with their message. A
/// shape that depends on data throws unsupported_type naming op and line, unless its type has bounds: such values
/// become static ones of the bounds' shapes, and @main returns the sizes of its results as one more
/// (Parameter::size_places).
ir::Module specialise(const ir::Module& flat, std::span<const tensor::TensorType> arguments = {});

}  // namespace meshd::program
