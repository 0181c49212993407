#include "storage/entry_folder.h"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <span>
#include <unordered_set>
#include <utility>

#include "service/core/error.h"

namespace meshd::storage {
namespace {

constexpr std::string_view kEntryMagic = "MESHDENT";
constexpr size_t kLongestEntryName = 100;
constexpr std::string_view kEntryEnding = ".entry";
constexpr std::string_view kUnfinishedEnding = ".tmp";
constexpr std::string_view kSuspendedEnding = ".suspended";
constexpr const char* kOrderName = "order";

struct EntryHeader {
  std::array<char, 8> magic{};
  uint64_t length = 0;
  uint64_t checksum = 0;
  uint64_t name = 0;
};
constexpr auto kEntryHeaderBytes = static_cast<int64_t>(sizeof(EntryHeader));
static_assert(sizeof(EntryHeader) == 32);

uint64_t entry_checksum(std::string_view bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

bool is_entry_name(std::string_view name) {
  return !name.empty() && name.size() <= kLongestEntryName && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

std::vector<std::string> entry_names(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    out.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

}  // namespace

void EntryFolder::State::add(Entry entry) {
  bytes += entry.bytes;
  std::string name = entry.name;
  entries.push_front(std::move(entry));
  by_name.emplace(std::move(name), entries.begin());
}

bool EntryFolder::State::erase(const std::string& name) {
  const auto found = by_name.find(name);
  if (found == by_name.end()) return false;
  bytes -= found->second->bytes;
  entries.erase(found->second);
  by_name.erase(found);
  is_saved = false;
  return true;
}

std::vector<std::string> EntryFolder::State::evict(int64_t most_bytes) {
  std::vector<std::string> out;
  while (bytes > most_bytes) {
    out.push_back(entries.back().name);
    erase(out.back());
  }
  return out;
}

EntryFolder::EntryFolder(FileSystem& files, std::string folder, int64_t most_bytes, Removed removed)
    : files_(files), folder_(std::move(folder)), most_bytes_(most_bytes), removed_(std::move(removed)) {
  try {
    if (most_bytes_ > 0) files_.make_folder(folder_);
    look();
  } catch (const core::Error&) {
    // A folder that cannot be made or read has no entries.
  }
}

EntryFolder::~EntryFolder() { save_order(); }

std::string EntryFolder::path(const std::string& name) const {
  return folder_ + "/" + name + std::string(kEntryEnding);
}

void EntryFolder::look() {
  std::unordered_map<std::string, int64_t> found;
  std::vector<std::string> suspended;
  for (const FolderEntry& file : files_.list(folder_)) {
    const std::string_view name = file.name;
    const bool is_ours =
        name.ends_with(kEntryEnding) && is_entry_name(name.substr(0, name.size() - kEntryEnding.size()));
    if (is_ours && most_bytes_ > 0) {
      found.emplace(name.substr(0, name.size() - kEntryEnding.size()), file.bytes);
    } else if (is_ours || name.ends_with(kUnfinishedEnding) || name.ends_with(kSuspendedEnding)) {
      files_.unlink(folder_ + "/" + file.name);
      if (name.ends_with(kSuspendedEnding))
        suspended.emplace_back(name.substr(0, name.size() - kSuspendedEnding.size()));
    }
  }
  found.erase(kOrderName);
  std::string reason;
  std::vector<std::string> order = entry_names(read_file(kOrderName, reason).value_or(""));
  // add() puts in front: what the order does not name first, then the order from its end.
  const std::unordered_set<std::string> named(order.begin(), order.end());
  for (const auto& [name, bytes] : found) {
    if (!named.contains(name)) order.push_back(name);
  }
  std::vector<std::string> evicted;
  state_.with([&](State& state) {
    for (auto name = order.rbegin(); name != order.rend(); ++name) {
      const auto known = found.find(*name);
      if (known != found.end() && !state.by_name.contains(*name)) state.add({*name, known->second});
    }
    evicted = state.evict(most_bytes_);
    state.unusable += static_cast<int64_t>(suspended.size());
  });
  for (const std::string& name : evicted) unlink(name);
  for (const std::string& name : suspended) {
    if (removed_) removed_(name, "the process ended while it was used");
  }
}

std::vector<std::string> EntryFolder::names() const {
  return state_.with([](const State& state) {
    std::vector<std::string> out;
    for (const Entry& entry : state.entries) out.push_back(entry.name);
    return out;
  });
}

bool EntryFolder::use(const std::string& name) {
  return state_.with([&](State& state) {
    const auto found = state.by_name.find(name);
    if (found == state.by_name.end()) return false;
    if (found->second == state.entries.begin()) return true;
    state.entries.splice(state.entries.begin(), state.entries, found->second);
    state.is_saved = false;
    return true;
  });
}

std::optional<std::string> EntryFolder::read_file(const std::string& name, std::string& reason) try {
  const std::unique_ptr<File> file = files_.open(path(name));
  if (file == nullptr) {
    reason = "there is no such file";
    return std::nullopt;
  }
  EntryHeader header;
  const int64_t size = file->size();
  const auto head = std::as_writable_bytes(std::span(&header, 1));
  if (size < kEntryHeaderBytes || size > std::max(most_bytes_, kEntryHeaderBytes) ||
      file->read_at(0, head) != head.size() ||
      std::string_view(header.magic.data(), header.magic.size()) != kEntryMagic ||
      header.name != entry_checksum(name) || header.length != static_cast<uint64_t>(size - kEntryHeaderBytes)) {
    reason = "it is not an entry of this name, or not all of it";
    return std::nullopt;
  }
  std::string entry(header.length, '\0');
  const auto body = std::as_writable_bytes(std::span(entry.data(), entry.size()));
  if (file->read_at(kEntryHeaderBytes, body) != body.size() || entry_checksum(entry) != header.checksum) {
    reason = "its bytes have another checksum";
    return std::nullopt;
  }
  return entry;
} catch (const core::Error& error) {
  reason = error.detail();
  return std::nullopt;
}

std::optional<std::string> EntryFolder::read(const std::string& name) {
  if (!state_.with([&](const State& state) { return state.by_name.contains(name); })) return std::nullopt;
  std::string reason;
  std::optional<std::string> entry = read_file(name, reason);
  if (!entry) drop(name, reason);
  return entry;
}

bool EntryFolder::write_file(const std::string& name, std::string_view entry) {
  const std::string unfinished = path(name) + std::string(kUnfinishedEnding);
  try {
    files_.unlink(unfinished);
    EntryHeader header{{}, entry.size(), entry_checksum(entry), entry_checksum(name)};
    std::memcpy(header.magic.data(), kEntryMagic.data(), kEntryMagic.size());
    const std::unique_ptr<File> file = files_.create(unfinished);
    file->write_at(0, std::as_bytes(std::span(&header, 1)));
    file->write_at(kEntryHeaderBytes, std::as_bytes(std::span(entry.data(), entry.size())));
    files_.rename(unfinished, path(name));
    return true;
  } catch (const core::Error&) {
    try {
      files_.unlink(unfinished);
    } catch (const core::Error&) {
      // The next start removes it.
    }
    return false;
  }
}

bool EntryFolder::write(const std::string& name, std::string_view entry) {
  const int64_t bytes = static_cast<int64_t>(entry.size()) + kEntryHeaderBytes;
  if (!is_entry_name(name) || name == kOrderName || bytes > most_entry_bytes() || !write_file(name, entry))
    return false;
  const std::vector<std::string> evicted = state_.with([&](State& state) {
    state.erase(name);
    state.add({name, bytes});
    state.is_saved = false;
    return state.evict(most_bytes_);
  });
  for (const std::string& old : evicted) unlink(old);
  return true;
}

bool EntryFolder::rename(const std::string& name, std::string_view from, std::string_view to) {
  const std::string stem = folder_ + "/" + name;
  try {
    files_.rename(stem + std::string(from), stem + std::string(to));
    return true;
  } catch (const core::Error&) {
    return false;
  }
}

bool EntryFolder::suspend(const std::string& name) { return rename(name, kEntryEnding, kSuspendedEnding); }

void EntryFolder::resume(const std::string& name) { rename(name, kSuspendedEnding, kEntryEnding); }

void EntryFolder::unlink(const std::string& name) noexcept {
  try {
    files_.unlink(path(name));
  } catch (const core::Error&) {
    // It stays until a start removes it.
  }
}

void EntryFolder::drop(const std::string& name, const std::string& reason) {
  const bool was_there = state_.with([&](State& state) {
    const bool found = state.erase(name);
    if (found) ++state.unusable;
    return found;
  });
  if (!was_there) return;
  unlink(name);
  if (removed_) removed_(name, reason);
}

void EntryFolder::remove(const std::string& name, const std::string& reason) { drop(name, reason); }

void EntryFolder::save_order() noexcept try {
  if (!is_on()) return;
  const std::optional<std::string> order = state_.with([](State& state) -> std::optional<std::string> {
    if (std::exchange(state.is_saved, true)) return std::nullopt;
    std::string out;
    for (const Entry& entry : state.entries) out += entry.name + "\n";
    return out;
  });
  if (order) write_file(kOrderName, *order);
} catch (const std::bad_alloc&) {
  // The order is written when it changes again.
}

EntryFolder::Stats EntryFolder::stats() const {
  return state_.with([](const State& state) {
    return Stats{static_cast<int64_t>(state.entries.size()), state.bytes, state.unusable};
  });
}

}  // namespace meshd::storage
