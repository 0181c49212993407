#include "api/codecs/infeed_codec.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "api/codecs/value.h"
#include "service/arrays/region.h"

namespace meshd::api {
namespace {

constexpr size_t kLongestQueueName = 255;

// A stored array, or a slice of it. For a full array that its owner placed, `partitions` is the number of its devices.
tensor::DenseValue copy_of(arrays::ArrayStore& arrays, tensor::BufferPool& pool, const arrays::ArrayRef& array,
                           const std::optional<std::string>& slice, int64_t& partitions) {
  const arrays::ArrayInfo& info = array->info();
  const std::vector<arrays::Slice> slices =
      slice ? arrays::parse_slices(*slice, info.type.dims) : arrays::whole_slices(info.type.dims);
  arrays::GatherReader reader({array, &array->layout()}, tensor::size_bytes(info.type.dtype), arrays.open(array).shards,
                              slices);
  tensor::DenseValue value = tensor::new_dense({info.type.dtype, arrays::slice_dims(slices)}, pool);
  reader.read(value.buffer->bytes());
  if (info.committed && !slice) partitions = static_cast<int64_t>(array->layout().device_shards.size());
  return value;
}

std::vector<tensor::DenseValue> read_values(const Json& list, const std::string& pointer, const InfeedSource& source,
                                            int64_t& partitions, core::Diagnostics& wrong) {
  std::vector<tensor::DenseValue> out;
  each_entry(list, pointer, wrong, [&](size_t, const Json& item, const std::string& place) {
    Argument read = read_argument(item, nullptr, source.pool, place, wrong);
    if (read.part) read.value = read_part(*read.part, nullptr, source.files, place, wrong);
    if (read.value) out.push_back(std::move(*read.value));
    if (!read.array) return;
    int64_t devices = 0;
    const arrays::ArrayRef array = source.was_accepted ? source.arrays.find_kept(*read.array, source.principal)
                                                       : source.arrays.find(*read.array, source.principal);
    out.push_back(copy_of(source.arrays, source.pool, array, read.slice, devices));
    if (source.copied != nullptr) source.copied->push_back(array);
    if (devices > 0 && partitions > 0 && devices != partitions)
      wrong.add(place, fmt::format("lies on {} devices, an array before it on {}", devices, partitions));
    if (devices > 0) partitions = devices;
  });
  return out;
}

struct InfeedPartInput {
  int64_t device = 0;
  const Json* values = nullptr;
};

}  // namespace

std::optional<std::string> mistake_of_queue(std::string_view name) {
  // Bytes that begin a character.
  const auto characters = std::count_if(name.begin(), name.end(), [](char c) { return (c & 0xc0) != 0x80; });
  if (static_cast<size_t>(characters) <= kLongestQueueName) return std::nullopt;
  return fmt::format("expected at most {} characters, got {}", kLongestQueueName, characters);
}

template <>
const Schema<InfeedPartInput>& schema() {
  static const Schema<InfeedPartInput> kSchema{
      "InfeedPart",
      {{"device", &InfeedPartInput::device, {.low = 0, .high = INT32_MAX}},
       {"values", &InfeedPartInput::values, {.required = true, .like = json_type<std::vector<ArgumentInput>>}}}};
  return kSchema;
}

namespace {

template <typename In>
std::vector<Field<In>> entry_fields() {
  return {{"queue", &In::queue, {.longest = kLongestQueueName}},
          {"values", &In::values, {.like = json_type<std::vector<ArgumentInput>>}},
          {"parts", &In::parts, {.like = json_type<std::vector<InfeedPartInput>>}}};
}

}  // namespace

template <>
const Schema<InfeedEntryInput>& schema() {
  static const Schema<InfeedEntryInput> kSchema{"InfeedEntry", entry_fields<InfeedEntryInput>()};
  return kSchema;
}

template <>
const Schema<InfeedInput>& schema() {
  static const Schema<InfeedInput> kSchema = [] {
    std::vector<Field<InfeedInput>> fields = entry_fields<InfeedInput>();
    fields.emplace_back("number", &InfeedInput::number, Rules{.low = 1});
    return Schema<InfeedInput>("InfeedInput", std::move(fields));
  }();
  return kSchema;
}

effects::InfeedEntry infeed_entry(const InfeedEntryInput& in, const std::string& pointer, const InfeedSource& source,
                                  core::Diagnostics& wrong) {
  effects::InfeedEntry entry;
  entry.queue = in.queue.value_or("");
  if (in.values != nullptr && in.parts != nullptr)
    wrong.add(pointer + "/parts", "stands beside values; give one of the two");
  if (in.values != nullptr) {
    entry.values = read_values(*in.values, pointer + "/values", source, entry.partitions, wrong);
    return entry;
  }
  if (in.parts == nullptr) {
    wrong.add(pointer + "/values", "is missing");
    return entry;
  }
  const std::string parts_pointer = pointer + "/parts";
  if (!in.parts->is_array() || in.parts->size() == 0)
    wrong.add(parts_pointer, "expected a list with a part for each device");
  std::set<int64_t> fed;
  in.parts->each([&](size_t i, const Json& item) {
    const std::string place = entry_pointer(parts_pointer, i);
    const size_t before = wrong.list().size();
    const auto read = read_json<InfeedPartInput>(item, place, wrong);
    effects::InfeedPart part;
    part.device = read.device;
    if (wrong.list().size() == before && !fed.insert(part.device).second)
      wrong.add(place + "/device", fmt::format("device {} is fed twice", part.device));
    int64_t lies_on = 0;  // a part is what one device has, however it was stored
    if (read.values != nullptr) part.values = read_values(*read.values, place + "/values", source, lies_on, wrong);
    entry.parts.push_back(std::move(part));
    return has_room(wrong);
  });
  return entry;
}

}  // namespace meshd::api
