// Arrays whose parts the client computes: one callback request for each device or one for all of them, whose replies
// are the data. JAX: from_callback, from_batched_callback (behaviours G32, G34).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "service/arrays/array_store.h"
#include "service/effects/callback_store.h"
#include "service/tensor/buffer.h"

namespace meshd::jobs {

enum class Pull : uint8_t {
  kEach,   ///< a callback request for each device, replicas too
  kBatch,  ///< one callback request with the indices of all devices
};

/// Creates the callback requests for parts of a pending array on `devices`, in this order. A request has two values:
/// the devices, int64[n], and the index of each, int64[n, rank, 2]: start and stop of each dimension. Its reply has n
/// values.
/// Example: float32[8,2] over x = 4 and y = 2, sharded by ("x", "y") ->
///   kEach: 8 callback requests; the second has [1] and [[[0, 2], [1, 2]]], and expects one float32[2,1]
///   kBatch: 1 callback request; it has [0, ..., 7] and 8 indices, and expects 8 values
/// Throws not_found for a device without a part, and what CallbackStore::ask_for_parts throws.
void pull_parts(effects::CallbackStore& callbacks, const std::string& session, const arrays::Array& array,
                std::span<const int64_t> devices, Pull pull);

/// The stores that a reply with parts goes to.
struct PartsContext {
  effects::CallbackStore& callbacks;
  arrays::ArrayStore& arrays;
  const std::string& principal;
};

/// Stores the values as parts; the last part makes the array ready. A repeated reply changes nothing. Throws
/// invalid_request for values of other types, conflict for a different reply, not_found when the array was deleted, and
/// what arrays::put_part throws.
effects::SessionCallback reply_with_parts(const PartsContext& context, const std::string& session, int64_t number,
                                          const std::vector<tensor::DenseValue>& values);

/// Withdraws the open callback requests of a complete array: parts may also be put without a request.
void end_pull(effects::CallbackStore& callbacks, arrays::Array& array);

}  // namespace meshd::jobs
