// A disk whose power can be cut: it remembers what was written but not synced, and after the cut it keeps, tears or
// drops each of those changes as chance wills, and each new or removed name whose folder was not synced. It watches a
// real folder, which stays as it is; the folder as the disk would show it after the cut is made beside it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "service/core/locked.h"
#include "tests/support/system_watcher.h"

namespace meshd::testing {

/// Any thread. Folders themselves are always durable; files that end in "-shm" never are.
class PowerDisk final : public SystemWatcher {
 public:
  /// What lies in `root` now is durable. After `calls` more calls the power is gone: every later call fails.
  PowerDisk(const std::string& root, int64_t calls);

  /// Makes `target` (a new folder) what the disk shows when the power is back.
  void restore(const std::string& target, std::mt19937_64& random) const;
  [[nodiscard]] bool is_cut() const;
  /// Cuts now, if it is not yet.
  void cut();

  [[nodiscard]] bool fails(const std::string& operation) override;
  void created(const std::string& path) override;
  void wrote(const std::string& path, int64_t offset, std::span<const std::byte> bytes) override;
  void resized(const std::string& path, int64_t size) override;
  void synced(const std::string& path) override;
  void renamed(const std::string& from, const std::string& to) override;
  void removed(const std::string& path) override;
  void synced_folder(const std::string& path) override;

 private:
  struct Change {
    int64_t offset = 0;
    std::string bytes;
    int64_t new_size = -1;  ///< not negative: a change of size instead
  };
  struct Node {
    std::string durable;
    std::vector<Change> pending;
  };
  using NodePointer = std::shared_ptr<Node>;
  struct NameChange {
    std::string path;
    NodePointer node;  ///< null: the name goes
  };
  struct State {
    bool cut = false;
    int64_t calls_left = 0;
    std::map<std::string, NodePointer> names;
    std::map<std::string, NodePointer> durable_names;
    std::vector<NameChange> pending_names;
  };
  static void apply(std::string& content, const Change& change);
  static void set_name(std::map<std::string, NodePointer>& names, const NameChange& change);
  void change_name(State& state, const std::string& path, NodePointer node);

  std::string root_;
  mutable core::Locked<State> state_;
};

}  // namespace meshd::testing
