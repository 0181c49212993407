// A folder of entries that may be lost: files that only save work, such as records of what was compiled. Bounded by
// bytes; the least recently used entries leave. Nothing in it is synced, and nothing in it is believed: an entry has a
// checksum and its own name, and one that is damaged or foreign is removed, reported and as if it had never been there.
//
// A file is a header of 32 bytes and the entry: magic "MESHDENT", then as little-endian 64-bit numbers the length of
// the entry, its XXH3-64 and that of its name. It is written under another name and renamed, so that a name has all of
// an entry or nothing. The order of use is kept in a file of its own, which is as replaceable: entries that it does not
// name count as used before those that it names.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "service/core/locked.h"
#include "storage/file_system.h"

namespace meshd::storage {

/// Any thread. No function throws but std::bad_alloc: what the disk refuses is not kept.
class EntryFolder {
 public:
  /// Told of each entry that is removed because it cannot be used, with the reason; must not throw. Called under no
  /// lock.
  using Removed = std::function<void(const std::string& name, const std::string& reason)>;

  /// Makes the folder and looks what is there. At most `most_bytes` are kept (files, headers included), a quarter of
  /// that for one entry; 0: nothing is, and what is there is removed. `files` must outlive it.
  EntryFolder(FileSystem& files, std::string folder, int64_t most_bytes, Removed removed);
  /// Keeps the order.
  ~EntryFolder();
  EntryFolder(const EntryFolder&) = delete;
  EntryFolder& operator=(const EntryFolder&) = delete;

  [[nodiscard]] bool is_on() const { return most_bytes_ > 0; }
  /// The largest file of an entry.
  [[nodiscard]] int64_t most_entry_bytes() const { return most_bytes_ / 4; }
  /// Most recently used first.
  [[nodiscard]] std::vector<std::string> names() const;
  /// The entry counts as used now. False where there is none of this name.
  bool use(const std::string& name);
  /// Nothing where there is no such entry, or was one that could not be used.
  std::optional<std::string> read(const std::string& name);
  /// Keeps an entry, which counts as used now, in the place of one of this name. `name`: letters, digits and "_", at
  /// most 100. False where it is not kept: it is too large, or the disk refused.
  bool write(const std::string& name, std::string_view entry);
  /// Until resume(), the entry is one that the next start removes and reports: for a use that might end the process. It
  /// cannot be read meanwhile. False where the disk refuses.
  bool suspend(const std::string& name);
  void resume(const std::string& name);
  /// Removes an entry and reports it.
  void remove(const std::string& name, const std::string& reason);
  /// Writes the order of use, if it has changed.
  void save_order() noexcept;

  struct Stats {
    int64_t entries = 0;
    int64_t bytes = 0;
    int64_t unusable = 0;  ///< entries that were removed because they could not be used
  };
  [[nodiscard]] Stats stats() const;

 private:
  struct Entry {
    std::string name;
    int64_t bytes = 0;
  };
  struct State {
    std::list<Entry> entries;  // most recently used first
    std::unordered_map<std::string, std::list<Entry>::iterator> by_name;
    int64_t bytes = 0;
    int64_t unusable = 0;
    bool is_saved = true;

    void add(Entry entry);
    bool erase(const std::string& name);
    /// Takes the least recently used entries away until the others fit; their names.
    std::vector<std::string> evict(int64_t most_bytes);
  };

  [[nodiscard]] std::string path(const std::string& name) const;
  void look();
  /// Renames the entry's file; false where the disk refuses.
  bool rename(const std::string& name, std::string_view from, std::string_view to);
  /// Replaces a file; false where the disk refuses.
  bool write_file(const std::string& name, std::string_view entry);
  std::optional<std::string> read_file(const std::string& name, std::string& reason);
  void unlink(const std::string& name) noexcept;
  void drop(const std::string& name, const std::string& reason);

  FileSystem& files_;
  const std::string folder_;
  const int64_t most_bytes_;
  const Removed removed_;
  core::Locked<State> state_;
};

}  // namespace meshd::storage
