// QR factors by reflectors as loops over plain ops, in LAPACK's conventions, which have derivatives. Private to linalg.
#pragma once

#include <optional>
#include <vector>

#include "service/ops/op_def.h"

namespace meshd::ops {

/// geqrf and orgqr (ungqr) as others; nothing for other calls. R's diagonal is real, and the reflectors are
/// H_k = I - tau_k v_k v_k^H, with ones at the diagonal of v.
std::optional<std::vector<ir::ValueId>> householder_as_others(const OpView& view, Writer& writer);

}  // namespace meshd::ops
