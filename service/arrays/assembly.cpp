#include "service/arrays/assembly.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "service/core/error.h"

namespace meshd::arrays {
namespace {

std::string list_of(std::span<const int64_t> values) { return tensor::to_string(values); }

const sharding::DeviceShard* shard_on(const sharding::Layout& layout, int64_t device) {
  const auto found = std::find_if(layout.device_shards.begin(), layout.device_shards.end(),
                                  [&](const sharding::DeviceShard& p) { return p.device == device; });
  return found == layout.device_shards.end() ? nullptr : &*found;
}

// Calls `visit(shard offset, part offset, bytes)` for each run of a shard's real elements within its padded buffer.
template <typename Visit>
void each_run(const sharding::Layout& layout, const tensor::Dims& actual, int64_t element_bytes, Visit&& visit) {
  const size_t rank = actual.size();
  const int64_t count = core::checked_product(actual);
  if (count == 0) return;
  const int64_t run = (rank == 0 ? 1 : actual[rank - 1]) * element_bytes;
  for (int64_t done = 0; done < count * element_bytes; done += run) {
    int64_t rest = done / run, offset = 0, stride = rank == 0 ? 0 : layout.shard_dims[rank - 1] * element_bytes;
    for (size_t d = rank == 0 ? 0 : rank - 1; d-- > 0;) {
      offset += rest % actual[d] * stride;
      rest /= actual[d];
      stride *= layout.shard_dims[d];
    }
    visit(offset, done, run);
  }
}

// Throws where the array takes no parts.
PendingParts& parts_of(const Array& array, Array::State& state) {
  if (state.is_going()) throw core::Error("not_found", "there is no array '" + array.info().id + "'");
  if (!state.parts || state.parts->is_being_completed)
    throw core::Error("conflict", "array '" + array.info().id + "' is complete; its shards do not change");
  return *state.parts;
}

// The same for shards, which arrays of chunks do not take.
PendingParts& shards_of(const Array& array, Array::State& state) {
  PendingParts& parts = parts_of(array, state);
  if (parts.are_chunks) {
    throw core::Error("conflict", "array '" + array.info().id +
                                      "' is written as Zarr: PUT its chunks, and end it with POST ...:commit");
  }
  return parts;
}

}  // namespace

void assign_devices(std::vector<Part>& parts, std::span<const int64_t> devices, PartOrder order) {
  const bool named = std::any_of(parts.begin(), parts.end(), [](const Part& part) { return !part.devices.empty(); });
  if (!named) {
    if (parts.size() != devices.size()) {
      throw core::Error("invalid_array",
                        fmt::format("expected {} per-device arrays, got {}", devices.size(), parts.size()));
    }
    for (size_t i = 0; i < parts.size(); ++i) parts[i].devices = {devices[i]};
    return;
  }
  std::vector<int64_t> given;
  for (const Part& part : parts) {
    if (part.devices.empty())
      throw core::Error("invalid_array", "some parts name their devices and some do not; name all or none");
    given.insert(given.end(), part.devices.begin(), part.devices.end());
  }
  if (order == PartOrder::kLocal && !std::equal(given.begin(), given.end(), devices.begin(), devices.end())) {
    throw core::Error(
        "invalid_array",
        fmt::format("device order doesn't match: the parts are for devices {}, the order of the array is {}",
                    list_of(given), list_of(devices)));
  }
  std::set<int64_t> seen;
  for (const int64_t device : given) {
    if (std::find(devices.begin(), devices.end(), device) == devices.end())
      throw core::Error("invalid_array", fmt::format("device {} is none of {}", device, list_of(devices)));
    if (!seen.insert(device).second)
      throw core::Error("invalid_array", fmt::format("device {} is named twice", device));
  }
  if (seen.size() != devices.size()) {
    throw core::Error("invalid_array", fmt::format("expected {} per-device arrays, got {}: devices {} and parts for {}",
                                                   devices.size(), seen.size(), list_of(devices), list_of(given)));
  }
}

void check_parts(const std::vector<Part>& parts, const sharding::Layout& layout) {
  std::string dtypes, shapes, expected;
  bool same_dtype = true, right = true;
  for (const Part& part : parts) {
    same_dtype = same_dtype && part.type.dtype == parts.front().type.dtype;
    dtypes += (dtypes.empty() ? "" : ", ") + std::string(tensor::name(part.type.dtype));
    shapes += (shapes.empty() ? "" : ", ") + list_of(part.type.dims);
    const sharding::DeviceShard* place = shard_on(layout, part.devices.front());
    if (place == nullptr) continue;
    const tensor::Dims wanted = layout.shard_actual_dims(place->shard);
    expected += (expected.empty() ? "" : ", ") + list_of(wanted);
    right = right && part.type.dims == wanted;
  }
  if (!same_dtype) throw core::Error("invalid_array", "all parts must have one dtype, got " + dtypes);
  if (!right)
    throw core::Error("invalid_array", fmt::format("parts must have the shapes {}, got {}", expected, shapes));
}

PartOnItsWay::PartOnItsWay(ArrayStore& store, ArrayRef array) : store_(store), array_(std::move(array)) {
  auto state = array_->state().lock();
  parts_of(*array_, *state).on_their_way++;
}

PartOnItsWay::~PartOnItsWay() {
  auto state = array_->state().lock();
  if (!state->parts) return;
  --state->parts->on_their_way;
  store_.pending().note_progress(*state->parts);
}

void put_part(ArrayStore& store, const ArrayRef& array, int64_t device, const tensor::TensorType& type,
              const tensor::BufferRef& bytes, Replicas replicas) {
  const sharding::Layout& layout = array->layout();
  const sharding::DeviceShard* place = shard_on(layout, device);
  const std::string& id = array->info().id;
  if (place == nullptr) throw core::Error("not_found", fmt::format("array '{}' has no shard on device {}", id, device));
  const tensor::Dims actual = layout.shard_actual_dims(place->shard);
  if (type.dtype != array->info().type.dtype || type.dims != actual) {
    throw core::Error("invalid_array", fmt::format("the shard on device {} is {}{}, got {}{}", device,
                                                   tensor::name(array->info().type.dtype), list_of(actual),
                                                   tensor::name(type.dtype), list_of(type.dims)));
  }
  const PartOnItsWay on_its_way(store, array);
  const int64_t element_bytes = tensor::size_bytes(type.dtype);
  // A short last shard has a padded buffer.
  tensor::BufferRef shard = bytes;
  if (actual != layout.shard_dims) {
    shard = store.allocate_shard(*array, place->shard);
    each_run(layout, actual, element_bytes, [&](int64_t to, int64_t from, int64_t length) {
      std::memcpy(shard->data() + to, bytes->data() + from, static_cast<size_t>(length));
    });
  }
  ShardBuffers complete;
  {
    auto state = array->state().lock();
    PendingParts& parts = shards_of(*array, *state);
    tensor::BufferRef& kept = parts.shards[static_cast<size_t>(place->shard)];
    if (kept == nullptr) {
      store.pending().take_bytes(parts, shard->size());
      kept = shard;
    } else if (kept != shard) {
      each_run(layout, actual, element_bytes, [&](int64_t to, int64_t from, int64_t length) {
        if (std::memcmp(kept->data() + to, bytes->data() + from, static_cast<size_t>(length)) == 0) return;
        throw core::Error("invalid_array",
                          fmt::format("the shard on device {} differs from the same shard on another device", device));
      });
    }
    parts.received[static_cast<size_t>(place->position)] = true;
    for (const sharding::DeviceShard& other : layout.device_shards) {
      if (replicas == Replicas::kAll && other.shard == place->shard)
        parts.received[static_cast<size_t>(other.position)] = true;
    }
    if (std::count(parts.received.begin(), parts.received.end(), false) == 0) {
      complete = parts.shards;
      parts.is_being_completed = true;
    }
  }
  if (complete.empty()) return;
  try {
    store.publish(array, complete);
  } catch (...) {
    // Nothing was stored: the last part may be sent again.
    auto state = array->state().lock();
    state->parts->is_being_completed = false;
    state->parts->received[static_cast<size_t>(place->position)] = false;
    throw;
  }
  store.pending().remove(array);
}

}  // namespace meshd::arrays
