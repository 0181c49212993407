// Arrays by name and by prefix. A row is visible until its deletion is durable, and the array that takes its place a
// moment before it is in memory: what is found neither way is looked for again.
#include <fmt/core.h>

#include <chrono>
#include <thread>

#include "service/arrays/array_store.h"
#include "service/core/error.h"

namespace meshd::arrays {
namespace {

constexpr std::chrono::seconds kLongestStep{1};
constexpr std::chrono::microseconds kLookAgain{50};

// What `look` returns, which is called again while it throws not_found for a row that is there.
template <typename Look>
auto settled(const core::Clock& clock, const Look& look) {
  const auto end = clock.steady() + kLongestStep;
  for (;;) {
    try {
      return look();
    } catch (const core::Error& error) {
      if (error.code() != core::ErrorCode("not_found") || clock.steady() >= end) throw;
    }
    std::this_thread::sleep_for(kLookAgain);
  }
}

}  // namespace

ArrayRef ArrayStore::find_addressed(std::string_view name, std::string_view principal) {
  return settled(clock_, [&]() -> ArrayRef {
    const auto row =
        store_.catalog().read([&](storage::Reader& reader) { return reader.array_by_name(name, principal); });
    return row ? find(row->id, principal) : nullptr;
  });
}

ArrayRef ArrayStore::find_named(std::string_view name, std::string_view principal) {
  ArrayRef found = find_addressed(name, principal);
  if (found == nullptr) throw core::Error("not_found", fmt::format("there is no array named '{}'", name));
  return found;
}

ArrayRef ArrayStore::find_live(std::string_view name, std::string_view principal) {
  ArrayRef found = find_addressed(name, principal);
  const auto is_live = [](const Array::State& state) {
    return state.state == storage::ArrayState::kReady || state.state == storage::ArrayState::kPending;
  };
  return found != nullptr && found->state().with(is_live) ? found : nullptr;
}

std::vector<ArrayRef> ArrayStore::find_prefix(std::string_view prefix, std::string_view principal, OfAName which) {
  return settled(clock_, [&] {
    const std::vector<storage::NamedArray> rows = store_.catalog().read(
        [&](storage::Reader& reader) { return reader.arrays_with_prefix(principal, prefix, kMostWithPrefix + 1); });
    if (static_cast<int64_t>(rows.size()) > kMostWithPrefix) {
      throw core::Error("invalid_query",
                        fmt::format("prefix: more than {} arrays have names that begin with '{}'; take a "
                                    "longer prefix",
                                    kMostWithPrefix, prefix));
    }
    std::vector<ArrayRef> out;
    std::string_view last;
    for (const storage::NamedArray& row : rows) {
      const bool is_addressed = last != row.name;
      last = row.name;
      if (which == OfAName::kAll || (is_addressed && row.is_ready)) out.push_back(find(row.id, principal));
    }
    return out;
  });
}

}  // namespace meshd::arrays
