#include "service/effects/infeed_entry.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "service/compile/plan/plan.h"
#include "service/core/error.h"
#include "service/effects/value_text.h"
#include "service/kernels/movement/movement.h"
#include "service/sharding/layout.h"

namespace meshd::effects {
namespace {

using tensor::TensorType;

[[noreturn]] void misfit(const InfeedEntry& entry, const device::EffectCall& call, const std::string& what) {
  const std::string where = call.location != nullptr && call.location->line > 0
                                ? fmt::format("line {}: ", call.location->line)
                                : std::string();
  throw core::Error("invalid_argument", fmt::format("{}'{}': entry {} of queue '{}' {}; DELETE "
                                                    "/v1/sessions/ID/infeed takes back what waits in the queues",
                                                    where, call.name, entry.number, entry.queue, what));
}

std::string wanted_text(std::span<const TensorType> types) {
  std::string out;
  for (const TensorType& type : types) out += fmt::format("{}{}", out.empty() ? "" : ", ", tensor::to_string(type));
  return out;
}

std::vector<std::vector<std::byte>> checked_bytes_of(const InfeedEntry& entry, const device::EffectCall& call,
                                                     const std::vector<tensor::DenseValue>& values,
                                                     const std::string& whose) {
  const bool fits =
      std::equal(values.begin(), values.end(), call.results.begin(), call.results.end(),
                 [](const tensor::DenseValue& value, const TensorType& type) { return value.type == type; });
  if (!fits)
    misfit(entry, call,
           whose + "has values of types " + types_text(values) + ", expected " + wanted_text(call.results));
  return bytes_of(values);
}

const InfeedPart& part_of(const InfeedEntry& entry, const device::EffectCall& call, int64_t device) {
  const auto found = std::find_if(entry.parts.begin(), entry.parts.end(),
                                  [&](const InfeedPart& part) { return part.device == device; });
  if (found == entry.parts.end()) misfit(entry, call, fmt::format("has no part for device {}", device));
  return *found;
}

// The layout of a result over the run; nothing where it is replicated.
std::optional<sharding::Layout> layout_of(const device::EffectCall& call, size_t result) {
  const auto& said = call.effect->point.result_shardings;
  if (result >= said.size() || !said[result] || said[result]->mesh == nullptr) return std::nullopt;
  const sharding::TensorSharding& sharding = *said[result];
  if (sharding.mesh->axes.empty() || sharding.rank() != call.results[result].rank()) return std::nullopt;
  if (sharding.mesh->position_count() > static_cast<int64_t>(call.devices.size())) return std::nullopt;
  const auto is_outside = [&](int64_t id) { return id < 0 || id >= static_cast<int64_t>(call.devices.size()); };
  if (std::any_of(sharding.mesh->device_ids.begin(), sharding.mesh->device_ids.end(), is_outside)) return std::nullopt;
  return sharding::make_layout(call.results[result].dims, sharding);
}

// One result from the parts of all devices.
std::vector<std::byte> assembled(const InfeedEntry& entry, const device::EffectCall& call, size_t result) {
  const TensorType& type = call.results[result];
  std::optional<sharding::Layout> layout = layout_of(call, result);
  std::vector<std::byte> unsharded(static_cast<size_t>(tensor::byte_count(type)));
  std::vector<const tensor::DenseValue*> first;  // of each distinct shard
  const auto take = [&](int64_t device, int64_t shard, const tensor::Dims& dims) -> const tensor::DenseValue* {
    const InfeedPart& part = part_of(entry, call, device);
    const std::string whose = fmt::format("part of device {}: ", device);
    if (part.values.size() != call.results.size())
      misfit(entry, call, fmt::format("{}{} values for {} results", whose, part.values.size(), call.results.size()));
    const tensor::DenseValue& value = part.values[result];
    const TensorType expected{type.dtype, dims};
    if (value.type != expected) {
      misfit(entry, call,
             fmt::format("{}value {} is {}, expected {}", whose, result, tensor::to_string(value.type),
                         tensor::to_string(expected)));
    }
    if (first.size() <= static_cast<size_t>(shard)) first.resize(static_cast<size_t>(shard) + 1);
    const tensor::DenseValue*& known = first[static_cast<size_t>(shard)];
    if (known != nullptr && !std::ranges::equal(known->bytes(), value.bytes()))
      misfit(entry, call, whose + "differs from that of another device that holds the same");
    const bool is_new = known == nullptr;
    known = &value;
    return is_new ? &value : nullptr;
  };
  if (!layout) {
    for (const int64_t device : call.devices) {
      if (const tensor::DenseValue* value = take(device, 0, type.dims))
        std::ranges::copy(value->bytes(), unsharded.begin());
    }
    return unsharded;
  }
  for (const sharding::DeviceShard& placed : layout->device_shards) {
    const tensor::Dims extent = layout->shard_actual_dims(placed.shard);
    const int64_t device = call.devices[static_cast<size_t>(placed.device)];
    const tensor::DenseValue* value = take(device, placed.shard, extent);
    if (value == nullptr || value->bytes().empty()) continue;
    tensor::Dims start;
    for (const sharding::IndexRange& range : placed.index) start.push_back(range.start);
    const tensor::Dims zeros(extent.size(), 0);
    kernels::copy_block(unsharded.data(), type.dims, start, value->bytes().data(), extent, zeros, extent,
                        tensor::size_bytes(type.dtype));
  }
  return unsharded;
}

}  // namespace

std::string infeed_to_text(const InfeedEntry& entry) {
  std::string out;
  put_number<int64_t>(out, entry.partitions);
  out += values_to_text(entry.values);
  put_number<uint32_t>(out, static_cast<uint32_t>(entry.parts.size()));
  for (const InfeedPart& part : entry.parts) {
    put_number<int64_t>(out, part.device);
    out += values_to_text(part.values);
  }
  return out;
}

InfeedEntry infeed_from_text(std::string queue, int64_t number, std::string_view text) {
  InfeedEntry entry;
  entry.queue = std::move(queue);
  entry.number = number;
  entry.partitions = take_number<int64_t>(text);
  entry.values = read_values(text);
  entry.parts.resize(take_number<uint32_t>(text));
  for (InfeedPart& part : entry.parts) {
    part.device = take_number<int64_t>(text);
    part.values = read_values(text);
  }
  return entry;
}

std::vector<std::vector<std::byte>> results_of(const InfeedEntry& entry, const device::EffectCall& call) {
  const auto devices = static_cast<int64_t>(call.devices.size());
  if (entry.partitions > 0 && entry.partitions != devices) {
    misfit(entry, call,
           fmt::format("was fed arrays over {} devices, the program runs on {}", entry.partitions, devices));
  }
  if (entry.parts.empty()) return checked_bytes_of(entry, call, entry.values, "");
  if (static_cast<int64_t>(entry.parts.size()) != devices) {
    misfit(entry, call,
           fmt::format("was fed in {} parts, the program runs on {} devices", entry.parts.size(), devices));
  }
  if (call.every_device) {
    return checked_bytes_of(entry, call, part_of(entry, call, call.device).values,
                            fmt::format("part of device {}: ", call.device));
  }
  std::vector<std::vector<std::byte>> out;
  for (size_t i = 0; i < call.results.size(); ++i) out.push_back(assembled(entry, call, i));
  return out;
}

}  // namespace meshd::effects
