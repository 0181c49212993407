#include "api/codecs/infeed_codec.h"

#include <algorithm>

#include "api/codecs/value.h"
#include "service/arrays/region.h"

namespace meshd::api {
namespace {

constexpr int64_t kMostDevice = INT32_MAX;

// A stored array, or a slice of it. Where a whole one was placed by its owner, `partitions` is the number of devices it
// lies on.
effects::OwnedValue copy_of(arrays::ArrayStore& arrays, const arrays::ArrayRef& array,
                            const std::optional<std::string>& slice, int64_t& partitions) {
  const arrays::ArrayInfo& info = array->info();
  const std::vector<arrays::Slice> slices =
      slice ? arrays::parse_slices(*slice, info.type.dims) : arrays::whole_slices(info.type.dims);
  arrays::GatherReader reader({array, &array->layout()}, tensor::size_bytes(info.type.dtype), arrays.shards(array),
                              slices);
  effects::OwnedValue value{{info.type.dtype, arrays::slice_dims(slices)},
                            std::vector<std::byte>(static_cast<size_t>(reader.total_bytes()))};
  reader.read(value.bytes);
  if (info.committed && !slice) partitions = static_cast<int64_t>(array->layout().device_shards.size());
  return value;
}

std::vector<effects::OwnedValue> read_values(const Json& list, const std::string& pointer, const InfeedSource& source,
                                             int64_t& partitions, core::Diagnostics& wrong) {
  std::vector<effects::OwnedValue> out;
  if (!list.is_array()) wrong.add(pointer, "expected a list, got " + std::string(list.kind_name()));
  for (size_t i = 0; i < list.size() && has_room(wrong); ++i) {
    const std::string place = pointer + "/" + std::to_string(i);
    const Json item = list.at(i);
    const auto* object = item.as<JsonObject>();
    const bool is_array = object != nullptr && std::any_of(object->begin(), object->end(),
                                                           [](const auto& field) { return field.first == "array"; });
    if (is_array) {
      ObjectReader fields(item, place, wrong);
      const auto id = fields.string("array");
      const auto slice = fields.string("slice");
      fields.finish();
      if (!id) continue;
      int64_t devices = 0;
      const arrays::ArrayRef array = source.arrays.find(*id, source.principal);
      out.push_back(copy_of(source.arrays, array, slice, devices));
      if (source.copied != nullptr) source.copied->push_back(array);
      if (devices > 0 && partitions > 0 && devices != partitions) {
        wrong.add(place, "lies on " + std::to_string(devices) + " devices, an array before it on " +
                             std::to_string(partitions));
      }
      if (devices > 0) partitions = devices;
    } else if (auto read = read_value(item, nullptr, place, wrong)) {
      out.push_back({read->type, std::move(read->bytes)});
    }
  }
  return out;
}

}  // namespace

std::optional<std::string> mistake_of_queue(std::string_view name) {
  constexpr int64_t kMost = 255;
  // Bytes that begin a character.
  const auto characters = std::count_if(name.begin(), name.end(), [](char c) { return (c & 0xc0) != 0x80; });
  if (characters <= kMost) return std::nullopt;
  return "expected at most " + std::to_string(kMost) + " characters, got " + std::to_string(characters);
}

effects::InfeedEntry read_infeed_entry(ObjectReader& reader, const InfeedSource& source, core::Diagnostics& wrong) {
  effects::InfeedEntry entry;
  entry.queue = reader.string("queue").value_or("");
  if (const auto mistake = mistake_of_queue(entry.queue)) wrong.add(reader.pointer("queue"), *mistake);
  const Json* values = reader.field("values");
  const Json* parts = reader.field("parts");
  if (values != nullptr && parts != nullptr)
    wrong.add(reader.pointer("parts"), "stands beside values; give one of the two");
  if (values != nullptr) {
    entry.values = read_values(*values, reader.pointer("values"), source, entry.partitions, wrong);
  } else if (parts == nullptr) {
    reader.missing("values");
  } else {
    if (!parts->is_array() || parts->size() == 0)
      wrong.add(reader.pointer("parts"), "expected a list with a part for each device");
    for (size_t i = 0; i < parts->size() && has_room(wrong); ++i) {
      const std::string pointer = reader.pointer("parts") + "/" + std::to_string(i);
      const Json item = parts->at(i);
      ObjectReader fields(item, pointer, wrong);
      effects::InfeedPart part;
      const auto device = fields.integer("device", 0, kMostDevice);
      if (!device && fields.field("device") == nullptr) fields.missing("device");
      part.device = device.value_or(0);
      for (const effects::InfeedPart& other : entry.parts) {
        if (device && other.device == part.device)
          wrong.add(fields.pointer("device"), "device " + std::to_string(part.device) + " is fed twice");
      }
      int64_t lies_on = 0;  // a part is what one device has, however it was stored
      if (const Json* list = fields.field("values")) {
        part.values = read_values(*list, fields.pointer("values"), source, lies_on, wrong);
      } else {
        fields.missing("values");
      }
      fields.finish();
      entry.parts.push_back(std::move(part));
    }
  }
  return entry;
}

}  // namespace meshd::api
