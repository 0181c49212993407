#include "service/jobs/execution/pulled_parts.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "service/arrays/assembly.h"
#include "service/core/error.h"
#include "service/core/sha256.h"

namespace meshd::jobs {
namespace {

const sharding::DeviceShard& place_on(const arrays::Array& array, int64_t device) {
  const auto& places = array.layout().device_shards;
  const auto found =
      std::find_if(places.begin(), places.end(), [&](const sharding::DeviceShard& p) { return p.device == device; });
  if (found == places.end()) {
    throw core::Error("not_found", fmt::format("array '{}' has no shard on device {}", array.info().id, device));
  }
  return *found;
}

tensor::DenseValue integers(tensor::Dims dims, const std::vector<int64_t>& values) {
  return tensor::dense_copy({tensor::DType::kInt64, std::move(dims)}, std::as_bytes(std::span(values)));
}

effects::CallbackRequest callback_for(const arrays::Array& array, std::span<const int64_t> devices, int64_t call,
                                      Pull pull) {
  effects::CallbackRequest out;
  out.call = call;
  out.name = pull == Pull::kEach ? "part" : "parts";
  out.ordered = true;
  out.device = devices.front();
  out.shard = place_on(array, out.device).shard;
  std::vector<int64_t> bounds;
  for (const int64_t device : devices) {
    const sharding::DeviceShard& place = place_on(array, device);
    for (const sharding::IndexRange& range : place.index) bounds.insert(bounds.end(), {range.start, range.stop});
    out.expected.push_back({array.info().type.dtype, array.layout().shard_actual_dims(place.shard)});
  }
  const auto count = static_cast<int64_t>(devices.size());
  out.values.push_back(integers({count}, {devices.begin(), devices.end()}));
  out.values.push_back(integers({count, array.info().type.rank(), 2}, bounds));
  return out;
}

// The devices whose parts a callback request is for, in the order of its reply.
std::vector<int64_t> devices_asked_for(const effects::CallbackRequest& request) {
  const std::span<const std::byte> bytes = request.values.at(0).bytes();
  std::vector<int64_t> out(bytes.size() / sizeof(int64_t));
  if (!out.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

std::string digest_of(const std::vector<tensor::DenseValue>& values) {
  core::Sha256 digest;
  for (const tensor::DenseValue& value : values) digest.update(value.bytes());
  return digest.base64();
}

}  // namespace

void pull_parts(effects::CallbackStore& callbacks, const std::string& session, const arrays::Array& array,
                std::span<const int64_t> devices, Pull pull) {
  std::vector<effects::CallbackRequest> asked;
  if (pull == Pull::kBatch) asked.push_back(callback_for(array, devices, 0, pull));
  for (size_t i = 0; pull == Pull::kEach && i < devices.size(); ++i)
    asked.push_back(callback_for(array, devices.subspan(i, 1), static_cast<int64_t>(i), pull));
  callbacks.ask_for_parts(session, array.info().id, asked);
}

effects::SessionCallback reply_with_parts(const PartsContext& context, const std::string& session, int64_t number,
                                          const std::vector<tensor::DenseValue>& values) {
  const effects::SessionCallback asked = context.callbacks.get(session, number);
  effects::check_reply(asked.request, values);
  const std::string digest = digest_of(values);
  // Replied before: the digest tells a repeated reply from another one.
  if (asked.state == effects::CallbackState::kAnswered) return context.callbacks.note_parts(session, number, digest);
  const arrays::ArrayRef array = context.arrays.find(asked.job, context.principal);
  const std::vector<int64_t> devices = devices_asked_for(asked.request);
  for (size_t i = 0; i < devices.size(); ++i) {
    arrays::put_part(context.arrays, array, devices[i], values[i].type, values[i].buffer);
  }
  effects::SessionCallback replied = context.callbacks.note_parts(session, number, digest);
  end_pull(context.callbacks, *array);
  return replied;
}

void end_pull(effects::CallbackStore& callbacks, arrays::Array& array) {
  const bool is_pending = array.state().with(
      [](const arrays::Array::State& state) { return state.state == storage::ArrayState::kPending; });
  if (!is_pending) callbacks.withdraw(array.info().id);
}

}  // namespace meshd::jobs
