#include "service/arrays/pending.h"

#include <fmt/core.h>

#include <algorithm>

#include "service/core/error.h"

namespace meshd::arrays {
namespace {

constexpr size_t kMostRemembered = 1000;
constexpr int kRetrySeconds = 5;

}  // namespace

void PendingArrays::add(const ArrayRef& array) {
  const ArrayInfo& info = array->info();
  table_.with([&](Table& table) {
    const auto count = std::count_if(table.by_id.begin(), table.by_id.end(), [&](const auto& entry) {
      return entry.second->info().principal == info.principal &&
             entry.second->state().with([](const Array::State& state) { return state.parts.has_value(); });
    });
    if (count >= limits_.most_of_principal) {
      throw core::Error("limit_reached", fmt::format("{} arrays wait for their parts, which is all that one principal "
                                                     "may have pending; complete some of them, or delete them",
                                                     count))
          .with_retry_after(kRetrySeconds);
    }
    array->state().with([&](Array::State& state) {
      state.parts.emplace();
      state.parts->shards.resize(static_cast<size_t>(array->layout().shard_count));
      state.parts->received.resize(array->layout().device_shards.size());
      note_progress(*state.parts);
    });
    table.by_id.emplace(info.id, array);
  });
}

void PendingArrays::add_promised(const ArrayRef& array) {
  table_.with([&](Table& table) { table.by_id.emplace(array->info().id, array); });
}

void PendingArrays::Table::note_gone(const ArrayInfo& info, std::string reason) {
  gone.push_back({info.id, info.principal, std::move(reason)});
  if (gone.size() > kMostRemembered) gone.pop_front();
}

void PendingArrays::forget(const ArrayRef& array, const std::string& reason) {
  remove(array);
  table_.with([&](Table& table) { table.note_gone(array->info(), reason); });
}

void PendingArrays::remove(const ArrayRef& array) {
  table_.with([&](Table& table) {
    if (table.by_id.erase(array->info().id) == 0) return;
    array->state().with([&](Array::State& state) {
      if (!state.parts) return;
      held_bytes_ -= state.parts->bytes;
      state.parts.reset();
    });
  });
}

std::vector<ArrayRef> PendingArrays::of(std::string_view principal) const {
  std::vector<ArrayRef> out;
  table_.with([&](const Table& table) {
    for (const auto& [id, array] : table.by_id) {
      if (array->info().principal == principal) out.push_back(array);
    }
  });
  return out;
}

void PendingArrays::note_progress(PendingParts& parts) const {
  parts.progress = clock_.steady();
  parts.expires = clock_.wall() + limits_.timeout;
}

void PendingArrays::take_bytes(PendingParts& parts, int64_t bytes) {
  if (held_bytes_.fetch_add(bytes) + bytes > limits_.most_bytes) {
    held_bytes_ -= bytes;
    throw core::Error("overloaded", fmt::format("parts of pending arrays fill the memory that there is for them ({} "
                                                "bytes); complete some of the arrays, or delete them",
                                                limits_.most_bytes))
        .with_retry_after(kRetrySeconds);
  }
  parts.bytes += bytes;
}

bool PendingArrays::is_over(const Array::State& state) const {
  return state.parts && !state.parts->is_being_completed && state.parts->on_their_way == 0 &&
         clock_.steady() - state.parts->progress >= limits_.timeout;
}

bool PendingArrays::is_over(Array& array) const {
  return array.state().with([&](const Array::State& state) { return is_over(state); });
}

std::vector<ArrayRef> PendingArrays::take_expired() {
  std::vector<ArrayRef> out;
  table_.with([&](Table& table) {
    for (auto entry = table.by_id.begin(); entry != table.by_id.end();) {
      const ArrayRef& array = entry->second;
      const bool is_gone = array->state().with([&](Array::State& state) {
        if (!is_over(state)) return false;
        held_bytes_ -= state.parts->bytes;
        state.parts.reset();
        state.deleted = true;
        return true;
      });
      if (!is_gone) {
        ++entry;
        continue;
      }
      const ArrayInfo& info = array->info();
      table.note_gone(info, fmt::format("array '{}' was pending and got no part for {} seconds; it is gone", info.id,
                                        limits_.timeout.count()));
      out.push_back(array);
      entry = table.by_id.erase(entry);
    }
  });
  return out;
}

std::optional<std::string> PendingArrays::why_gone(std::string_view id, std::string_view principal) const {
  return table_.with([&](const Table& table) -> std::optional<std::string> {
    const auto found = std::find_if(table.gone.begin(), table.gone.end(),
                                    [&](const Gone& gone) { return gone.id == id && gone.principal == principal; });
    return found == table.gone.end() ? std::nullopt : std::optional(found->reason);
  });
}

}  // namespace meshd::arrays
