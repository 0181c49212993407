#include "service/effects/effect_log.h"

#include <cstring>

#include "service/core/error.h"

namespace meshd::effects {
namespace {

template <typename T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

template <typename T>
T get(std::string_view& in) {
  if (in.size() < sizeof(T)) throw core::Error("internal", "a stored effect is cut short");
  T value;
  std::memcpy(&value, in.data(), sizeof(value));
  in.remove_prefix(sizeof(value));
  return value;
}

}  // namespace

std::string values_to_text(const std::vector<OwnedValue>& values) {
  std::string out;
  put<uint32_t>(out, static_cast<uint32_t>(values.size()));
  for (const OwnedValue& value : values) {
    const std::string_view name = tensor::name(value.type.dtype);
    put<uint8_t>(out, static_cast<uint8_t>(name.size()));
    out.append(name);
    put<uint32_t>(out, static_cast<uint32_t>(value.type.dims.size()));
    for (const int64_t dim : value.type.dims) put<int64_t>(out, dim);
    out.append(reinterpret_cast<const char*>(value.bytes.data()), value.bytes.size());
  }
  return out;
}

namespace {

std::vector<OwnedValue> read_values(std::string_view& text) {
  std::vector<OwnedValue> out(get<uint32_t>(text));
  for (OwnedValue& value : out) {
    const auto length = get<uint8_t>(text);
    const auto dtype = tensor::dtype_from_name(text.substr(0, length));
    if (!dtype) throw core::Error("internal", "a stored effect has an unknown dtype");
    text.remove_prefix(length);
    value.type.dtype = *dtype;
    value.type.dims.resize(get<uint32_t>(text));
    for (int64_t& dim : value.type.dims) dim = get<int64_t>(text);
    const auto bytes = static_cast<size_t>(tensor::byte_count(value.type));
    if (text.size() < bytes) throw core::Error("internal", "a stored effect is cut short");
    const auto* data = reinterpret_cast<const std::byte*>(text.data());
    value.bytes.assign(data, data + bytes);
    text.remove_prefix(bytes);
  }
  return out;
}

}  // namespace

std::vector<OwnedValue> values_from_text(std::string_view text) { return read_values(text); }

EffectPlace place_from_text(std::string_view text) {
  static_cast<void>(read_values(text));
  if (text.empty()) return {};
  EffectPlace place;
  place.point = get<int64_t>(text);
  place.device = get<int64_t>(text);
  return place;
}

storage::EffectRow to_row(const RecordedEffect& effect, const std::string& job, int64_t step) {
  storage::EffectRow row;
  row.job = job;
  row.step = step;
  row.kind = std::string(effect.kind->name);
  row.name = effect.name;
  row.ordered = effect.ordered;
  row.shard_index = effect.shard_index;
  row.values = values_to_text(effect.values);
  put<int64_t>(row.values, effect.point);
  put<int64_t>(row.values, effect.device);
  return row;
}

std::vector<storage::EffectRow> EffectLog::after(const std::string& session, int64_t after, int64_t limit) {
  return catalog_.read([&](storage::Reader& reader) { return reader.effects(session, after, limit); });
}

EffectLog::Subscription EffectLog::subscribe(const std::string& session, std::function<void()> wake) {
  const uint64_t number = table_->with([&](Table& table) {
    const uint64_t made = ++table.next;
    table.readers.emplace(session, std::make_pair(made, std::make_shared<std::function<void()>>(std::move(wake))));
    return made;
  });
  return {nullptr, [table = table_, session, number](void*) {
            table->with([&](Table& t) {
              const auto [first, last] = t.readers.equal_range(session);
              for (auto it = first; it != last; ++it) {
                if (it->second.first == number) {
                  t.readers.erase(it);
                  return;
                }
              }
            });
          }};
}

void EffectLog::notify(const std::string& session) {
  std::vector<std::shared_ptr<std::function<void()>>> wakes;
  table_->with([&](Table& table) {
    const auto [first, last] = table.readers.equal_range(session);
    for (auto it = first; it != last; ++it) wakes.push_back(it->second.second);
  });
  for (const auto& wake : wakes) (*wake)();
}

}  // namespace meshd::effects
