// Assembles arrays from parts that clients send: one for each device, separately or all at once. JAX:
// make_array_from_single_device_arrays and make_array_from_callback; behaviours G18 to G21, G32 to G36.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "service/arrays/array_store.h"

namespace meshd::arrays {

/// What some devices hold: row-major bytes.
struct Part {
  std::vector<int64_t> devices;  ///< empty: the next device of the list
  tensor::TensorType type;
  tensor::BufferRef bytes;
};

enum class PartOrder : uint8_t {
  kKeyed,  ///< each part goes to the shard of its devices
  kLocal,  ///< parts come in the order of the devices; devices that they name must agree
};

/// Gives each part its devices: those it names, or the next of `devices` (the mesh's, or those of a process). Throws
/// invalid_array: a wrong number of parts or of devices, a device named twice or not at all, "device order doesn't
/// match" under kLocal.
void assign_devices(std::vector<Part>& parts, std::span<const int64_t> devices, PartOrder order);
/// Throws invalid_array when parts have several dtypes (all listed), or a part has another shape than its shard (the
/// expected ones and all given ones listed).
void check_parts(const std::vector<Part>& parts, const sharding::Layout& layout);

/// Whom a part is for.
enum class Replicas : uint8_t {
  kOne,  ///< the device that is named
  kAll,  ///< every device that holds the same part
};

/// Accounts for a part or a chunk in transfer: the array does not expire during its lifetime. Any thread.
class PartOnItsWay {
 public:
  /// Throws conflict when the array is complete already, not_found when it is not there any more.
  PartOnItsWay(ArrayStore& store, ArrayRef array);
  ~PartOnItsWay();
  PartOnItsWay(const PartOnItsWay&) = delete;
  PartOnItsWay& operator=(const PartOnItsWay&) = delete;

 private:
  ArrayStore& store_;
  ArrayRef array_;
};

/// Stores one part of a pending array; the last one makes the array ready and, if durability asks for it, durable.
/// `bytes` become the shard where they have its shape; the caller no longer writes them. Throws conflict when the array
/// is complete already, not_found for a device outside of its mesh, invalid_array for a part of the wrong type, or one
/// that differs from an earlier replica, overloaded when pending arrays hold too much. Any thread.
void put_part(ArrayStore& store, const ArrayRef& array, int64_t device, const tensor::TensorType& type,
              const tensor::BufferRef& bytes, Replicas replicas = Replicas::kOne);

}  // namespace meshd::arrays
