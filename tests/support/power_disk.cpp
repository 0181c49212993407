#include "tests/support/power_disk.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

namespace meshd::testing {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kSectorBytes = 512;

std::string read_all(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

bool never_durable(const std::string& path) { return path.ends_with("-shm"); }

}  // namespace

PowerDisk::PowerDisk(const std::string& root, int64_t calls) : root_(fs::canonical(root).string()) {
  state_.with([&](State& state) {
    state.calls_left = calls;
    for (const auto& entry : fs::recursive_directory_iterator(root_)) {
      if (!entry.is_regular_file() || never_durable(entry.path().string())) continue;
      auto node = std::make_shared<Node>();
      node->durable = read_all(entry.path());
      state.names[entry.path().string()] = node;
    }
    state.durable_names = state.names;
  });
}

bool PowerDisk::is_cut() const {
  return state_.with([](const State& state) { return state.cut; });
}

void PowerDisk::cut() {
  state_.with([](State& state) { state.cut = true; });
}

bool PowerDisk::fails(const std::string&) {
  return state_.with([](State& state) {
    if (--state.calls_left <= 0) state.cut = true;
    return state.cut;
  });
}

// Every hook below comes after its call: one that comes after the cut happened too late to leave a trace. But for
// syncs: one that was let through has told its caller that all before it is safe, so it is, whoever cuts meanwhile.

void PowerDisk::change_name(State& state, const std::string& path, NodePointer node) {
  if (state.cut || never_durable(path)) return;
  const NameChange change{path, std::move(node)};
  set_name(state.names, change);
  state.pending_names.push_back(change);
}

void PowerDisk::set_name(std::map<std::string, NodePointer>& names, const NameChange& change) {
  if (change.node) {
    names[change.path] = change.node;
  } else {
    names.erase(change.path);
  }
}

void PowerDisk::apply(std::string& content, const Change& change) {
  if (change.new_size >= 0) {
    content.resize(static_cast<size_t>(change.new_size));
    return;
  }
  const auto end = static_cast<size_t>(change.offset) + change.bytes.size();
  if (content.size() < end) content.resize(end);
  std::copy(change.bytes.begin(), change.bytes.end(), content.begin() + change.offset);
}

void PowerDisk::created(const std::string& path) {
  state_.with([&](State& state) { change_name(state, path, std::make_shared<Node>()); });
}

void PowerDisk::removed(const std::string& path) {
  state_.with([&](State& state) { change_name(state, path, nullptr); });
}

void PowerDisk::renamed(const std::string& from, const std::string& to) {
  state_.with([&](State& state) {
    const NodePointer node = state.names[from];
    change_name(state, from, nullptr);
    change_name(state, to, node);
  });
}

void PowerDisk::wrote(const std::string& path, int64_t offset, std::span<const std::byte> bytes) {
  state_.with([&](State& state) {
    const auto file = state.names.find(path);
    if (state.cut || file == state.names.end()) return;
    file->second->pending.push_back(
        {offset, std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()), -1});
  });
}

void PowerDisk::resized(const std::string& path, int64_t size) {
  state_.with([&](State& state) {
    const auto file = state.names.find(path);
    if (state.cut || file == state.names.end()) return;
    file->second->pending.push_back({0, {}, size});
  });
}

void PowerDisk::synced(const std::string& path) {
  state_.with([&](State& state) {
    const auto file = state.names.find(path);
    if (file == state.names.end()) return;
    for (const Change& change : file->second->pending) apply(file->second->durable, change);
    file->second->pending.clear();
  });
}

void PowerDisk::synced_folder(const std::string& path) {
  const std::string folder = fs::canonical(path).string();
  state_.with([&](State& state) {
    std::erase_if(state.pending_names, [&](const NameChange& change) {
      if (fs::path(change.path).parent_path().string() != folder) return false;
      set_name(state.durable_names, change);
      return true;
    });
  });
}

void PowerDisk::restore(const std::string& target, std::mt19937_64& random) const {
  fs::create_directory(target);
  for (const auto& entry : fs::recursive_directory_iterator(root_)) {
    if (entry.is_directory()) fs::create_directories(target / fs::relative(entry.path(), root_));
  }
  state_.with([&](State& state) {
    // Sometimes everything made it to the disk, sometimes nothing, mostly some of it.
    const uint64_t luck = random() % 5;
    const auto survives = [&] { return luck == 4 || (luck != 0 && random() % 4 < luck); };
    std::map<std::string, NodePointer> names = state.durable_names;
    for (const NameChange& change : state.pending_names) {
      if (survives()) set_name(names, change);
    }
    for (const auto& [path, node] : names) {
      std::string content = node->durable;
      for (Change change : node->pending) {
        if (!survives()) continue;
        const auto sectors = static_cast<uint64_t>(static_cast<int64_t>(change.bytes.size()) / kSectorBytes);
        if (luck != 4 && sectors > 1 && random() % 4 == 0) {
          // Torn: some sectors at one end only.
          const auto keep = static_cast<size_t>((1 + random() % (sectors - 1)) * kSectorBytes);
          if (random() % 2 == 0) {
            change.bytes.resize(keep);
          } else {
            change.offset += static_cast<int64_t>(change.bytes.size() - keep);
            change.bytes.erase(0, change.bytes.size() - keep);
          }
        }
        apply(content, change);
      }
      std::ofstream(fs::path(target) / fs::relative(path, root_), std::ios::binary) << content;
    }
  });
}

}  // namespace meshd::testing
