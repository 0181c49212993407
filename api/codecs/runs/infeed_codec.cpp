#include "api/codecs/runs/infeed_codec.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "api/codecs/at_pointer.h"
#include "api/codecs/value.h"
#include "service/arrays/regions/region.h"

namespace meshd::api {
namespace {

constexpr size_t kLongestQueueName = 255;

// Values of an entry, or of its part `part`. For a full array that its owner placed, `partitions` is the number of its
// devices.
std::vector<tensor::DenseValue> read_values(const Json& list, const std::string& pointer, const InfeedSource& source,
                                            std::optional<size_t> part, int64_t& partitions, core::Diagnostics& wrong) {
  std::vector<tensor::DenseValue> out;
  each_entry(list, pointer, wrong, [&](size_t, const Json& item, const std::string& place) {
    Argument read = read_argument(item, nullptr, source.pool, place, wrong);
    if (read.of_job) return wrong.add(place + "/job", "is for arguments of jobs; name the array by its id here");
    if (read.part) read.value = read_part(*read.part, nullptr, source.files, place, wrong);
    if (read.value) out.push_back(std::move(*read.value));
    if (!read.array) return;
    const arrays::ArrayRef array = at_pointer(
        place, [&] { return source.arrays.find_argument(*read.array, source.principal, source.was_accepted); });
    const arrays::ArrayInfo& info = array->info();
    std::optional<std::vector<arrays::Slice>> slices;
    if (read.slice) slices = arrays::parse_slices(*read.slice, info.type.dims);
    out.push_back(source.arrays.copy_dense(array, slices));
    if (source.copied != nullptr) source.copied->push_back({array, slices, source.entry, part, out.size() - 1});
    if (!info.committed || slices) return;
    const auto devices = static_cast<int64_t>(array->layout().device_shards.size());
    if (partitions > 0 && devices != partitions)
      wrong.add(place, fmt::format("is on {} devices, an array before it on {}", devices, partitions));
    partitions = devices;
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
Schema<InfeedPartInput> make_schema() {
  return {"InfeedPart",
          {{"device", &InfeedPartInput::device, {.low = 0, .high = INT32_MAX}},
           {"values", &InfeedPartInput::values, {.required = true, .like = json_type<std::vector<ArgumentInput>>}}}};
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
Schema<InfeedEntryInput> make_schema() {
  return {"InfeedEntry", entry_fields<InfeedEntryInput>()};
}

template <>
Schema<InfeedInput> make_schema() {
  std::vector<Field<InfeedInput>> fields = entry_fields<InfeedInput>();
  fields.emplace_back("number", &InfeedInput::number, Rules{.low = 1});
  return {"InfeedInput", fields};
}

effects::InfeedEntry infeed_entry(const InfeedEntryInput& in, const std::string& pointer, const InfeedSource& source,
                                  core::Diagnostics& wrong) {
  effects::InfeedEntry entry;
  entry.queue = in.queue.value_or("");
  if (in.values != nullptr && in.parts != nullptr)
    wrong.add(pointer + "/parts", "is given beside values; give one of the two");
  if (in.values != nullptr) {
    entry.values = read_values(*in.values, pointer + "/values", source, std::nullopt, entry.partitions, wrong);
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
    if (read.values != nullptr) part.values = read_values(*read.values, place + "/values", source, i, lies_on, wrong);
    entry.parts.push_back(std::move(part));
    return has_room(wrong);
  });
  return entry;
}

}  // namespace meshd::api
