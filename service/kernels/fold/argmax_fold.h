// Folds of pairs of a value and its index to the greatest (least) value and where it is: argmax and argmin, as
// jax.numpy lowers them. The first NaN wins over all numbers; of equal values the least index wins, and the last one's
// bits, which tell zeros apart. So defined, pairs may be folded in any groups as long as these keep their order, with
// the same bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "service/kernels/elementwise/scalar_op.h"
#include "service/tensor/dtype.h"

namespace meshd::kernels {

struct TileProgram;

enum class ArgmaxOrder : uint8_t { kGreatest, kLeast };

/// Whether a reducer of (value, int32 index) does exactly that, and for which order.
std::optional<ArgmaxOrder> as_argmax_reducer(const TileProgram& reducer);

/// The loops for values of one type, which has four bytes. Indices are not read: values that follow each other along
/// the reduced dim count up from the index of the first.
struct ArgmaxFold {
  tensor::DType value = tensor::DType::kFloat32;  ///< the type values are compared in (narrow types are widened first)
  ScalarKernel widen = nullptr;                   ///< element type -> value; null when they are the same
  ScalarKernel narrow = nullptr;                  ///< value -> element type; likewise
  /// Folds later values, all of one index, into pairs lane by lane.
  void (*add_lanes)(const std::byte* values, int32_t index, int64_t count, std::byte* best, int32_t* places) = nullptr;
  /// Folds later pairs into pairs lane by lane.
  void (*combine)(const std::byte* values, const int32_t* indices, int64_t count, std::byte* best,
                  int32_t* places) = nullptr;
  /// Values (groups, items, lanes) folded over at least one item, the first of which has index `first`: pairs (groups,
  /// lanes).
  void (*segments)(const std::byte* values, int32_t first, int64_t groups, int64_t items, int64_t lanes,
                   std::byte* best, int32_t* places) = nullptr;
};

/// The fold over elements of a type, or nothing when there are no loops for it.
std::optional<ArgmaxFold> find_argmax_fold(ArgmaxOrder order, tensor::DType element);

}  // namespace meshd::kernels
